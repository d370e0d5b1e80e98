import type { LLMProvider } from '../../contract/llm-provider.js';

const BRAND = Symbol.for('toolwright.TextTools');

/** Marks a provider that reads calls from text, also for another copy of this package. */
export const TEXT_TOOLS: object = { [BRAND]: true };

/** Whether a provider was made by `withTextTools`; such models get fewer iterations. */
export function hasTextTools(provider: LLMProvider): boolean {
  return BRAND in provider;
}
