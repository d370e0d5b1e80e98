import type { Hooks } from '../../core/contract/hooks.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { LLMResponse, Message } from '../../core/contract/llm-provider.js';
import type { ArgumentFault } from '../../core/contract/tool.js';
import { type Content, ToolResult } from '../../core/contract/tool-result.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { escapePattern } from '../../core/kernel/escape-pattern.js';
import { isPlainObject, isRecord, parsedJson, setOwn } from '../../core/kernel/json.js';
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
import { type Found, MASKS, type MaskReading, type RunMasks } from '../loop/run-masks.js';

/** Where texts are masked. */
type MaskedPlace = 'requests' | 'replies' | 'arguments' | 'results';

/** Options of {@link maskPatterns}. */
export interface MaskPatternsOptions {
  /** Default: {@link PERSONAL_DATA}. */
  readonly patterns?: readonly MaskedPattern[];
  /**
   * `requests`: requests to models, while the history keeps the values; `results`: results of calls, everywhere and
   * permanently; `arguments`: arguments of tools; `replies`: replies of models. Default: `requests`, and `results` of
   * calls outside runs, which have no history.
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

/** Email addresses, card and account numbers with valid check digits, telephone numbers with a +, IP addresses. */
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
 * A hook that hides texts that match patterns: personal data, or data that must not leave the application. Data that
 * is hidden from requests stays in the application's history; data that is hidden in results is removed permanently.
 *
 * A model that receives `[email 1]` may write it in the arguments of a call, also as `[Email-1]`: the tool receives
 * the address. Numbers derive from the history of the run, so that a value keeps its number without being stored. A
 * mask that does not exist in the history makes the argument invalid. With `arguments`, tools receive masks, and
 * nothing is restored.
 *
 * Each run has its own numbers. The answer of a run within a call, such as that of an agent, contains the values if the
 * calling run masks them again.
 *
 * Patterns find texts of a known form. They miss names and other spellings.
 *
 * @throws InvalidOptionsError (521) for invalid options.
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
  // Masks without a number could make two keys equal.
  const hide: Masking = (text, isKey) => (isKey ? text : masks.text(text));
  const masked = new Set<MaskedPlace>(places ?? ['requests', 'results']);
  const isReversible = places === undefined || (places.includes('requests') && !places.includes('arguments'));
  return {
    name: NAME,
    ...(isReversible && { [MASKS]: masks }),
    ...(masked.has('requests') && {
      beforeRequest: (request, { scope }) => {
        const { messages: given } = request;
        const issued = isReversible ? masks.issuedIn(scope?.messages ?? given) : undefined;
        const messages = masks.messages(given, issued);
        return messages === given ? undefined : { request: { ...request, messages } };
      },
    }),
    ...(masked.has('replies') && {
      afterResponse: (response) => changedOrNothing('response', response, maskedReply(response, hide)),
    }),
    ...(isReversible
      ? {
          beforeCall: ({ arguments: args, runId, scope }) => {
            // Outside a run, no request was masked.
            if (args === undefined || runId === undefined) return undefined;
            const issued = masks.issuedIn(scope.messages ?? []);
            const { value, faults } = masks.restored(args, issued, places?.includes('results'));
            return faults.length > 0 ? { faults } : changedOrNothing('arguments', args, value);
          },
        }
      : masked.has('arguments') && {
          beforeCall: ({ arguments: args }) =>
            changedOrNothing('arguments', args, maskedData(args, hide) as JsonObject),
        }),
    ...(masked.has('results') && {
      // In a run that can restore masks, the history keeps the values that requests hide.
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

/** The same object if none of its fields changes. */
function changed<Whole extends object>(whole: Whole, fields: Partial<Whole>): Whole {
  const isSame = Object.entries(fields).every(([name, field]) => field === whole[name as keyof Whole]);
  return isSame ? whole : { ...whole, ...fields };
}

/** The stored whole text of a cut result keeps its form, because it can be read later. */
function maskedDetails(details: unknown, mask: Masking): unknown {
  const isData = Array.isArray(details) || (isRecord(details) && isPlainObject(details));
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

/** The check digits of ISO 13616: the number of the rotated text modulo 97 must be 1. */
function isIban(found: string): boolean {
  const text = found.replaceAll(' ', '');
  const rotated = text.slice(4) + text.slice(0, 4);
  let rest = 0;
  for (const character of rotated)
    for (const digit of String(Number.parseInt(character, 36))) rest = (rest * 10 + Number(digit)) % 97;
  return rest === 1;
}

/** A pattern of texts to hide. */
export interface MaskedPattern {
  /** The name in the mask: `email` becomes `[email 1]`, or `[email]` if it is hidden permanently. */
  readonly name: string;
  /** With the flag `g`; a slow pattern of the application is its own risk. */
  readonly pattern: RegExp;
  /** Whether a match is really of this kind, for example a number with a valid check digit; default: always. */
  readonly isOne?: (found: string) => boolean;
}

/** Replaces the texts within JSON. */
type Masking = (text: string, isKey?: boolean) => string;

/**
 * The masks of one history. They are issued in the order in which values appear in it, so that a longer history has
 * the same masks. Text that looks like a mask before that mask was issued stays text, and that mask is never issued.
 */
class IssuedMasks {
  readonly #masks = new Map<string, string>();
  readonly #values = new Map<string, string>();
  readonly #counts = new Map<string, number>();
  /** Texts in the form of a mask that was never issued. */
  readonly #written = new Set<string>();
  /** Those of them that the model has not written itself. */
  readonly #quoted = new Set<string>();
  /** Masks without a number in results, where the value is hidden permanently. */
  readonly hidden = new Set<string>();

  add({ role }: Message, found: readonly Found[]): void {
    for (const { mask } of found) {
      if (mask === undefined) continue;
      if (!isNumbered(mask)) {
        if (role === 'tool') this.hidden.add(mask);
      } else if (!this.#values.has(mask) && !this.#written.has(mask)) {
        // The first author counts: a rejection repeats the model's own invention.
        this.#written.add(mask);
        if (role !== 'assistant') this.#quoted.add(mask);
      }
    }
    for (const { name, text } of found) {
      if (name === undefined || this.maskOf(name, text) !== undefined) continue;
      let number = this.#counts.get(name) ?? 0;
      let mask: string;
      do {
        number += 1;
        mask = `[${name} ${number}]`;
      } while (this.#written.has(mask.toLowerCase()) || this.#values.has(mask.toLowerCase()));
      this.#counts.set(name, number);
      this.#masks.set(`${name} ${text}`, mask);
      this.#values.set(mask.toLowerCase(), text);
    }
  }

  maskOf(name: string, value: string): string | undefined {
    return this.#masks.get(`${name} ${value}`);
  }

  /** The value for which a mask was issued. */
  issuedFor({ mask = '' }: Found): string | undefined {
    return this.#values.get(mask);
  }

  /** The value of a mask; the text itself if it is plain text; `undefined` if it was never issued. */
  valueOf(found: Found): string | undefined {
    const { mask = '', text } = found;
    return this.issuedFor(found) ?? (this.#quoted.has(mask) || !isNumbered(mask) ? text : undefined);
  }
}

function isNumbered(mask: string): boolean {
  return / \d+\]$/.test(mask);
}

/** The mask of a value that is hidden permanently. */
function withoutNumber(mask: string): string {
  return mask.replace(/[ _-]*\d+\]$/, ']');
}

/** The values found in the messages of one history; hides and restores them. */
class Masks implements RunMasks {
  /** Masks as they are issued, and as a model may spell them. */
  readonly #mark: RegExp;
  readonly #nearMark: RegExp;
  /** By message of a history, because every request contains it again. */
  readonly #known = new WeakMap<Message, readonly Found[]>();

  constructor(private readonly patterns: readonly MaskedPattern[]) {
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

  /** A text without the values; values without their own mask are hidden permanently. */
  text(text: string, issued?: IssuedMasks, isResult = false): string {
    return this.#replaced(text, (found) => {
      const { name, text: part } = found;
      if (name !== undefined) return issued?.maskOf(name, part) ?? `[${name}]`;
      // Tools receive values, so the mask was written for another run.
      return isResult && issued?.issuedFor(found) !== undefined ? withoutNumber(part) : part;
    });
  }

  messages(messages: readonly Message[], issued?: IssuedMasks): readonly Message[] {
    const masked: Message[] = [];
    let isChanged = false;
    for (const message of messages) {
      const isResult = message.role === 'tool';
      const isPlain = this.#foundIn(message).every(({ name }) => name === undefined && !isResult);
      const shown = isPlain ? message : maskedJson(message, (text) => this.text(text, issued, isResult));
      masked.push(shown as Message);
      isChanged ||= shown !== message;
    }
    return isChanged ? masked : messages;
  }

  /** Arguments with the values of their masks; `isHiding`: values in results are hidden permanently. */
  restored(args: JsonObject, issued: IssuedMasks, isHiding = false) {
    const faults: ArgumentFault[] = [];
    const restoreText = (value: string, path: string): string =>
      this.#replaced(value, (found) => {
        const { mask, text } = found;
        if (mask === undefined) return text;
        const original = issued.valueOf(found);
        if (original !== undefined && !(isHiding && issued.hidden.has(mask))) return original;
        const message = `has ${text}, which the hook '${NAME}' cannot restore: it replaces no value of this conversation; ask for the value, or leave it out`;
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

  revealed<Words>(words: Words, { history, readers }: MaskReading): Words {
    const issued = this.issuedIn(history);
    return maskedJson(words, (text) => this.#revealedText(text, issued, readers)) as Words;
  }

  #revealedText(text: string, issued: IssuedMasks, readers: readonly RunMasks[] | undefined): string {
    const isMask = ({ mask = '' }: Found) => isNumbered(mask);
    const masks = this.find(text).filter(isMask);
    const isRead = (mask: string) => readers?.some((reader) => reader.find(mask).some(isMask)) ?? true;
    const lost = new Set<Found>();
    for (;;) {
      let [result, at] = ['', 0];
      const values = new Map<string, Found>();
      for (const part of masks) {
        const value = lost.has(part) ? undefined : issued.issuedFor(part);
        result += text.slice(at, part.from);
        if (value !== undefined) values.set(`${result.length} ${result.length + value.length}`, part);
        result += value ?? (isRead(part.text) ? withoutNumber(part.text) : part.text);
        at = part.to;
      }
      result += text.slice(at);
      // With the text beside it, the reader may find a longer value, or none: then the mask is shown without number.
      for (const { name, from, to } of readers?.flatMap((reader) => reader.find(result)) ?? [])
        if (name !== undefined) values.delete(`${from} ${to}`);
      if (values.size === 0) return result;
      for (const part of values.values()) lost.add(part);
    }
  }

  #foundIn(message: Message): readonly Found[] {
    const known = this.#known.get(message);
    if (known !== undefined) return known;
    const found: Found[] = [];
    maskedJson(message, (text) => {
      found.push(...this.find(text));
      return text;
    });
    this.#known.set(message, found);
    return found;
  }

  #replaced(text: string, replace: (found: Found) => string): string {
    let [result, at] = ['', 0];
    for (const found of this.find(text)) {
      result += text.slice(at, found.from) + replace(found);
      at = found.to;
    }
    return result + text.slice(at);
  }

  /** In the order of the text. Later patterns ignore the matches of earlier ones. */
  find(text: string): readonly Found[] {
    let all = [...text.matchAll(this.#mark)].map(maskAt);
    const plain = text.includes('"') ? text.replace(ESCAPE, (escaped) => '\n'.repeat(escaped.length)) : text;
    for (const { name, pattern, isOne } of this.patterns)
      for (const searched of new Set([plain, text])) {
        const found = [...searched.matchAll(pattern)].flatMap(({ 0: { length }, index: from }): Found[] => {
          const value = text.slice(from, from + length);
          // A value never starts inside an escape.
          const isOutside = plain[from] === text[from] || text[from] === '\\';
          const isFound = isOutside && value !== '' && isOne?.(value) !== false;
          return isFound ? [{ from, to: from + length, name, text: value }] : [];
        });
        all = merged(all, found);
      }
    // After the patterns, because `[CUS-123456]` may be a value.
    return merged(all, [...text.matchAll(this.#nearMark)].map(maskAt));
  }
}

/** An escape in JSON text: the `n` of `\nann@example.org` is not part of the address. */
const ESCAPE = /\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})/g;

function maskAt({ 0: text, 1: name, 2: number, index }: RegExpExecArray): Found {
  const mask = `[${name}${number === undefined ? '' : ` ${number}`}]`.toLowerCase();
  return { from: index, to: index + text.length, text, mask };
}

/** Merges two sorted lists; entries of the second that overlap with the first are dropped. */
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

/** The same object if no member and no key changes. */
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

/** The least digits of numbers that are checked, because they may be card numbers. */
const LONG_NUMBER = 10;

/** Masks texts within a message, a reply or content; field names and base64 data do not change. */
function maskedJson(value: unknown, mask: Masking, key = ''): unknown {
  if (key === 'arguments') {
    // Servers parse call arguments in a history, so masking must keep valid JSON.
    const parsed = typeof value === 'string' ? parsedJson(value) : undefined;
    if (parsed === undefined) return maskedData(value, mask);
    const masked = maskedData(parsed, mask);
    return masked === parsed ? value : JSON.stringify(masked);
  }
  if (key === 'providerItems' || (typeof value === 'string' && OPAQUE.has(key))) return value;
  if (typeof value !== 'object') return maskedData(value, mask);
  return mapMembers(value, (member, name) => maskedJson(member, mask, Array.isArray(value) ? '' : name));
}

/** Masks texts and keys within any JSON. */
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

/** Ids connect the history, and data is not text. */
const OPAQUE = new Set([...['id', 'tool_call_id', 'role', 'type', 'name', 'data', 'mimeType']]);
