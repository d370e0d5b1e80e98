/** Prefixes of model names for the hosting service or the owner of a fine-tuned model. */
const PREFIX = /^(?:.*\/|ft:)+/;
/** Variants in a name: `:free`, `:8b`, `@20250219`. */
const VARIANT = /[:@].*$/;
/** The words and the first number that is not a date. */
const FAMILY = /^[a-z][-_. a-z]*?(?:\d{1,3}(?!\d)|$)/;

/**
 * The family of a model: its name in lower case, without the hosting service, up to its major version. Items such as
 * signatures are understood within a family: `openai/gpt-5.2-mini` and `gpt-5` are both `gpt-5`,
 * `gemini-3-pro-preview` is `gemini-3`, `Qwen/Qwen3-235B` is `qwen3`, `o4-mini` is `o4`, and a name without a version
 * is its own family.
 */
export function modelFamily(model: string): string {
  const name = model.toLowerCase().replace(PREFIX, '').replace(VARIANT, '');
  return FAMILY.exec(name)?.[0] ?? name.replace(/[-_]\d{4,}.*$/, '');
}

/** The key for data of a reply that its API and model family require back: `openai.chat/gpt-5`. */
export function familyKey(api: 'chat' | 'responses', model: string): string {
  return `openai.${api}/${modelFamily(model)}`;
}

/**
 * Whether a model accepts tool definitions in the answer to a search: models of OpenAI from GPT-5.4 on.
 * https://developers.openai.com/api/docs/guides/tools-tool-search
 */
export function takesFoundTools(model: string): boolean {
  const [, major, minor = '0'] = /^gpt-(\d+)(?:\.(\d+))?/.exec(model.toLowerCase().replace(PREFIX, '')) ?? [];
  return Number(major) > 5 || (Number(major) === 5 && Number(minor) >= 4);
}

/** Models of OpenAI without response schemas. https://platform.openai.com/docs/guides/structured-outputs */
const WITHOUT_FORMAT = /^(gpt-3|gpt-4($|-)|gpt-4o-2024-05|chatgpt-|o1-(mini|preview)|davinci|babbage)/;

/** Whether a model at OpenAI supports a response schema. */
export function knowsResponseFormat(model: string): boolean {
  return !WITHOUT_FORMAT.test(model.toLowerCase().replace(PREFIX, ''));
}
