import { type CutDetails, cutDetails, isCutDetails } from '../call/result-text.js';
import type { Hooks } from '../contract/hooks.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { LLMResponse } from '../contract/llm-provider.js';
import { type Content, ToolResult } from '../contract/tool-result.js';
import { checkOptions } from '../errors/author-fault.js';
import { isRecord } from '../kernel/json.js';
import {
  FILLED_TEXT,
  FUNCTION,
  listOf,
  objectOf,
  oneOf,
  optionTable,
  protecting,
  required,
} from '../kernel/options.js';
import { type MaskedPattern, type Masking, Masks, maskedJson } from './masks.js';

/** Where texts are masked. */
type MaskedPlace = 'requests' | 'replies' | 'arguments' | 'results';

/** Options of {@link maskPatterns}. */
export interface MaskPatternsOptions {
  /** Default: {@link PERSONAL_DATA}. */
  readonly patterns?: readonly MaskedPattern[];
  /**
   * `requests`: what a model is sent, while the history keeps it; `results`: what calls give, on every surface and for
   * good; `arguments`: what tools are given; `replies`: what a model says. Default: `requests`, and `results` of calls
   * outside of runs, which no history keeps.
   */
  readonly in?: readonly MaskedPlace[];
}

const PATTERN = objectOf<MaskedPattern>(
  {
    name: required(FILLED_TEXT),
    pattern: required({
      accepts: (value) => value instanceof RegExp && value.flags.includes('g'),
      fix: '/CUS-[0-9]{6}/g',
    }),
    isOne: FUNCTION,
  },
  { fix: "{ name: 'customer', pattern: /CUS-[0-9]{6}/g }" },
);

const OPTIONS = optionTable<MaskPatternsOptions>('maskPatterns', {
  patterns: protecting(listOf(PATTERN, "[...PERSONAL_DATA, { name: 'customer', pattern: /CUS-[0-9]{6}/g }]")),
  in: protecting(listOf(oneOf('requests', 'replies', 'arguments', 'results'), "['requests', 'results']")),
});

/** Mail addresses, numbers of cards and accounts with right check digits, telephone numbers with a +, addresses of machines. */
export const PERSONAL_DATA: readonly MaskedPattern[] = [
  { name: 'email', pattern: /(?<![\w.%+-])[\w.%+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/g },
  {
    name: 'iban',
    pattern: /(?<![A-Z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Z0-9])/g,
    isOne: isIban,
  },
  { name: 'card', pattern: /(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.]*\d)/g, isOne: isCard },
  { name: 'phone', pattern: /(?<![\w+])\+\d{1,3}(?:[ ()/.-]{0,2}\d){6,13}(?!\d)/g },
  { name: 'ip', pattern: /(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)/g, isOne: isAddress },
];

/**
 * A hook that hides what fits patterns: personal data, or what the application must not let out. What is hidden from
 * requests stays in the history, which is the application's; what is hidden in results is nowhere.
 *
 * A model that is sent `[email 1]` may write it in the arguments of a call: the tool gets the address. Numbers follow
 * from the history of the run, so that a value keeps its number, and they are not stored. A mask that stands for
 * nothing in the history is a rejected argument. With `arguments`, tools are given masks, and nothing is restored.
 *
 * Patterns find what looks like something. They miss names, and what is spelt in another way.
 *
 * @throws InvalidOptionsError (521) for wrong options.
 *
 * @example
 * ```ts
 * const masking = maskPatterns({
 *   patterns: [...PERSONAL_DATA, { name: 'customer', pattern: /CUS-[0-9]{6}/g }],
 * });
 * const run = await runToolLoop({ provider, model, tools, hooks: [masking] }, messages);
 * ```
 */
export function maskPatterns(options: MaskPatternsOptions = {}): Hooks {
  checkOptions(options, OPTIONS);
  const { patterns = PERSONAL_DATA, in: places } = options;
  const name = 'mask-patterns';
  const masks = new Masks(patterns);
  const hide: Masking = (text) => masks.text(text);
  const among = (place: MaskedPlace, hook: Hooks): Hooks =>
    (places ?? ['requests', 'results']).includes(place) ? hook : {};
  const isReversible = places === undefined || (places.includes('requests') && !places.includes('arguments'));
  return {
    name,
    ...among('requests', {
      beforeRequest: (request, { scope }) => {
        const { messages } = request;
        const issued = isReversible ? masks.issuedIn(scope?.messages ?? messages) : undefined;
        const masked = masks.messages(messages, issued);
        return masked === messages ? undefined : { request: { ...request, messages: masked } };
      },
    }),
    ...among('replies', {
      afterResponse: (response) => changedOrNothing('response', response, maskedReply(response, hide)),
    }),
    ...(isReversible
      ? {
          beforeCall: ({ arguments: args, runId, scope }) => {
            // Outside of a run no request was masked.
            if (args === undefined || runId === undefined) return undefined;
            const issued = masks.issuedIn(scope.messages ?? []);
            const { value, faults } = masks.restored(args, issued, places?.includes('results'));
            return faults.length > 0
              ? { faults: faults.map(({ path, mask }) => ({ path, message: unrestored(mask, name) })) }
              : changedOrNothing('arguments', args, value as JsonObject);
          },
        }
      : among('arguments', {
          beforeCall: ({ arguments: args }) =>
            changedOrNothing('arguments', args, maskedJson(args, hide) as JsonObject),
        })),
    ...among('results', {
      // In a run that can restore them, the history keeps what requests hide.
      afterCall: ({ result, runId }) =>
        places === undefined && runId !== undefined
          ? undefined
          : changedOrNothing('result', result, maskedResult(result, hide)),
    }),
  };
}

function changedOrNothing<Name extends string, Value>(name: Name, before: unknown, after: Value) {
  return before === after ? undefined : ({ [name]: after } as { readonly [Key in Name]: Value });
}

function unrestored(mask: string, hook: string): string {
  return `has ${mask}, which the hook '${hook}' cannot restore: it stands for nothing in this conversation; ask for the value, or leave it out`;
}
function maskedResult(result: ToolResult, mask: Masking): ToolResult {
  const { forLLM, forUser, content, details } = result;
  const masked = {
    forLLM: mask(forLLM),
    ...(forUser === undefined ? {} : { forUser: mask(forUser) }),
    ...(content === undefined ? {} : { content: maskedJson(content, mask) as Content }),
    ...(details === undefined ? {} : { details: maskedDetails(details, mask) }),
  };
  const isSame =
    masked.forLLM === forLLM &&
    masked.forUser === forUser &&
    masked.content === content &&
    masked.details === details;
  return isSame ? result : new ToolResult({ ...result, ...masked });
}

/** What is kept whole of a result that was cut stays that: it is read on from. */
function maskedDetails(details: unknown, mask: Masking): unknown {
  if (!isPlainData(details)) return details;
  const masked = maskedJson(details, mask);
  if (masked === details || !isCutDetails(details)) return masked;
  const { full, details: own } = masked as CutDetails;
  return cutDetails(new ToolResult({ forLLM: full, ...(own === undefined ? {} : { details: own }) }));
}

function maskedReply(response: LLMResponse, mask: Masking): LLMResponse {
  const { content, reasoning, toolCalls } = response;
  const masked = {
    content: mask(content),
    ...(reasoning === undefined ? {} : { reasoning: mask(reasoning) }),
    toolCalls: maskedJson(toolCalls, mask) as LLMResponse['toolCalls'],
  };
  const isSame =
    masked.content === content && masked.reasoning === reasoning && masked.toolCalls === toolCalls;
  return isSame ? response : { ...response, ...masked };
}

function isPlainData(value: unknown): boolean {
  if (Array.isArray(value)) return true;
  return isRecord(value) && Object.getPrototypeOf(value) === Object.prototype;
}

/** The check digit of ISO/IEC 7812-1, annex B. */
function isCard(found: string): boolean {
  const digits = found.replace(/\D/g, '');
  let sum = 0;
  for (let index = 0; index < digits.length; index += 1) {
    const digit = Number(digits[digits.length - 1 - index]) * (1 + (index % 2));
    sum += digit > 9 ? digit - 9 : digit;
  }
  return sum % 10 === 0 && /[1-9]/.test(digits);
}

/** The check digits of ISO 13616: the number that the rotated text stands for leaves 1 when divided by 97. */
function isIban(found: string): boolean {
  const text = found.replaceAll(' ', '');
  const rotated = text.slice(4) + text.slice(0, 4);
  let rest = 0;
  for (const character of rotated)
    for (const digit of String(Number.parseInt(character, 36))) rest = (rest * 10 + Number(digit)) % 97;
  return rest === 1;
}

function isAddress(found: string): boolean {
  return found.split('.').every((part) => Number(part) <= 255);
}
