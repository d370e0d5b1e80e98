import { SafeLog } from '../call/log.js';
import type { AssistantMessage, Message, MessageToolCall, ToolMessage } from '../contract/llm-provider.js';
import type { Logger } from '../contract/ports.js';
import type { InvalidOption } from '../errors/author-fault.js';
import { isRecord } from '../kernel/json.js';
import { misspeltName } from '../kernel/nearest-name.js';

/** What is done about an invalid history that a run is given: it is mended with a note in the log, or refused. */
export type HistoryCare = 'mend' | 'refuse';

const ROLES: ReadonlySet<unknown> = new Set(['system', 'developer', 'user', 'assistant', 'tool']);

const MESSAGE_KEYS = [
  'role',
  'content',
  'name',
  'tool_calls',
  'tool_call_id',
  'isError',
  'parts',
  'found',
  'kept',
  'reasoning',
  'providerItems',
];
const KEYS: ReadonlySet<string> = new Set(MESSAGE_KEYS);

/** A problem, and what to write instead. */
type Problem = readonly [problem: string, fix: string];

/** `unclear`: it cannot be told what was meant; `odd`: answers and calls that fit nothing; `open`: what lacks. */
type FaultKind = 'unclear' | 'odd' | 'open';

/** Which faults count: those that no mending helps, those that no run of this framework leaves, or all. */
const COUNTED = {
  mend: ['unclear'],
  state: ['unclear', 'odd'],
  refuse: ['unclear', 'odd', 'open'],
} as const satisfies Record<HistoryCare | 'state', readonly FaultKind[]>;

/** What of a history no provider would take, and what cannot be told from it. */
export function historyFaults(messages: unknown, care: keyof typeof COUNTED = 'state'): InvalidOption[] {
  if (!Array.isArray(messages))
    return [faultAt('', ['they are no array', "messages: [{ role: 'user', content: '…' }]"])];
  const counted: readonly FaultKind[] = COUNTED[care];
  const faults: InvalidOption[] = [];
  const tell: TellFault = (index, kind, problem) => {
    if (counted.includes(kind)) faults.push(faultAt(`[${index}]`, problem));
  };
  let open = NO_CALLS;
  for (const [index, message] of messages.entries()) {
    const isAnswer = isRecord(message) && message.role === 'tool';
    const calls = isRecord(message) && message.role === 'assistant' ? callsOf(message) : NONE;
    if (!isAnswer) {
      if (open.ids.size > 0) tellOpen(open, tell);
      open = calls.length > 0 ? openCallsOf(index, calls) : NO_CALLS;
    }
    const unclear = unclearProblem(message);
    if (unclear !== undefined) tell(index, 'unclear', unclear);
    else if (!isAnswer && open.ids.size < calls.length) tell(index, 'odd', SAME_ID);
    if (!isAnswer) continue;
    const { tool_call_id: id } = message;
    if (open.ids.has(id) && !open.answered.has(id)) open.answered.add(id);
    else if (unclear === undefined) tell(index, 'odd', strayProblem(id));
  }
  if (open.ids.size > 0) tellOpen(open, tell);
  return faults;
}

function faultAt(place: string, [problem, fix]: Problem): InvalidOption {
  const option = `messages${place}`;
  return { where: 'the history', option, problem: place === '' ? problem : `${option} ${problem}`, fix };
}

type TellFault = (index: number, kind: FaultKind, problem: Problem) => void;

/** The calls of one message, and which of them are answered so far. */
interface OpenCalls {
  readonly index: number;
  readonly ids: ReadonlySet<unknown>;
  readonly answered: Set<unknown>;
}

/** Of most messages there are none. */
const NO_CALLS: OpenCalls = { index: -1, ids: new Set(), answered: new Set() };

const NONE: readonly unknown[] = [];

function openCallsOf(index: number, calls: readonly unknown[]): OpenCalls {
  const ids = new Set(calls.map((call) => (isRecord(call) ? call.id : undefined)));
  return { index, ids, answered: new Set() };
}

const SAME_ID: Problem = ['has two calls of the same id', 'an id of its own for each call of a message'];

function strayProblem(id: unknown): Problem {
  return [
    `answers '${id}', which no assistant message right before it calls, or which is answered already`,
    'the history from the assistant message with that call on, or without its answers',
  ];
}

function tellOpen({ index, ids, answered }: OpenCalls, tell: TellFault): void {
  const inOrder = [...ids].filter((id) => answered.has(id));
  const given = [...answered];
  for (const id of ids)
    if (!answered.has(id))
      tell(index, 'open', [
        `calls '${id}', which no message right after it answers`,
        `{ role: 'tool', tool_call_id: '${id}', content: '…' } after it, or the message without the call`,
      ]);
  if (inOrder.some((id, position) => id !== given[position]))
    tell(index, 'open', ['has its answers in another order than its calls', 'the answers in call order']);
}

function unclearProblem(message: unknown): Problem | undefined {
  if (!isRecord(message)) return ['is no message', "{ role: 'user', content: '…' }"];
  const slip = keyProblem(message);
  if (slip !== undefined) return slip;
  const { role, content } = message;
  if (!ROLES.has(role))
    return [
      `has the role ${JSON.stringify(role)}`,
      `one of ${[...ROLES].map((known) => `'${known}'`).join(', ')}`,
    ];
  if (role === 'tool') return answerProblem(message);
  const hasCalls = role === 'assistant' && callsOf(message).length > 0;
  const isText = typeof content === 'string' || (Array.isArray(content) && content.length > 0);
  const isMissing = content === undefined || content === null;
  if (!isText && !(isMissing && hasCalls))
    return ['has a content that is no text', 'content: a text, or parts as the provider takes them'];
  return role === 'assistant' ? callsProblem(message.tool_calls) : undefined;
}

/** Providers have keys of their own, which go to them as they are; `toolCalls` would be a call that nobody sees. */
function keyProblem(message: Readonly<Record<string, unknown>>): Problem | undefined {
  for (const key in message) {
    if (KEYS.has(key)) continue;
    const meant = misspeltName(key, MESSAGE_KEYS);
    if (meant !== undefined && message[meant] === undefined)
      return [`has the key '${key}' (did you mean \`${meant}\`?)`, `${meant}: …`];
  }
  return undefined;
}

function answerProblem({
  tool_call_id: id,
  content,
  isError = false,
}: Readonly<Record<string, unknown>>): Problem | undefined {
  if (typeof content !== 'string')
    return ['has a content that is no text', 'content: JSON.stringify(result)'];
  if (typeof isError !== 'boolean') return ['has an isError that is neither true nor false', 'isError: true'];
  if (typeof id !== 'string') return ['does not say which call it answers', "tool_call_id: 'call_1'"];
  return undefined;
}

function callsProblem(calls: unknown): Problem | undefined {
  if (calls === undefined || calls === null) return undefined;
  const fix = "tool_calls: [{ id: 'call_1', type: 'function', function: { name, arguments: '{}' } }]";
  if (!Array.isArray(calls)) return ['has calls that are no array', fix];
  return calls.every(isCall) ? undefined : ['has a call that is none', fix];
}

function isCall(call: unknown): call is MessageToolCall {
  if (!isRecord(call) || typeof call.id !== 'string' || call.id === '') return false;
  const named = call.function;
  return isRecord(named) && typeof named.name === 'string' && typeof named.arguments === 'string';
}

function callsOf({ tool_calls: calls }: Readonly<Record<string, unknown>>): readonly unknown[] {
  return Array.isArray(calls) ? calls : NONE;
}

/** A history without faults, and what was done about those it had: one line each, with its place. */
export interface MendedHistory {
  readonly messages: Message[];
  readonly mends: readonly string[];
}

/** A call of a message, under the id that it has in the end, and its answer. */
interface CallSlot {
  readonly call: MessageToolCall;
  readonly entry: Entry;
  readonly position: number;
  answer?: ToolMessage;
}

/** A message that is no answer, with its calls. */
interface Entry {
  readonly message: Message;
  readonly index: number;
  readonly slots: CallSlot[];
  /** Position of the last call that has its answer. */
  answered: number;
}

/** What stands for the answer of a call that has none; nothing leaves the call out. */
type FindAnswer = (call: MessageToolCall, message: AssistantMessage) => ToolMessage | undefined;

/**
 * A history as strict servers take it, out of one that is clear (`historyFaults(messages, 'mend')`): answers in
 * the order of their calls, one for each call. A late answer goes to its call, and what answers nothing is left
 * out. A call that nobody answered, as after a crash, may have been done or not: that is what it is answered with.
 */
export function mendHistory(
  history: readonly Message[],
  findAnswer: FindAnswer = interrupted,
): MendedHistory {
  const mending = new Mending();
  for (const [index, message] of history.entries()) mending.add(message, index);
  return mending.finish(findAnswer);
}

/** The history that a run begins with. */
export interface GivenHistory {
  readonly messages: readonly Message[];
  /** It was checked before. The run appends to this array, and the next run of the conversation goes on with it. */
  readonly isShared?: true;
}

/** The history that a caller gives, repaired; the caller may not know what it lacks, and the log reports it. */
export function givenHistory(
  { messages: given, isShared }: GivenHistory,
  logger: Logger | undefined,
): Message[] {
  if (isShared) return given as Message[];
  if (given.every(({ role }) => role !== 'assistant' && role !== 'tool')) return [...given];
  const { messages, mends } = mendHistory(given);
  if (mends.length > 0) new SafeLog(logger).warn('A history that was given was mended', { mends });
  return messages;
}

class Mending {
  readonly #entries: Entry[] = [];
  readonly #mends: string[] = [];
  /** By the ids that the history has; of a later message with the same ids, those. */
  readonly #slots = new Map<string, CallSlot[]>();

  add(message: Message, index: number): void {
    if (message.role === 'tool') {
      this.#answer(message, index);
      return;
    }
    const entry: Entry = { message, index, slots: [], answered: -1 };
    this.#entries.push(entry);
    if (message.role === 'assistant') this.#open(message.tool_calls ?? [], entry);
  }

  finish(findAnswer: FindAnswer): MendedHistory {
    const messages: Message[] = [];
    for (const entry of this.#entries) {
      const { message, slots } = entry;
      if (message.role !== 'assistant') {
        messages.push(message);
        continue;
      }
      const answered = slots.flatMap((slot) => this.#answered(slot, message, findAnswer));
      const spoken = withCalls(
        message,
        answered.map(({ call }) => call),
      );
      if (spoken !== undefined) messages.push(spoken, ...answered.map(({ answer }) => answer));
    }
    return { messages, mends: this.#mends };
  }

  #open(calls: readonly MessageToolCall[], entry: Entry): void {
    const here = new Map<string, CallSlot[]>();
    const ids = new Set(calls.map(({ id }) => id));
    for (const given of calls) {
      const same = here.get(given.id) ?? [];
      const call = same.length === 0 ? given : { ...given, id: freeId(given.id, ids) };
      if (call !== given)
        this.#mends.push(`messages[${entry.index}]: the second call '${given.id}' was named '${call.id}'`);
      const slot = { call, entry, position: entry.slots.length };
      entry.slots.push(slot);
      here.set(given.id, [...same, slot]);
    }
    for (const [id, slots] of here) this.#slots.set(id, slots);
  }

  #answer(message: ToolMessage, index: number): void {
    const { tool_call_id: id } = message;
    const slots = this.#slots.get(id);
    const slot = slots?.find(({ answer }) => answer === undefined);
    const place = `messages[${index}]`;
    if (slot === undefined) {
      const what = slots === undefined ? 'which no message before it calls' : 'which is answered already';
      this.#mends.push(`${place}: an answer to '${id}' was left out, ${what}`);
      return;
    }
    const { entry, call, position } = slot;
    slot.answer = call.id === id ? message : { ...message, tool_call_id: call.id };
    if (entry !== this.#entries.at(-1) || position < entry.answered)
      this.#mends.push(
        `${place}: the answer to '${id}' was moved to its place after messages[${entry.index}]`,
      );
    entry.answered = Math.max(entry.answered, position);
  }

  #answered(
    { call, answer, entry: { index } }: CallSlot,
    message: AssistantMessage,
    findAnswer: FindAnswer,
  ): readonly { readonly call: MessageToolCall; readonly answer: ToolMessage }[] {
    if (answer !== undefined) return [{ call, answer }];
    const found = findAnswer(call, message);
    const what =
      found === undefined ? 'was left out, because it has no answer' : 'had no answer, and got one';
    this.#mends.push(`messages[${index}]: the call '${call.id}' of '${call.function.name}' ${what}`);
    return found === undefined ? [] : [{ call, answer: found }];
  }
}

function freeId(id: string, ids: Set<string>): string {
  let number = 2;
  while (ids.has(`${id}_${number}`)) number += 1;
  ids.add(`${id}_${number}`);
  return `${id}_${number}`;
}

/** The message with these calls; nothing where it says nothing any more. Strict servers refuse an empty list. */
function withCalls(
  message: AssistantMessage,
  calls: readonly MessageToolCall[],
): AssistantMessage | undefined {
  const given = message.tool_calls ?? [];
  if (
    calls.length === given.length &&
    calls.every((call, index) => call === given[index]) &&
    calls.length > 0
  )
    return message;
  if (calls.length > 0) return { ...message, tool_calls: calls };
  if (given.length > 0 && !message.content) return undefined;
  if (!('tool_calls' in message)) return message;
  const { tool_calls: _, ...others } = message;
  return others;
}

function interrupted({ id, function: { name } }: MessageToolCall): ToolMessage {
  const content = `The call of '${name}' was interrupted, and no result of it was kept. It may have been done.`;
  return { role: 'tool', content, tool_call_id: id, isError: true };
}
