import type { LanguageModelV4 } from '@ai-sdk/provider';

/**
 * Models that keep to a schema of their reply while they have tools, by the first word of their provider and by name.
 * For others, packages of the AI SDK make a tool of it that the model must call, or send what its API refuses.
 */
const FORMATTED: ReadonlyMap<string, RegExp> = new Map([
  ['openai', /^(?!gpt-3|gpt-4$|gpt-4-|gpt-4o-2024-05|chatgpt-|o1-mini|o1-preview)/],
  ['anthropic', /^claude-[a-z]+-(4-[1-9](?!\d)|[5-9](?!\d))/],
  ['google', /^gemini-([3-9]|\d\d)/],
]);

/** Whether a model keeps to a schema that is given as the form of its reply, as far as its name tells. */
export function knowsResponseFormat({ provider, modelId }: LanguageModelV4): boolean {
  const [family = ''] = provider.split('.');
  return FORMATTED.get(family)?.test(modelId) ?? false;
}
