import { resultText } from '../call/result-text.js';
import { type ReadArguments, readArguments } from '../checking/read-arguments.js';
import type { CallJournal, CallRecord, Suspension } from '../contract/call.js';
import type {
  AssistantMessage,
  LLMResponse,
  Message,
  MessageToolCall,
  ToolCall,
  ToolMessage,
} from '../contract/llm-provider.js';
import type { ToolResult } from '../contract/tool-result.js';
import { TOOL_NAME } from '../discovery/freeze-tool.js';
import type { InvalidOption } from '../errors/author-fault.js';
import { isRecord } from '../kernel/json.js';
import { misspeltName } from '../kernel/nearest-name.js';

const ROLES: ReadonlySet<unknown> = new Set(['system', 'developer', 'user', 'assistant', 'tool']);

const MESSAGE_KEYS = [
  'role',
  'content',
  'name',
  'tool_calls',
  'tool_call_id',
  'parts',
  'reasoning',
  'providerItems',
];
const KEYS: ReadonlySet<string> = new Set(MESSAGE_KEYS);

/** What of a history no provider would take, and what cannot be told from it. */
export function historyFaults(messages: unknown): readonly InvalidOption[] {
  if (!Array.isArray(messages))
    return [faultAt('', 'they are no array', "messages: [{ role: 'user', content: '…' }]")];
  const faults: InvalidOption[] = [];
  let open = NONE;
  for (const [index, message] of (messages as readonly unknown[]).entries()) {
    const problem = problemOf(message, open);
    if (problem !== undefined) faults.push(faultAt(`[${index}]`, ...problem));
    if (isRecord(message) && message.role === 'tool') open.delete(message.tool_call_id);
    else open = idsOf(callsOf(message));
  }
  return faults;
}

/** Of most messages there are none. */
const NONE = new Set<unknown>();

function idsOf(calls: readonly unknown[]): Set<unknown> {
  if (calls.length === 0) return NONE;
  return new Set(calls.map((call) => (isRecord(call) ? call.id : undefined)));
}

/** A problem, and what to write instead. */
type Problem = readonly [problem: string, fix: string];

function faultAt(place: string, problem: string, fix: string): InvalidOption {
  const option = `messages${place}`;
  return { where: 'the history', option, problem: place === '' ? problem : `${option} ${problem}`, fix };
}

function problemOf(message: unknown, open: ReadonlySet<unknown>): Problem | undefined {
  if (!isRecord(message)) return ['is no message', "{ role: 'user', content: '…' }"];
  const slip = keyProblem(message);
  if (slip !== undefined) return slip;
  const { role, content } = message;
  if (!ROLES.has(role))
    return [
      `has the role ${JSON.stringify(role)}`,
      `one of ${[...ROLES].map((known) => `'${known}'`).join(', ')}`,
    ];
  if (role === 'tool') return answerProblem(message, open);
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

function answerProblem(
  { tool_call_id: id, content }: Readonly<Record<string, unknown>>,
  open: ReadonlySet<unknown>,
): Problem | undefined {
  if (typeof content !== 'string')
    return ['has a content that is no text', 'content: JSON.stringify(result)'];
  if (typeof id !== 'string') return ['does not say which call it answers', "tool_call_id: 'call_1'"];
  if (open.has(id)) return undefined;
  return [
    `answers '${id}', which no assistant message right before it calls, or which is answered already`,
    'the history from the assistant message with that call on, or without its answers',
  ];
}

function callsProblem(calls: unknown): Problem | undefined {
  if (calls === undefined || calls === null) return undefined;
  const fix = "tool_calls: [{ id: 'call_1', type: 'function', function: { name, arguments: '{}' } }]";
  if (!Array.isArray(calls)) return ['has calls that are no array', fix];
  if (!calls.every(isCall)) return ['has a call that is none', fix];
  if (new Set(calls.map(({ id }) => id)).size < calls.length)
    return ['has two calls of the same id', 'an id of its own for each call of a message'];
  return undefined;
}

function isCall(call: unknown): call is MessageToolCall {
  if (!isRecord(call) || typeof call.id !== 'string' || call.id === '') return false;
  const named = call.function;
  return isRecord(named) && typeof named.name === 'string' && typeof named.arguments === 'string';
}

function callsOf(message: unknown): readonly unknown[] {
  const calls = isRecord(message) && message.role === 'assistant' ? message.tool_calls : undefined;
  return Array.isArray(calls) ? calls : [];
}

/**
 * A history without faults, as strict servers take it: answers in the order of their calls, and one for each
 * call. A call that nobody answered, as after a crash, may have been done or not, and that is what it says;
 * `unanswered` has the names of those calls.
 */
export function normalizeHistory(history: readonly Message[]): {
  readonly messages: Message[];
  readonly unanswered: readonly string[];
} {
  const messages: Message[] = [];
  const unanswered: string[] = [];
  for (let index = 0; index < history.length; index += 1) {
    const message = history[index] as Message;
    if (message.role !== 'assistant') {
      messages.push(message);
      continue;
    }
    const calls = message.tool_calls ?? [];
    const answers = answersFrom(history, index + 1);
    index += answers.length;
    messages.push(calls.length > 0 ? message : withoutCalls(message));
    for (const call of calls) {
      const answer = answers.find(({ tool_call_id: id }) => id === call.id);
      if (answer === undefined) unanswered.push(call.function.name);
      messages.push(answer ?? interrupted(call));
    }
  }
  return { messages, unanswered };
}

function answersFrom(messages: readonly Message[], from: number): readonly ToolMessage[] {
  const answers: ToolMessage[] = [];
  for (let index = from; index < messages.length; index += 1) {
    const message = messages[index] as Message;
    if (message.role !== 'tool') break;
    answers.push(message);
  }
  return answers;
}

/** Strict servers refuse an empty list. */
function withoutCalls(message: AssistantMessage): AssistantMessage {
  if (!('tool_calls' in message)) return message;
  const { tool_calls: _, ...others } = message;
  return others;
}

function interrupted({ id, function: { name } }: MessageToolCall): ToolMessage {
  const content = `The call of '${name}' was interrupted, and no result of it was kept. It may have been done.`;
  return { role: 'tool', content, tool_call_id: id };
}

/** What of a reply its message keeps beside the calls. */
export type SpokenReply = Pick<LLMResponse, 'content' | 'reasoning' | 'providerItems'>;

/** A reply as the history keeps it. */
export function assistantMessage(reply: SpokenReply, calls: readonly ParsedCall[]): AssistantMessage {
  const { content, reasoning, providerItems } = reply;
  const message: AssistantMessage =
    calls.length === 0
      ? { role: 'assistant', content }
      : { role: 'assistant', content, tool_calls: calls.map(messageCall) };
  if (reasoning === undefined && providerItems === undefined) return message;
  return { ...message, ...(reasoning ? { reasoning } : {}), ...(providerItems ? { providerItems } : {}) };
}

function messageCall({ id, name, text, providerItems }: ParsedCall): MessageToolCall {
  // Strict servers parse the history, and refuse the whole request for one broken call in it. What was
  // really sent stands in the call's record and in its answer.
  const call = {
    id,
    type: 'function' as const,
    function: { name: functionName(name), arguments: text ?? '{}' },
  };
  return providerItems === undefined ? call : { ...call, providerItems };
}

/** The answer to one call, and below it what else there is to say about the call. */
export function toolMessage(
  toolCallId: string,
  result: ToolResult,
  ...notes: readonly (string | undefined)[]
): ToolMessage {
  let content = resultText(result) || attachmentsText(result);
  for (const note of notes) if (note !== undefined) content += `\n\n${note}`;
  const message: ToolMessage = { role: 'tool', content, tool_call_id: toolCallId };
  const isMoreThanText = result.content?.some(({ type }) => type !== 'text');
  return isMoreThanText ? { ...message, parts: result.content } : message;
}

/** Images and files that come without a word: a model that gets only text should know of them. */
function attachmentsText({ content = [] }: ToolResult): string {
  return content
    .flatMap((part) => (part.type === 'text' ? [] : [`[${part.type}: ${part.mimeType}]`]))
    .join('\n');
}

/** Strict servers refuse the whole request for a name that could not be one; the record keeps what was sent. */
function functionName(name: string): string {
  return TOOL_NAME.test(name) ? name : name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'unnamed';
}

/** A call whose arguments were parsed: the history needs that, and so does the tool. */
export interface ParsedCall extends ToolCall {
  readonly read: ReadArguments;
  /** The arguments as text of a JSON object; absent where there is none that JSON could say. */
  readonly text: string | undefined;
  /** Of a call that was suspended: what is known of it. */
  readonly journal?: CallJournal;
  /** Of a call that has its answer from before the run was suspended. */
  readonly record?: CallRecord;
}

/** Parses the arguments of a call, once. */
export function parseCall({ id, name, arguments: args, providerItems }: ToolCall): ParsedCall {
  const read = readArguments(args);
  const call = { id, name, arguments: args, read, text: textOf(args, read) };
  return providerItems === undefined ? call : { ...call, providerItems };
}

function textOf(args: ToolCall['arguments'], read: ReadArguments): string | undefined {
  if (!read.ok) return undefined;
  const isAsSent = typeof args === 'string' && read.repairs.length === 0 && args.trimStart().startsWith('{');
  try {
    return isAsSent ? args : JSON.stringify(read.value);
  } catch {
    return undefined;
  }
}

/** A call that has no answer yet: it waits for somebody, or (`held`) for those that do. */
interface UnansweredCall {
  readonly call: ParsedCall;
  /** Absent for a call that has not begun. */
  readonly suspension?: Suspension;
}

/** What came of a call of the loop. */
export type CallOutcome = CallRecord | UnansweredCall;

/** Whether a call has no answer yet. */
export function isUnanswered(outcome: CallOutcome): outcome is UnansweredCall {
  return 'call' in outcome;
}
