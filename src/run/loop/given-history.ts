import type {
  AssistantMessage,
  Message,
  MessageToolCall,
  ToolMessage,
} from '../../core/contract/llm-provider.js';
import type { Logger } from '../../core/contract/ports.js';
import type { InvalidOption } from '../../core/errors/author-fault.js';
import { isRecord } from '../../core/kernel/json.js';
import { misspeltName } from '../../core/kernel/nearest-name.js';
import { safeLog } from '../call/log.js';

/** How an invalid history is handled: it is repaired with a note in the log, or refused. */
export type HistoryCare = 'repair' | 'refuse';

const ROLES: ReadonlySet<unknown> = new Set(['system', 'developer', 'user', 'assistant', 'tool']);

const MESSAGE_KEYS = [
  ...['role', 'content', 'name', 'tool_calls', 'tool_call_id', 'isError', 'parts', 'found', 'kept'],
  ...['reasoning', 'providerItems'],
];
const KEYS: ReadonlySet<string> = new Set(MESSAGE_KEYS);

type Problem = readonly [problem: string, fix: string];

/** The faults for which providers would refuse a history, and ambiguous parts of it. */
export function historyFaults(messages: unknown, care: HistoryCare | 'state' = 'state'): InvalidOption[] {
  const where = 'the history';
  if (!Array.isArray(messages)) {
    const fix = "messages: [{ role: 'user', content: '…' }]";
    return [{ where, option: 'messages', problem: 'messages is not an array', fix }];
  }
  const faults: { readonly index: number; readonly fault: Problem }[] = [];
  const clear = messages.map((message, index): Message | undefined => {
    const fault = unclearProblem(message);
    if (fault === undefined) return message;
    faults.push({ index, fault });
    return undefined;
  });
  if (care !== 'repair') {
    const { entries, findings } = pairAnswers(clear);
    faults.push(...findings.filter(({ isOdd }) => isOdd || care === 'refuse'));
    if (care === 'refuse') faults.push(...entries.flatMap(unansweredCalls));
  }
  return faults
    .sort((one, other) => one.index - other.index)
    .map(({ index, fault: [problem, fix] }) => {
      const option = `messages[${index}]`;
      return { where, option, problem: `${option} ${problem}`, fix };
    });
}

function unansweredCalls({ index, slots }: Entry) {
  return slots.flatMap(({ call: { id }, answer }) => {
    if (answer !== undefined) return [];
    const fix = `{ role: 'tool', tool_call_id: '${id}', content: '…' } after it, or the message without the call`;
    return { index, fault: [`calls '${id}', which no message right after it answers`, fix] as const };
  });
}

function unclearProblem(message: unknown): Problem | undefined {
  if (!isRecord(message)) return ['is not a message', "{ role: 'user', content: '…' }"];
  // Providers may have further keys, which are passed on unchanged; but `toolCalls` would be a call that is ignored.
  for (const key in message) {
    if (KEYS.has(key)) continue;
    const meant = misspeltName(key, MESSAGE_KEYS);
    if (meant !== undefined && message[meant] === undefined)
      return [`has the key '${key}' (did you mean \`${meant}\`?)`, `${meant}: …`];
  }
  const { role, content } = message;
  if (!ROLES.has(role))
    return [
      `has the role ${JSON.stringify(role)}`,
      `one of ${[...ROLES].map((known) => `'${known}'`).join(', ')}`,
    ];
  if (role === 'tool') {
    const { tool_call_id: id, isError = false } = message;
    if (typeof content !== 'string')
      return ['has a content that is not a string', 'content: JSON.stringify(result)'];
    if (typeof isError !== 'boolean')
      return ['has an isError that is neither true nor false', 'isError: true'];
    return typeof id === 'string'
      ? undefined
      : ['has no `tool_call_id`, so the call that it answers is unknown', "tool_call_id: 'call_1'"];
  }
  const { tool_calls: calls } = message;
  const hasCalls = role === 'assistant' && Array.isArray(calls) && calls.length > 0;
  const isText = typeof content === 'string' || (Array.isArray(content) && content.length > 0);
  const isMissing = content === undefined || content === null;
  if (!isText && !(isMissing && hasCalls))
    return ['has a content that is not a string', 'content: a string, or parts that the provider accepts'];
  if (role !== 'assistant' || calls === undefined || calls === null) return undefined;
  const fix = "tool_calls: [{ id: 'call_1', type: 'function', function: { name, arguments: '{}' } }]";
  if (!Array.isArray(calls)) return ['has calls that are not an array', fix];
  return calls.every(isCall) ? undefined : ['has an invalid call', fix];
}

function isCall(call: unknown): call is MessageToolCall {
  if (!isRecord(call) || typeof call.id !== 'string' || call.id === '') return false;
  const named = call.function;
  return isRecord(named) && typeof named.name === 'string' && typeof named.arguments === 'string';
}

/** A history without faults, and the repairs: one line each, with its place. */
export interface RepairedHistory {
  readonly messages: Message[];
  readonly repairs: readonly string[];
}

/** A call of a message, under its final id, and its answer. */
interface CallSlot {
  readonly call: MessageToolCall;
  readonly entry: Entry;
  readonly position: number;
  answer?: ToolMessage | undefined;
}

/** A message that is not an answer, with its calls. */
interface Entry {
  readonly message: Message;
  readonly index: number;
  readonly slots: CallSlot[];
  /** Position of the last call that has its answer. */
  answered: number;
}

/** A message that strict servers refuse: the fault, and its repair. */
interface Finding {
  readonly index: number;
  /** Runs of this framework never produce it. */
  readonly isOdd: boolean;
  readonly fault: Problem;
  readonly repair: string;
}

/** Assigns each answer to the first call before it with its id and without an answer; skips `undefined`. */
function pairAnswers(history: readonly (Message | undefined)[]) {
  const findings: Finding[] = [];
  const entries: Entry[] = [];
  /** By the ids in the history; ids of a later message replace equal ones. */
  const slotsOf = new Map<string, CallSlot[]>();
  for (const [index, message] of history.entries()) {
    if (message?.role === 'tool') {
      const { tool_call_id: id } = message;
      const finding = placeAnswer(message, slotsOf.get(id), { index, last: entries.at(-1) });
      if (finding !== undefined) findings.push(finding);
    } else if (message !== undefined) {
      const entry: Entry = { message, index, slots: [], answered: -1 };
      entries.push(entry);
      const calls = message.role === 'assistant' ? message.tool_calls : undefined;
      if (!calls?.length) continue;
      findings.push(...addSlots(entry, calls));
      for (const [id, slots] of Map.groupBy(entry.slots, ({ position }) => calls[position]?.id ?? ''))
        slotsOf.set(id, slots);
    }
  }
  return { entries, findings };
}

/** Adds the calls of a message; a repeated id is replaced. */
function addSlots(entry: Entry, calls: readonly MessageToolCall[]): readonly Finding[] {
  const findings: Finding[] = [];
  const ids = new Set(calls.map(({ id }) => id));
  const seen = new Set<string>();
  const { index, slots } = entry;
  for (const [position, given] of calls.entries()) {
    let call = given;
    if (seen.has(given.id)) {
      let number = 2;
      while (ids.has(`${given.id}_${number}`)) number += 1;
      call = { ...given, id: `${given.id}_${number}` };
      ids.add(call.id);
      const repair = `messages[${index}]: the second call '${given.id}' was renamed to '${call.id}'`;
      const fault = ['has two calls of the same id', 'a different id for each call of a message'] as const;
      findings.push({ index, isOdd: true, fault, repair });
    }
    seen.add(given.id);
    slots.push({ call, entry, position });
  }
  return findings;
}

function placeAnswer(
  message: ToolMessage,
  slots: readonly CallSlot[] | undefined,
  { index, last }: { readonly index: number; readonly last: Entry | undefined },
): Finding | undefined {
  const { tool_call_id: id } = message;
  const slot = slots?.find(({ answer }) => answer === undefined);
  const fault = [
    `answers '${id}', which no assistant message right before it calls, or which is already answered`,
    'the history from the assistant message with that call on, or without its answers',
  ] as const;
  if (slot === undefined) {
    const what = slots === undefined ? 'which no message before it calls' : 'which is already answered';
    return {
      index,
      isOdd: true,
      fault,
      repair: `messages[${index}]: an answer to '${id}' was left out, ${what}`,
    };
  }
  const { entry, call, position } = slot;
  slot.answer = call.id === id ? message : { ...message, tool_call_id: call.id };
  const isLate = entry !== last;
  const isInOrder = position > entry.answered;
  entry.answered = Math.max(entry.answered, position);
  if (!isLate && isInOrder) return undefined;
  const repair = `messages[${index}]: the answer to '${id}' was moved to its place after messages[${entry.index}]`;
  if (isLate) return { index, isOdd: true, fault, repair };
  const order = ['has its answers in another order than its calls', 'the answers in call order'] as const;
  return { index: entry.index, isOdd: false, fault: order, repair };
}

/** The answer of a call without an answer; `undefined` removes the call. */
type FindAnswer = (call: MessageToolCall, message: AssistantMessage) => ToolMessage | undefined;

/**
 * Converts an unambiguous history (`historyFaults(messages, 'repair')`) to the form that strict servers accept:
 * answers in the order of their calls, one for each call. A late answer is moved to its call, and an answer without a
 * call is removed. A call without an answer, as after a crash, may or may not have been executed; its answer states
 * this.
 */
export function repairHistory(
  history: readonly Message[],
  findAnswer: FindAnswer = interrupted,
): RepairedHistory {
  const { entries, findings } = pairAnswers(history);
  const repairs = findings.map(({ repair }) => repair);
  const messages: Message[] = [];
  for (const { message, index, slots } of entries) {
    if (message.role !== 'assistant') {
      messages.push(message);
      continue;
    }
    for (const slot of slots) {
      if (slot.answer !== undefined) continue;
      const { call } = slot;
      slot.answer = findAnswer(call, message);
      const what =
        slot.answer === undefined
          ? 'was left out, because it has no answer'
          : 'had no answer, so one was added';
      repairs.push(`messages[${index}]: the call '${call.id}' of '${call.function.name}' ${what}`);
    }
    const answered = slots.filter(({ answer }) => answer !== undefined);
    const spoken = withCalls(
      message,
      answered.map(({ call }) => call),
    );
    if (spoken !== undefined) messages.push(spoken, ...answered.map(({ answer }) => answer as ToolMessage));
  }
  return { messages, repairs };
}

/** The history at the start of a run. */
export interface GivenHistory {
  readonly messages: readonly Message[];
  /** It was checked before. The run appends to this array, and the next run of the conversation continues with it. */
  readonly isShared?: true;
}

/** The repaired history of a caller; the log reports the repairs, because the caller may not be aware of the faults. */
export function givenHistory(history: GivenHistory, logger: Logger | undefined): Message[] {
  const given = history.messages;
  if (history.isShared) return given as Message[];
  if (given.every(({ role }) => role !== 'assistant' && role !== 'tool')) return [...given];
  const { messages, repairs } = repairHistory(given);
  if (repairs.length > 0) safeLog(logger).warn('The given history was repaired', { repairs });
  return messages;
}

/** The message with these calls; `undefined` if it is then empty. Strict servers refuse an empty list. */
function withCalls(
  message: AssistantMessage,
  calls: readonly MessageToolCall[],
): AssistantMessage | undefined {
  const given = message.tool_calls ?? [];
  const isSame = calls.length === given.length && calls.every((call, index) => call === given[index]);
  if (calls.length > 0) return isSame ? message : { ...message, tool_calls: calls };
  if (given.length > 0 && !message.content) return undefined;
  if (!('tool_calls' in message)) return message;
  const { tool_calls: _, ...others } = message;
  return others;
}

function interrupted({ id, function: { name } }: MessageToolCall): ToolMessage {
  const content = `The call of '${name}' was interrupted, and its result was not saved. It may have been executed.`;
  return { role: 'tool', content, tool_call_id: id, isError: true };
}
