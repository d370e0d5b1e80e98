/** Prefixes of model names for the hosting service or the owner of a fine-tuned model. */
const PREFIX = /^(?:.*\/|ft:)+/;
/** Variants in a name: `:free`, `:8b`, `@20250219`. */
const VARIANT = /[:@].*$/;
/** A model's name in lower case, without the hosting service or the owner of a fine-tuned model. */
export function modelName(model: string): string {
  return model.toLowerCase().replace(PREFIX, '');
}

/** The words and the first number that is not a date. */
const FAMILY = /^[a-z][-_. a-z]*?(?:\d{1,3}(?!\d)|$)/;

/**
 * The family of a model: its name in lower case, without the hosting service, up to its major version. Items such as
 * signatures are understood within a family: `openai/gpt-5.2-mini` and `gpt-5` are both `gpt-5`,
 * `gemini-3-pro-preview` is `gemini-3`, `Qwen/Qwen3-235B` is `qwen3`, `o4-mini` is `o4`, and a name without a version
 * is its own family.
 */
export function modelFamily(model: string): string {
  const name = modelName(model).replace(VARIANT, '');
  return FAMILY.exec(name)?.[0] ?? name.replace(/[-_]\d{4,}.*$/, '');
}
