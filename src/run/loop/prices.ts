import type { ModelPrice, PriceTable } from '../../core/contract/budget.js';
import type { Usage } from '../../core/contract/llm-provider.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';

/**
 * Prices of some models in dollars per million tokens: the list prices of November 2026 for direct use without
 * batches, with cache writes for five minutes. Models whose price depends on the length of the prompt are not
 * included. Prices change: set your own if money depends on it.
 *
 * Sources: platform.claude.com/docs/en/about-claude/pricing, developers.openai.com/api/docs/pricing,
 * ai.google.dev/gemini-api/docs/pricing.
 */
export const PRICES: PriceTable = {
  'gpt-5': { input: 1.25, cachedInput: 0.125, output: 10, maxOutputTokens: 128_000 },
  'gpt-5-mini': { input: 0.25, cachedInput: 0.025, output: 2, maxOutputTokens: 128_000 },
  'gpt-5-nano': { input: 0.05, cachedInput: 0.005, output: 0.4, maxOutputTokens: 128_000 },
  'gpt-5.4-mini': { input: 0.75, cachedInput: 0.075, output: 4.5, maxOutputTokens: 128_000 },
  'gpt-5.4-nano': { input: 0.2, cachedInput: 0.02, output: 1.25, maxOutputTokens: 128_000 },
  'gpt-4.1': { input: 2, cachedInput: 0.5, output: 8, maxOutputTokens: 32_768 },
  'gpt-4.1-mini': { input: 0.4, cachedInput: 0.1, output: 1.6, maxOutputTokens: 32_768 },
  'gpt-4.1-nano': { input: 0.1, cachedInput: 0.025, output: 0.4, maxOutputTokens: 32_768 },
  'gpt-4o': { input: 2.5, cachedInput: 1.25, output: 10, maxOutputTokens: 16_384 },
  'gpt-4o-mini': { input: 0.15, cachedInput: 0.075, output: 0.6, maxOutputTokens: 16_384 },
  'claude-opus-5-5': { input: 4, cachedInput: 0.2, cacheWrite: 5, output: 20, maxOutputTokens: 128_000 },
  'claude-opus-5': { input: 5, cachedInput: 0.5, cacheWrite: 6.25, output: 25, maxOutputTokens: 128_000 },
  'claude-sonnet-5-5': { input: 2, cachedInput: 0.1, cacheWrite: 2.5, output: 10, maxOutputTokens: 128_000 },
  'claude-sonnet-5': { input: 2, cachedInput: 0.2, cacheWrite: 2.5, output: 10, maxOutputTokens: 128_000 },
  'claude-opus-4-5': { input: 5, cachedInput: 0.5, cacheWrite: 6.25, output: 25, maxOutputTokens: 64_000 },
  'claude-sonnet-4-5': { input: 3, cachedInput: 0.3, cacheWrite: 3.75, output: 15, maxOutputTokens: 64_000 },
  'claude-haiku-4-5': { input: 1, cachedInput: 0.1, cacheWrite: 1.25, output: 5, maxOutputTokens: 64_000 },
  'gemini-2.5-flash': { input: 0.3, cachedInput: 0.03, output: 2.5, maxOutputTokens: 65_536 },
  'gemini-2.5-flash-lite': { input: 0.1, cachedInput: 0.01, output: 0.4, maxOutputTokens: 65_536 },
};

/** `-2026-01-31`, `-20260131` and `@20260131`. */
const DATE = /[-@](?:\d{4}-\d{2}-\d{2}|\d{8})$/;

/** The price of a model, also of a dated version of it. */
export function findPrice(prices: PriceTable, model: string): ModelPrice | undefined {
  if (Object.hasOwn(prices, model)) return prices[model];
  const undated = model.replace(DATE, '');
  return Object.hasOwn(prices, undated) ? prices[undated] : undefined;
}

/** @throws ToolwrightError `PriceUnknown` (539): a model without a known price is not free. */
export function priceOf(prices: PriceTable, model: string): ModelPrice {
  const price = findPrice(prices, model);
  if (price !== undefined) return price;
  const message = `There is no price for the model '${model}'; set one: budget: { prices: { ...PRICES, '${model}': { input: …, output: … } } }.`;
  throw new ToolwrightError('PriceUnknown', message);
}

/** Billionths per unit of the currency. */
const BILLION = 1_000_000_000;

/** A cost in whole billionths, as ledgers count it; rounded up, so that small costs are not free. */
export function inBillionths(cost: number): number {
  return Math.min(Math.max(0, Math.ceil(cost * BILLION - 1e-6)), Number.MAX_SAFE_INTEGER);
}

export function inUnits(billionths: number): number {
  return billionths / BILLION;
}

/** The cost of tokens, in billionths. Prices are per million, so a token costs a thousand times as many billionths. */
export function costOf(price: ModelPrice, usage: Partial<Usage>): number {
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage;
  const { input, output, cachedInput = input, cacheWrite = input } = price;
  const plain = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens);
  const millionths =
    plain * input + cacheReadTokens * cachedInput + cacheWriteTokens * cacheWrite + outputTokens * output;
  return Math.min(Math.max(0, Math.ceil(millionths * 1000 - 1e-6)), Number.MAX_SAFE_INTEGER);
}
