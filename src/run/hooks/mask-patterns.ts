import type { Hooks } from '../../core/contract/hooks.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { LLMResponse, Message } from '../../core/contract/llm-provider.js';
import type { ArgumentFault } from '../../core/contract/tool.js';
import { type Content, ToolResult } from '../../core/contract/tool-result.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { escapePattern } from '../../core/kernel/escape-pattern.js';
import { isRecord, parsedJson, setOwn } from '../../core/kernel/json.js';
import {
  FILLED_TEXT,
  FUNCTION,
  listOf,
  objectOf,
  oneOf,
  optionTable,
  protecting,
  required,
} from '../../core/kernel/options.js';
import { type CutDetails, cutDetails, isCutDetails } from '../call/result-text.js';

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

const NAME = 'mask-patterns';

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
  {
    name: 'ip',
    pattern: /(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)/g,
    isOne: (found) => found.split('.').every((part) => Number(part) <= 255),
  },
];

/**
 * A hook that hides what fits patterns: personal data, or what the application must not let out. What is hidden from
 * requests stays in the history, which is the application's; what is hidden in results is nowhere.
 *
 * A model that is sent `[email 1]` may write it in the arguments of a call, also as `[Email-1]`: the tool gets the
 * address. Numbers follow from the history of the run, so that a value keeps its number, and they are not stored. A
 * mask that stands for nothing in the history is a rejected argument. With `arguments`, tools are given masks, and
 * nothing is restored.
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
  const masks = new Masks(patterns);
  // Masks without a number could make two keys the same.
  const hide: Masking = (text, isKey) => (isKey ? text : masks.text(text));
  const among = (place: MaskedPlace, hook: Hooks): Hooks =>
    (places ?? ['requests', 'results']).includes(place) ? hook : {};
  const isReversible = places === undefined || (places.includes('requests') && !places.includes('arguments'));
  return {
    name: NAME,
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
            return faults.length > 0 ? { faults } : changedOrNothing('arguments', args, value);
          },
        }
      : among('arguments', {
          beforeCall: ({ arguments: args }) =>
            changedOrNothing('arguments', args, maskedData(args, hide) as JsonObject),
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

function maskedResult(result: ToolResult, mask: Masking): ToolResult {
  const { forLLM, forUser, content, details } = result;
  const masked = changed(result, {
    forLLM: mask(forLLM),
    forUser: forUser === undefined ? undefined : mask(forUser),
    content: maskedJson(content, mask) as Content | undefined,
    details: maskedDetails(details, mask),
  });
  return masked === result ? result : new ToolResult(masked);
}

/** The same object where none of its fields changes. */
function changed<Whole extends object>(whole: Whole, fields: Partial<Whole>): Whole {
  const isSame = Object.entries(fields).every(([name, field]) => field === whole[name as keyof Whole]);
  return isSame ? whole : { ...whole, ...fields };
}

/** What is kept whole of a result that was cut stays that: it is read on from. */
function maskedDetails(details: unknown, mask: Masking): unknown {
  const isData =
    Array.isArray(details) || (isRecord(details) && Object.getPrototypeOf(details) === Object.prototype);
  if (!isData) return details;
  const masked = maskedJson(details, mask);
  if (masked === details || !isCutDetails(details)) return masked;
  const { full, details: own } = masked as CutDetails;
  return cutDetails(new ToolResult({ forLLM: full, details: own }));
}

function maskedReply(response: LLMResponse, mask: Masking): LLMResponse {
  const { content, reasoning, toolCalls } = response;
  return changed(response, {
    content: mask(content),
    toolCalls: maskedJson(toolCalls, mask) as LLMResponse['toolCalls'],
    ...(reasoning === undefined ? {} : { reasoning: mask(reasoning) }),
  });
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

/** Something that is hidden where a text has it. */
export interface MaskedPattern {
  /** What stands in its place: `email` becomes `[email 1]`, or `[email]` where it is hidden for good. */
  readonly name: string;
  /** With the flag `g`; of an application's own, one that long texts keep busy for long is its own risk. */
  readonly pattern: RegExp;
  /** Whether what was found is one, such as a number whose check digit is right; default: always. */
  readonly isOne?: (found: string) => boolean;
}

/** A part of a text: a value to hide, or what already has the form of a mask. */
interface Found {
  readonly from: number;
  readonly to: number;
  readonly text: string;
  /** The name of the pattern that found a value. */
  readonly name?: string;
  /** The mask that is meant, however it is spelt: `[email 1]`, or `[email]`. */
  readonly mask?: string;
}

/** What replaces the texts within JSON. */
type Masking = (text: string, isKey?: boolean) => string;

/**
 * The masks of one history. They are issued in the order in which values appear in it, so that a longer history gives
 * the same masks. Text that looks like a mask before that mask was issued stays text, and that mask is never issued.
 */
class IssuedMasks {
  readonly #masks = new Map<string, string>();
  readonly #values = new Map<string, string>();
  readonly #counts = new Map<string, number>();
  /** What has the form of a mask and was never issued. */
  readonly #written = new Set<string>();
  /** Of those, what the model has not written itself. */
  readonly #quoted = new Set<string>();
  /** Masks without a number in results, where the value is hidden for good. */
  readonly hidden = new Set<string>();

  add({ role }: Message, found: readonly Found[]): void {
    for (const { mask } of found) {
      if (mask === undefined) continue;
      if (!isNumbered(mask)) {
        if (role === 'tool') this.hidden.add(mask);
      } else if (!this.#values.has(mask) && !this.#written.has(mask)) {
        // Who wrote it first counts: what rejects the model's own invention repeats it.
        this.#written.add(mask);
        if (role !== 'assistant') this.#quoted.add(mask);
      }
    }
    for (const { name, text } of found) if (name !== undefined) this.#issue(name, text);
  }

  maskOf(name: string, value: string): string | undefined {
    return this.#masks.get(`${name} ${value}`);
  }

  /** What a mask stands for; the text itself if it is plain text; `undefined` if it was never issued. */
  valueOf({ mask = '', text }: Found): string | undefined {
    return this.#values.get(mask) ?? (this.#quoted.has(mask) || !isNumbered(mask) ? text : undefined);
  }

  #issue(name: string, value: string): void {
    if (this.maskOf(name, value) !== undefined) return;
    let number = this.#counts.get(name) ?? 0;
    let mask: string;
    do {
      number += 1;
      mask = `[${name} ${number}]`;
    } while (this.#written.has(mask.toLowerCase()) || this.#values.has(mask.toLowerCase()));
    this.#counts.set(name, number);
    this.#masks.set(`${name} ${value}`, mask);
    this.#values.set(mask.toLowerCase(), value);
  }
}

function isNumbered(mask: string): boolean {
  return / \d+\]$/.test(mask);
}

/** What was found in the messages of one history, and what hides it and gives it back. */
class Masks {
  readonly #patterns: readonly MaskedPattern[];
  /** Masks as they are issued, and as a model may spell them. */
  readonly #mark: RegExp;
  readonly #nearMark: RegExp;
  /** Of messages of a history, which every request carries again. */
  readonly #known = new WeakMap<Message, readonly Found[]>();

  constructor(patterns: readonly MaskedPattern[]) {
    this.#patterns = patterns;
    const names = patterns.map(({ name }) => escapePattern(name)).join('|') || '(?!)';
    this.#mark = new RegExp(`\\[(${names})(?: (\\d{1,9}))?\\]`, 'g');
    this.#nearMark = new RegExp(`\\[(${names})(?:[ _-]*(\\d{1,9}))?\\]`, 'gi');
  }

  /** The masks of a history. */
  issuedIn(history: readonly Message[]): IssuedMasks {
    const issued = new IssuedMasks();
    for (const message of history) issued.add(message, this.#foundIn(message));
    return issued;
  }

  /** A text without the values; those without a mask of their own are hidden for good. */
  text(text: string, issued?: IssuedMasks): string {
    return this.#replaced(text, ({ name, text: found }) =>
      name === undefined ? found : (issued?.maskOf(name, found) ?? `[${name}]`),
    );
  }

  messages(messages: readonly Message[], issued?: IssuedMasks): readonly Message[] {
    const masked = messages.map((message) =>
      this.#foundIn(message).every(({ name }) => name === undefined)
        ? message
        : (maskedJson(message, (text) => this.text(text, issued)) as Message),
    );
    return masked.every((message, index) => message === messages[index]) ? messages : masked;
  }

  /** Arguments with the values that their masks stand for; `isHiding`: values in results are hidden for good. */
  restored(args: JsonObject, issued: IssuedMasks, isHiding = false) {
    const faults: ArgumentFault[] = [];
    const restoreText = (value: string, path: string): string =>
      this.#replaced(value, (found) => {
        const { mask, text } = found;
        if (mask === undefined) return text;
        const original = issued.valueOf(found);
        if (original !== undefined && !(isHiding && issued.hidden.has(mask))) return original;
        const message = `has ${text}, which the hook '${NAME}' cannot restore: it stands for nothing in this conversation; ask for the value, or leave it out`;
        faults.push({ path, message });
        return text;
      });
    const restore = (value: unknown, path: string): unknown => {
      if (typeof value === 'string') return restoreText(value, path);
      const within = (key: string) => (path === '' ? key : `${path}.${key}`);
      const members = mapMembers(
        value,
        (member, key) => restore(member, within(key)),
        (key) => restoreText(key, within(key)),
      );
      if (isRecord(members) && isRecord(value) && Object.keys(members).length < Object.keys(value).length)
        faults.push({ path, message: `has keys that the hook '${NAME}' would restore to the same key` });
      return members;
    };
    return { value: restore(args, '') as JsonObject, faults };
  }

  #foundIn(message: Message): readonly Found[] {
    const known = this.#known.get(message);
    if (known !== undefined) return known;
    const found: Found[] = [];
    maskedJson(message, (text) => {
      found.push(...this.#find(text));
      return text;
    });
    this.#known.set(message, found);
    return found;
  }

  #replaced(text: string, replace: (found: Found) => string): string {
    let [result, at] = ['', 0];
    for (const found of this.#find(text)) {
      result += text.slice(at, found.from) + replace(found);
      at = found.to;
    }
    return result + text.slice(at);
  }

  /** In the order of the text. What one pattern has found is not looked at by those after it. */
  #find(text: string): readonly Found[] {
    let all = [...text.matchAll(this.#mark)].map(maskAt);
    const plain = text.includes('"') ? text.replace(ESCAPE, (escaped) => '\n'.repeat(escaped.length)) : text;
    for (const { name, pattern, isOne } of this.#patterns)
      for (const searched of new Set([plain, text])) {
        const found = [...searched.matchAll(pattern)]
          .map(({ 0: { length }, index }) => ({ from: index, to: index + length, name }))
          .map((part) => ({ ...part, text: text.slice(part.from, part.to) }))
          // No value begins within an escape.
          .filter(({ from }) => plain[from] === text[from] || text[from] === '\\')
          .filter((part) => part.text !== '' && isOne?.(part.text) !== false);
        all = merged(all, found);
      }
    // Behind the patterns, as `[CUS-123456]` may be a value.
    return merged(all, [...text.matchAll(this.#nearMark)].map(maskAt));
  }
}

/** In JSON text, which has quotes: the `n` of `\nann@example.org` is not a part of the address. */
const ESCAPE = /\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})/g;

function maskAt({ 0: text, 1: name, 2: number, index }: RegExpExecArray): Found {
  const mask = `[${name}${number === undefined ? '' : ` ${number}`}]`.toLowerCase();
  return { from: index, to: index + text.length, text, mask };
}

/** Two lists in order as one; what overlaps with the first one is left out. */
function merged(first: readonly Found[], second: readonly Found[]): Found[] {
  if (second.length === 0) return [...first];
  const all: Found[] = [];
  let next = 0;
  for (const found of second) {
    for (let known = first[next]; known !== undefined && known.to <= found.from; known = first[next]) {
      all.push(known);
      next += 1;
    }
    const known = first[next];
    if (known === undefined || known.from >= found.to) all.push(found);
  }
  return [...all, ...first.slice(next)];
}

/** The same where no member and no key changes. */
function mapMembers(
  value: unknown,
  map: (member: unknown, key: string) => unknown,
  mapKey = (key: string) => key,
): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item, index) => map(item, String(index)));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  if (!isRecord(value)) return value;
  const fields = Object.entries(value).map(([key, field]) => [key, mapKey(key), map(field, key)] as const);
  if (fields.every(([key, name, field]) => key === name && field === value[key])) return value;
  const changed: JsonObject = {};
  for (const [, name, field] of fields) setOwn(changed, name, field);
  return changed;
}

/** Digits from which on a number is looked at: it may be one of a card. */
const LONG_NUMBER = 10;

/** The texts within a message, a reply or content; names of fields, and what is encoded in base64, stay as they are. */
function maskedJson(value: unknown, mask: Masking, key = ''): unknown {
  if (key === 'arguments') {
    // Servers parse the arguments of calls in a history: what is hidden in them must leave JSON.
    const parsed = typeof value === 'string' ? parsedJson(value) : undefined;
    if (parsed === undefined) return maskedData(value, mask);
    const masked = maskedData(parsed, mask);
    return masked === parsed ? value : JSON.stringify(masked);
  }
  if (key === 'providerItems' || (typeof value === 'string' && OPAQUE.has(key))) return value;
  if (typeof value !== 'object') return maskedData(value, mask);
  return mapMembers(value, (member, name) => maskedJson(member, mask, Array.isArray(value) ? '' : name));
}

/** The texts within JSON of any form, and its keys. */
function maskedData(value: unknown, mask: Masking): unknown {
  if (typeof value === 'string') return BASE64.test(value) ? value : mask(value);
  if (typeof value !== 'number')
    return mapMembers(
      value,
      (member) => maskedData(member, mask),
      (key) => mask(key, true),
    );
  const text = String(value);
  const masked = text.length < LONG_NUMBER ? text : mask(text);
  return masked === text ? value : masked;
}

const BASE64 = /^data:[^\s,]*;base64,/i;

/** Ids hold history together, and data is no text. */
const OPAQUE = new Set([...['id', 'tool_call_id', 'role', 'type', 'name', 'data', 'mimeType']]);
