import type { Message, ToolMessage } from '../../core/contract/llm-provider.js';
import { invalidOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { cached } from '../../core/kernel/cached.js';
import { isRecord } from '../../core/kernel/json.js';
import { COUNT_LIMIT, LIMIT, optionTable } from '../../core/kernel/options.js';

/** How much of a history requests contain; at least one limit is required. */
export interface KeepRecentOptions {
  /** The last turns; a turn starts with a user message. */
  readonly turns?: number;
  /** The most tokens, estimated. A token has four characters; an image or a file has a thousand tokens. */
  readonly tokens?: number;
  /** The most characters of an old tool result; default: 2,000. `Infinity`: results are not cut. */
  readonly maxResultChars?: number;
}

const OPTIONS = optionTable<KeepRecentOptions>('keepRecent', {
  turns: COUNT_LIMIT,
  tokens: COUNT_LIMIT,
  maxResultChars: LIMIT,
});

type KeepRecent = (messages: readonly Message[]) => readonly Message[];

/**
 * A `compactHistory` that keeps the end of the history: all system messages, and the last turns or as much as fits
 * into a number of tokens. Old tool results are cut first, with a note. A call stays with its answers. The last user
 * message and the last message always stay.
 *
 * With `tokens`, the history is cut only when it exceeds the limit, and then to three quarters. Until the next cut,
 * requests start with the same messages, as required by provider caches.
 *
 * @throws InvalidOptionsError (521) for invalid or missing options.
 *
 * @example
 * ```ts
 * const compactHistory = keepRecent({ tokens: 60_000, maxResultChars: 1_000 });
 * const run = await runToolLoop({ provider, model, tools, compactHistory }, messages);
 * ```
 */
export function keepRecent(options: KeepRecentOptions): KeepRecent {
  const fix = 'keepRecent({ tokens: 60_000 })';
  const none = { where: 'keepRecent', option: '', problem: 'neither turns nor tokens is set', fix };
  const isEmpty = isRecord(options) && Object.values(options).every((value) => value === undefined);
  refuseOptions([...invalidOptions(options, OPTIONS), ...(isEmpty ? [none] : [])]);
  /** By the first message of each history: if it has grown, only the new part is read. */
  const known = new WeakMap<Message, RecentHistory>();
  const keep: KeepRecent = (messages) => {
    const [first] = messages;
    if (first === undefined) return [];
    let history = known.get(first);
    if (history === undefined || !history.isContinuedBy(messages)) {
      history = new RecentHistory(options);
      known.set(first, history);
    }
    return history.follow(messages).slice();
  };
  const ofRuns = new WeakMap<readonly Message[], RecentHistory>();
  keptOf.set(keep, (history) => cached(ofRuns, history, () => new RecentHistory(options)).follow(history));
  return keep;
}

/**
 * The function of each `keepRecent` for the history of a run. That history only grows, so it is neither compared nor
 * copied, and the result needs no check.
 */
export const keptOf = new WeakMap<object, KeepRecent>();

/** Messages that are kept or dropped together: a message, or one with calls and its answers. */
interface Unit {
  readonly index: number;
  readonly messages: readonly Message[];
  /** Always kept. */
  readonly isSystem: boolean;
  readonly tokens: number;
  /** With its results cut. */
  readonly cut: readonly Message[];
  readonly cutTokens: number;
  isDropped: boolean;
}

const DEFAULT_RESULT_CHARS = 2_000;

/** The part that remains after a cut, so that the next cut is some requests away. */
const KEPT_PART = 0.75;

/**
 * The kept part of a growing history. Units are added in order, so that a longer history has the same cuts as before,
 * and starts with the same messages.
 */
class RecentHistory {
  readonly #turns: number;
  readonly #tokens: number | undefined;
  readonly #maxResultChars: number;
  readonly #units: Unit[] = [];
  #kept: Unit[] = [];
  readonly #followed: Message[] = [];
  /** The messages of the kept units, and whether the units have changed since the list was built. */
  #messages: Message[] = [];
  #isStale = false;
  /** The starts of kept turns; messages before the first user message belong to its turn. */
  readonly #starts: number[] = [];
  #lastUser = -1;
  /** Units before this one have their results cut. */
  #cutBefore = 0;
  #total = 0;

  constructor({ turns, tokens, maxResultChars }: KeepRecentOptions) {
    this.#turns = turns ?? Number.POSITIVE_INFINITY;
    this.#tokens = tokens;
    this.#maxResultChars = maxResultChars ?? DEFAULT_RESULT_CHARS;
  }

  /** Whether a history is the same one, with or without further units. */
  isContinuedBy(messages: readonly Message[]): boolean {
    const { length } = this.#followed;
    if (messages.length < length || messages[length]?.role === 'tool') return false;
    for (let index = 0; index < length; index += 1)
      if (messages[index] !== this.#followed[index]) return false;
    return true;
  }

  /** Adds new units, and returns the kept messages: a list that only grows, until another replaces it. */
  follow(messages: readonly Message[]): readonly Message[] {
    for (let from = this.#followed.length, to = from; from < messages.length; from = to) {
      to = from + 1;
      while (messages[to]?.role === 'tool') to += 1;
      const unit = messages.slice(from, to);
      this.#add(unit);
      this.#followed.push(...unit);
      if (!this.#isStale) this.#messages.push(...unit);
    }
    if (this.#isStale) {
      this.#isStale = false;
      this.#kept = this.#kept.filter(({ isDropped }) => !isDropped);
      this.#messages = this.#kept.flatMap(({ index, messages, cut }) =>
        index < this.#cutBefore ? cut : messages,
      );
    }
    return this.#messages;
  }

  #add(messages: readonly Message[]): void {
    const index = this.#units.length;
    const role = messages[0]?.role;
    const cut = messages.map((message) => withCutResult(message, this.#maxResultChars));
    const unit: Unit = {
      index,
      messages,
      isSystem: role === 'system' || role === 'developer',
      tokens: tokensOf(messages),
      cut,
      cutTokens: tokensOf(cut),
      isDropped: false,
    };
    this.#units.push(unit);
    this.#kept.push(unit);
    this.#total += unit.tokens;
    if (role === 'user') {
      this.#starts.push(this.#lastUser < 0 ? 0 : index);
      this.#lastUser = index;
    }
    while (this.#starts.length > this.#turns) this.#dropTurn();
    if (this.#tokens === undefined) this.#cutTo(this.#starts.at(-1) ?? 0);
    else if (this.#total > this.#tokens) {
      // Drops results, then turns, then the oldest parts of the last turn.
      const wanted = this.#tokens * KEPT_PART;
      for (const { isDropped, tokens, cutTokens } of this.#units.slice(this.#cutBefore, index))
        if (!isDropped) this.#total -= tokens - cutTokens;
      this.#cutTo(index);
      while (this.#total > wanted && this.#starts.length > 1) this.#dropTurn();
      for (const kept of this.#kept) {
        if (kept.index >= index || this.#total <= wanted) break;
        if (kept.index >= (this.#starts[0] ?? 0) && kept.index !== this.#lastUser) this.#drop(kept.index);
      }
    }
  }

  #cutTo(index: number): void {
    this.#isStale ||= index !== this.#cutBefore;
    this.#cutBefore = index;
  }

  #dropTurn(): void {
    const [from = 0, to = from] = this.#starts;
    for (let index = from; index < to; index += 1) this.#drop(index);
    this.#starts.shift();
  }

  #drop(index: number): void {
    const unit = this.#units[index];
    if (unit === undefined || unit.isSystem || unit.isDropped) return;
    unit.isDropped = true;
    this.#isStale = true;
    this.#total -= index < this.#cutBefore ? unit.cutTokens : unit.tokens;
  }
}

const CHARS_PER_TOKEN = 4;
/** For an image or a file, whose data does not show how many tokens it has. */
const ATTACHMENT_CHARS = 4_000;
const FRAME_CHARS = 16;

function tokensOf(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + Math.ceil(charsOf(message) / CHARS_PER_TOKEN), 0);
}

function charsOf(message: Message): number {
  const { content } = message;
  let chars = FRAME_CHARS;
  if (typeof content === 'string') chars += content.length;
  else
    for (const part of (content ?? []) as readonly unknown[])
      chars += isRecord(part) && typeof part.text === 'string' ? part.text.length : ATTACHMENT_CHARS;
  if (message.role === 'tool') return chars + attachmentsOf(message).length * ATTACHMENT_CHARS;
  if (message.role !== 'assistant') return chars;
  for (const { id, function: called, providerItems } of message.tool_calls ?? [])
    chars +=
      FRAME_CHARS + id.length + called.name.length + called.arguments.length + itemsChars(providerItems);
  return chars + itemsChars(message.providerItems);
}

function itemsChars(items: unknown): number {
  return items === undefined ? 0 : JSON.stringify(items).length;
}

function attachmentsOf({ parts = [] }: ToolMessage): readonly string[] {
  return parts.flatMap(({ type }) => (type === 'text' ? [] : [type]));
}

/** Cuts a long tool result and marks it; other messages do not change. */
function withCutResult(message: Message, maxChars: number): Message {
  if (message.role !== 'tool') return message;
  const { parts, ...plain } = message;
  const attachments = attachmentsOf(message);
  const isHeavy = attachments.length > 0 && maxChars < ATTACHMENT_CHARS;
  const kept = message.content.slice(0, maxChars).toWellFormed();
  const left = message.content.length - kept.length;
  const text = `${kept}\n[${left} more characters of this old result were left out]`;
  const isLong = text.length < message.content.length;
  if (!isHeavy && !isLong) return message;
  const marks = isHeavy ? attachments.map((type) => `\n[${type} left out]`) : [];
  const cut = { ...plain, content: (isLong ? text : message.content) + marks.join('') };
  if (isHeavy || parts === undefined) return cut;
  return { ...cut, parts: [{ type: 'text', content: text }, ...parts.filter(({ type }) => type !== 'text')] };
}
