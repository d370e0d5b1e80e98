import { type CutDetails, cutDetails, isCutDetails } from '../call/result-text.js';
import type { Hooks } from '../contract/hooks.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { LLMResponse, Message } from '../contract/llm-provider.js';
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

/** Something that is hidden where a text has it. */
export interface MaskedPattern {
  /** What stands in its place: `email` becomes `[email]`. */
  readonly name: string;
  /** With the flag `g`; of an application's own, one that long texts keep busy for long is its own risk. */
  readonly pattern: RegExp;
  /** Whether what was found is one, such as a number whose check digit is right; default: always. */
  readonly isOne?: (found: string) => boolean;
}

/** Where texts are masked. */
type MaskedPlace = 'requests' | 'replies' | 'arguments' | 'results';

/** Options of {@link maskPatterns}. */
export interface MaskPatternsOptions {
  /** Default: {@link PERSONAL_DATA}. */
  readonly patterns?: readonly MaskedPattern[];
  /**
   * `requests`: what a model is sent, while the history keeps it; `results`: what calls give, on every surface;
   * `arguments`: what tools are given; `replies`: what a model says. Default: `['requests', 'results']`.
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
  const { patterns = PERSONAL_DATA, in: places = ['requests', 'results'] } = options;
  const mask = new Mask(patterns);
  const among = (place: MaskedPlace, hook: Hooks): Hooks => (places.includes(place) ? hook : {});
  return {
    name: 'mask-patterns',
    ...among('requests', {
      beforeRequest: (request) => {
        const messages = mask.messages(request.messages);
        return messages === request.messages ? undefined : { request: { ...request, messages } };
      },
    }),
    ...among('replies', {
      afterResponse: (response) => changedOrNothing('response', response, mask.reply(response)),
    }),
    ...among('arguments', {
      beforeCall: ({ arguments: args }) => changedOrNothing('arguments', args, mask.json(args) as JsonObject),
    }),
    ...among('results', {
      afterCall: ({ result }) => changedOrNothing('result', result, mask.result(result)),
    }),
  };
}

function changedOrNothing<Name extends string, Value>(name: Name, before: unknown, after: Value) {
  return before === after ? undefined : ({ [name]: after } as { readonly [Key in Name]: Value });
}

/** Hides; gives what it was given where there is nothing to hide. */
class Mask {
  readonly #patterns: readonly MaskedPattern[];
  /** Of messages of a history, which every request carries again. */
  readonly #known = new WeakMap<Message, Message>();

  constructor(patterns: readonly MaskedPattern[]) {
    this.#patterns = patterns;
  }

  text(text: string): string {
    let masked = text;
    for (const { name, pattern, isOne } of this.#patterns)
      masked = masked.replace(pattern, (found) =>
        isOne === undefined || isOne(found) ? `[${name}]` : found,
      );
    return masked;
  }

  messages(messages: readonly Message[]): readonly Message[] {
    const masked = messages.map((message) => {
      const known = this.#known.get(message) ?? (this.json(message) as Message);
      this.#known.set(message, known);
      return known;
    });
    return masked.every((message, index) => message === messages[index]) ? messages : masked;
  }

  /** The texts within JSON; names of fields, and what is encoded in base64, stay as they are. */
  json(value: unknown, key?: string): unknown {
    if (typeof value === 'string') return this.#field(value, key);
    if (typeof value === 'number') return this.#number(value);
    if (Array.isArray(value)) {
      const items = value.map((item) => this.json(item));
      return items.every((item, index) => item === value[index]) ? value : items;
    }
    if (!isRecord(value) || key === 'providerItems') return value;
    const fields = Object.entries(value).map(([name, field]) => [name, this.json(field, name)] as const);
    return fields.every(([name, field]) => field === value[name]) ? value : Object.fromEntries(fields);
  }

  #field(text: string, key: string | undefined): string {
    if (OPAQUE.has(key ?? '') || text.startsWith('data:')) return text;
    return key === 'arguments' ? this.#jsonText(text) : this.text(text);
  }

  /** Servers parse the arguments of calls in a history: what is hidden in them must leave JSON. */
  #jsonText(text: string): string {
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch {
      return this.text(text);
    }
    const masked = this.json(parsed);
    return masked === parsed ? text : JSON.stringify(masked);
  }

  /** A long number may be one of a card. */
  #number(value: number): unknown {
    const text = String(value);
    const masked = text.length < LONG_NUMBER ? text : this.text(text);
    return masked === text ? value : masked;
  }

  result(result: ToolResult): ToolResult {
    const { forLLM, forUser, content, details } = result;
    const masked = {
      forLLM: this.text(forLLM),
      ...(forUser === undefined ? {} : { forUser: this.text(forUser) }),
      ...(content === undefined ? {} : { content: this.json(content) as Content }),
      ...(details === undefined ? {} : { details: this.#details(details) }),
    };
    const isSame =
      masked.forLLM === forLLM &&
      masked.forUser === forUser &&
      masked.content === content &&
      masked.details === details;
    return isSame ? result : new ToolResult({ ...result, ...masked });
  }

  /** What is kept whole of a result that was cut stays that: it is read on from. */
  #details(details: unknown): unknown {
    if (!isPlainData(details)) return details;
    const masked = this.json(details);
    if (masked === details || !isCutDetails(details)) return masked;
    const { full, details: own } = masked as CutDetails;
    return cutDetails(new ToolResult({ forLLM: full, ...(own === undefined ? {} : { details: own }) }));
  }

  reply(response: LLMResponse): LLMResponse {
    const { content, reasoning, toolCalls } = response;
    const masked = {
      content: this.text(content),
      ...(reasoning === undefined ? {} : { reasoning: this.text(reasoning) }),
      toolCalls: this.json(toolCalls) as LLMResponse['toolCalls'],
    };
    const isSame =
      masked.content === content && masked.reasoning === reasoning && masked.toolCalls === toolCalls;
    return isSame ? response : { ...response, ...masked };
  }
}

/** Digits from which on a number is looked at. */
const LONG_NUMBER = 10;

/** Ids hold history together, and data is no text. */
const OPAQUE: ReadonlySet<string> = new Set([
  'id',
  'tool_call_id',
  'role',
  'type',
  'name',
  'data',
  'mimeType',
]);

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
