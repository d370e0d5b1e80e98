import type { JsonObject } from '../contract/json-schema.js';
import type { Message } from '../contract/llm-provider.js';
import { isRecord, setOwn } from '../kernel/json.js';

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
  /** Of the pattern that found a value; absent for a mask. */
  readonly name?: string;
}

/** A mask in an argument that cannot be restored. */
interface UnrestoredMask {
  readonly path: string;
  readonly mask: string;
}

/** What replaces the texts within JSON. */
export type Masking = (text: string) => string;

/**
 * The masks of one history. They are issued in the order in which values appear in it, so that a longer history gives
 * the same masks. A mask that was written before it is issued is somebody's text, and is never issued.
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
    for (const { name, text } of found) {
      if (name !== undefined) this.#issue(name, text);
      else if (!/\d\]$/.test(text)) {
        if (role === 'tool') this.hidden.add(text);
      } else if (!this.#values.has(text) && !this.#written.has(text)) {
        // Who wrote it first counts: what rejects the model's own invention repeats it.
        this.#written.add(text);
        if (role !== 'assistant') this.#quoted.add(text);
      }
    }
  }

  maskOf(name: string, value: string): string | undefined {
    return this.#masks.get(`${name} ${value}`);
  }

  /** What a mask stands for; itself where it is somebody's text; nothing where nobody issued it. */
  valueOf(mask: string): string | undefined {
    return this.#values.get(mask) ?? (this.#quoted.has(mask) ? mask : undefined);
  }

  #issue(name: string, value: string): void {
    if (this.maskOf(name, value) !== undefined) return;
    let number = this.#counts.get(name) ?? 0;
    let mask: string;
    do {
      number += 1;
      mask = `[${name} ${number}]`;
    } while (this.#written.has(mask));
    this.#counts.set(name, number);
    this.#masks.set(`${name} ${value}`, mask);
    this.#values.set(mask, value);
  }
}

/** What was found in the messages of one history, and what hides it and gives it back. */
export class Masks {
  readonly #patterns: readonly MaskedPattern[];
  readonly #mark: RegExp;
  /** Of messages of a history, which every request carries again. */
  readonly #known = new WeakMap<Message, readonly Found[]>();

  constructor(patterns: readonly MaskedPattern[]) {
    this.#patterns = patterns;
    const names = patterns.map(({ name }) => name.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&'));
    this.#mark = names.length === 0 ? /(?!)/g : new RegExp(`\\[(?:${names.join('|')})(?: \\d{1,9})?\\]`, 'g');
  }

  /** The masks of a history. */
  issuedIn(history: readonly Message[]): IssuedMasks {
    const issued = new IssuedMasks();
    for (const message of history) issued.add(message, this.#foundIn(message));
    return issued;
  }

  /** A text without the values; those without a mask of their own are hidden for good. */
  text(text: string, issued?: IssuedMasks): string {
    return replaced(text, this.#find(text), ({ name, text: value }) =>
      name === undefined ? value : (issued?.maskOf(name, value) ?? `[${name}]`),
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

  /**
   * Arguments with the values that their masks stand for, and the masks that stand for none; `isHiding`: values in
   * results are hidden for good.
   */
  restored(args: JsonObject, issued: IssuedMasks, isHiding = false) {
    const faults: UnrestoredMask[] = [];
    const restore = (value: unknown, path: string): unknown => {
      if (typeof value === 'string')
        return value.replace(this.#mark, (mask) => {
          const isNumbered = /\d\]$/.test(mask);
          const original = isNumbered ? issued.valueOf(mask) : mask;
          if (original === undefined || (isHiding && issued.hidden.has(mask))) faults.push({ path, mask });
          return original ?? mask;
        });
      return mapMembers(value, (member, key) => restore(member, path === '' ? key : `${path}.${key}`));
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

  /** In the order of the text. What one pattern has found is not looked at by those after it. */
  #find(text: string): readonly Found[] {
    let all = [...text.matchAll(this.#mark)].map((match) => foundAt(match));
    for (const { name, pattern, isOne } of this.#patterns) {
      const found = [...text.matchAll(pattern)]
        .filter(([value]) => value !== '' && isOne?.(value) !== false)
        .map((match) => foundAt(match, name));
      all = merged(all, found);
    }
    return all;
  }
}

function foundAt({ 0: text, index }: RegExpExecArray, name?: string): Found {
  return { from: index, to: index + text.length, text, ...(name === undefined ? {} : { name }) };
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

function replaced(text: string, found: readonly Found[], replace: (one: Found) => string): string {
  let [result, at] = ['', 0];
  for (const one of found) {
    result += text.slice(at, one.from) + replace(one);
    at = one.to;
  }
  return at === 0 ? text : result + text.slice(at);
}

/** The same where no member changes. */
function mapMembers(value: unknown, map: (member: unknown, key: string) => unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item, index) => map(item, String(index)));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  if (!isRecord(value)) return value;
  const fields = Object.entries(value).map(([name, field]) => [name, map(field, name)] as const);
  if (fields.every(([name, field]) => field === value[name])) return value;
  const changed: JsonObject = {};
  for (const [name, field] of fields) setOwn(changed, name, field);
  return changed;
}

/** The texts within JSON; names of fields, and what is encoded in base64, stay as they are. */
export function maskedJson(value: unknown, mask: Masking, key?: string): unknown {
  if (typeof value === 'string') return maskedField(value, mask, key);
  if (typeof value === 'number') return maskedNumber(value, mask);
  if (key === 'providerItems') return value;
  return mapMembers(value, (member, name) =>
    maskedJson(member, mask, Array.isArray(value) ? undefined : name),
  );
}

function maskedField(text: string, mask: Masking, key: string | undefined): string {
  if (OPAQUE.has(key ?? '') || text.startsWith('data:')) return text;
  return key === 'arguments' ? maskedJsonText(text, mask) : mask(text);
}

/** Servers parse the arguments of calls in a history: what is hidden in them must leave JSON. */
function maskedJsonText(text: string, mask: Masking): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return mask(text);
  }
  const masked = maskedJson(parsed, mask);
  return masked === parsed ? text : JSON.stringify(masked);
}

/** Digits from which on a number is looked at: it may be one of a card. */
const LONG_NUMBER = 10;

function maskedNumber(value: number, mask: Masking): unknown {
  const text = String(value);
  const masked = text.length < LONG_NUMBER ? text : mask(text);
  return masked === text ? value : masked;
}

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
