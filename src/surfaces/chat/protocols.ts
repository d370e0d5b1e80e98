import type { JsonObject } from '../../core/contract/json-schema.js';
import { checkArguments, checkOptions } from '../../core/errors/author-fault.js';
import { isAsyncIterable } from '../../core/kernel/async.js';
import { type Fields, isRecord, withoutUndefined } from '../../core/kernel/json.js';
import {
  FILLED_TEXT,
  FUNCTION,
  MILLISECONDS,
  optionTable,
  RECORD,
  required,
} from '../../core/kernel/options.js';
import { eventJson } from '../../run/conversation/events.js';
import type { ToolLoopStream } from '../../run/loop/events.js';
import { errorJson } from '../../run/loop/run-errors.js';
import {
  type ChatProtocol,
  type HttpFault,
  messageIdOf,
  readAgUiRequest,
  readUiMessageRequest,
  type WriteFrames,
} from './client-requests.js';
import { frameStream } from './frame-stream.js';
import {
  AgUiEncoder,
  type AgUiEncoderOptions,
  type AgUiEvent,
  type AgUiMessage,
  type DescribeTurnError,
  type UiMessageChunk,
  UiMessageEncoder,
} from './turn-encoder.js';
import { type AskedChat, eventsOf, type ReadEvent } from './turn-readings.js';

/** Options to stream a run to one reader. */
export interface RunResponseOptions {
  /** The error text for the reader of a failed run; default: a general sentence. */
  readonly describeError?: DescribeTurnError;
  /** Milliseconds of silence until a heartbeat; default 15,000. */
  readonly heartbeatMs?: number;
}

/** Options of {@link toUIMessageResponse}. */
export interface UIMessageResponseOptions extends RunResponseOptions {
  /** Id of the message. For a run that continues with answers: the id of the message with them. Default: a new id. */
  readonly messageId?: string;
}

/** Options of {@link toAgUiResponse}. */
export interface AgUiResponseOptions extends RunResponseOptions {
  /** The `RunAgentInput` that the client sent. */
  readonly input: unknown;
}

const RULES = { describeError: FUNCTION, heartbeatMs: MILLISECONDS };

const UI_OPTIONS = optionTable<UIMessageResponseOptions>('toUIMessageResponse', {
  ...RULES,
  messageId: FILLED_TEXT,
});

const AG_UI_OPTIONS = optionTable<AgUiResponseOptions>('toAgUiResponse', {
  ...RULES,
  input: required(RECORD),
});

/**
 * Streams a run in the AI SDK's UI message stream protocol, for your own routes. A reader that disconnects aborts the
 * run. If the run is suspended, the route must store its state: `run.result`.
 *
 * @example
 * ```ts
 * async function route(request: Request): Promise<Response> {
 *   const { text } = (await request.json()) as { text: string };
 *   const run = streamToolLoop({ provider, model: 'gpt-5', tools }, [{ role: 'user', content: text }]);
 *   return toUIMessageResponse(run);
 * }
 * ```
 *
 * @throws InvalidOptionsError (521) for invalid options.
 */
export function toUIMessageResponse(run: ToolLoopStream, options: UIMessageResponseOptions = {}): Response {
  checkArguments({ of: 'toUIMessageResponse', given: { run }, rules: { run: RUN } });
  checkOptions(options, UI_OPTIONS);
  const { describeError = ANY_ERROR, messageId = crypto.randomUUID(), heartbeatMs } = options;
  const { events, onLeave } = turnOf(run, { type: 'turn-start', messageId });
  const frames = uiMessageFrames(events, describeError, false);
  return new Response(frameStream(frames, onLeave, heartbeatMs), { headers: UI_HEADERS });
}

/**
 * Streams a run as AG-UI 1.0 events, for your own routes. Otherwise like `toUIMessageResponse`.
 *
 * @example
 * ```ts
 * async function route(request: Request): Promise<Response> {
 *   const input = (await request.json()) as { messages: { content: string }[] };
 *   const content = String(input.messages.at(-1)?.content);
 *   const run = streamToolLoop({ provider, model: 'gpt-5', tools }, [{ role: 'user', content }]);
 *   return toAgUiResponse(run, { input });
 * }
 * ```
 *
 * @throws InvalidOptionsError (521) for invalid options; an Error for an invalid input.
 */
export function toAgUiResponse(run: ToolLoopStream, options: AgUiResponseOptions): Response {
  checkArguments({ of: 'toAgUiResponse', given: { run }, rules: { run: RUN } });
  checkOptions(options, AG_UI_OPTIONS);
  const { describeError = ANY_ERROR, heartbeatMs, input } = options;
  const turn = { ...readAgUiRequest(input).run, describeError };
  const { events, onLeave } = turnOf(run, { type: 'turn-start' });
  const frames = agUiFrames(events, turn);
  return new Response(frameStream(frames, onLeave, heartbeatMs), { headers: SSE_HEADERS });
}

const RUN = { accepts: isAsyncIterable, fix: 'streamToolLoop(config, messages)' };

/** The events of a run, in the form of a conversation's turn. */
function turnOf(run: ToolLoopStream, begin: JsonObject) {
  const iterator = run[Symbol.asyncIterator]();
  const news = (event: JsonObject): ReadEvent => ({ number: 0, event, isNews: true });
  const events = async function* (): AsyncGenerator<ReadEvent, undefined> {
    yield news(begin);
    try {
      for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
        const event = eventJson(next.value);
        if (event.type !== 'run-end') yield news(event);
        else yield news({ ...event, type: event.status === 'suspended' ? 'turn-suspended' : 'turn-end' });
      }
    } catch (error) {
      yield news({ type: 'turn-end', status: 'failed', error: errorJson(error) });
    }
  };
  return { events: events(), onLeave: () => void iterator.return?.() };
}

/** A message of the user, with the id that the client gave it. */
interface SentPrompt {
  readonly id: string;
  readonly content: unknown;
}

interface PastTurn {
  readonly number: number;
  readonly prompt: SentPrompt | undefined;
  /** All events from `turn-start` on; empty if they are no longer stored. */
  readonly events: readonly JsonObject[];
  /**
   * The model's texts with their positions in the turn, which are shown if there are no events: tool results are for
   * the model, and may not be for the user.
   */
  readonly texts: readonly { readonly text: string; readonly position: number }[];
}

/** The history of a chat in the format of a front end, and the prompt of the open turn, which is streamed. */
async function historyOf<Shown>(
  asked: AskedChat,
  showPrompt: (prompt: SentPrompt) => Shown,
  showTurn: (turn: PastTurn) => readonly Shown[],
): Promise<readonly Shown[]> {
  const turns = await pastTurns(asked);
  const past = turns.flatMap((turn) => [
    ...(turn.prompt ? [showPrompt(turn.prompt)] : []),
    ...showTurn(turn),
  ]);
  const entry = asked.view?.turn?.entry;
  const open = entry?.content.kind === 'prompt' && promptOf(entry.key, entry.content.content);
  return open ? [...past, showPrompt(open)] : past;
}

/** The ended turns of a chat, up to the turn that the open turn replaces. */
async function pastTurns({ view, source }: AskedChat): Promise<readonly PastTurn[]> {
  if (view === undefined) return [];
  const { history, turn, messages, lastEvent } = view;
  const content = turn?.entry.content;
  const replaced = content?.kind === 'prompt' ? content.replaces : undefined;
  const end = history.findIndex(({ key }) => key === replaced);
  const eventsByTurn = new Map<number, JsonObject[]>();
  const wanted = new Set(history.map(({ number }) => number));
  const after = (history[0]?.firstEvent ?? 1) - 1;
  const upTo = Math.min(lastEvent, (turn?.firstEvent ?? lastEvent + 1) - 1);
  let open: JsonObject[] | undefined;
  for await (const { event } of eventsOf(source, after, upTo)) {
    if (event.type === 'turn-start') {
      const { number } = event.turn;
      open = wanted.has(number) ? [] : undefined;
      if (open !== undefined) eventsByTurn.set(number, open);
    }
    open?.push(event);
  }
  const turns = history.map(({ number, key, begins }, index): PastTurn => {
    const said = messages.slice(begins, (history[index + 1] ?? turn)?.begins);
    const prompt = promptOf(key, said[0]?.role === 'user' ? said[0].content : undefined);
    const texts = said.flatMap(({ role, content: text }, position) =>
      role === 'assistant' && text ? [{ text, position }] : [],
    );
    return { number, prompt, events: eventsByTurn.get(number) ?? [], texts };
  });
  return end < 0 ? turns : turns.slice(0, end);
}

function promptOf(key: string, content: unknown): SentPrompt | undefined {
  const id = messageIdOf(key);
  return id === undefined || content === undefined ? undefined : { id, content };
}

interface UiMessage {
  readonly id: string;
  readonly role: string;
  metadata?: unknown;
  readonly parts: Record<string, unknown>[];
}

/** The history of a chat for `useChat`. */
function uiMessageHistory(asked: AskedChat): Promise<readonly UiMessage[]> {
  return historyOf(asked, uiPrompt, ({ number, events, texts }) => {
    const encoder = new UiMessageEncoder(() => '');
    const message: UiMessage = { id: `turn-${number}`, role: 'assistant', parts: [] };
    for (const event of events) for (const chunk of encoder.encode(event)) addChunk(message, chunk);
    if (events.length === 0)
      message.parts.push(...texts.map(({ text }) => ({ type: 'text', text, state: 'done' })));
    return [message];
  });
}

function uiPrompt({ id, content }: SentPrompt): UiMessage {
  const parts = Array.isArray(content) ? content.filter(isRecord) : [{ type: 'text', text: content }];
  return { id, role: 'user', parts: parts.flatMap(sentPart) };
}

function sentPart(part: Fields): readonly Fields[] {
  const { type, text, image_url: image, file } = part;
  if (type === 'text') return [{ type, text }];
  if (type === 'image_url' && isRecord(image))
    return [{ type: 'file', mediaType: mediaTypeOf(image.url, 'image/*'), url: image.url }];
  if (type !== 'file' || !isRecord(file)) return [];
  const { file_data: url, filename } = file;
  return [{ type, mediaType: mediaTypeOf(url, 'application/octet-stream'), url, filename }];
}

function mediaTypeOf(url: unknown, other: string): string {
  const [, type = other] = /^data:([^;,]+)/.exec(String(url)) ?? [];
  return type;
}

/** Adds a chunk to a message as the AI SDK does. */
function addChunk(message: UiMessage, chunk: UiMessageChunk): void {
  const { parts } = message;
  // Source parts may follow a text or reasoning that is still being streamed.
  const open = () => parts.findLast(({ type, state }) => OPEN.has(type) && state === 'streaming');
  switch (chunk.type) {
    case 'start-step':
      parts.push({ type: 'step-start' });
      return;
    case 'reset-step':
      parts.splice(parts.findLastIndex(({ type }) => type === 'step-start') + 1);
      return;
    case 'text-start':
      parts.push({ type: 'text', text: '', state: 'streaming' });
      return;
    case 'reasoning-start':
      parts.push({ type: 'reasoning', id: chunk.id, text: '', state: 'streaming' });
      return;
    case 'text-delta':
    case 'reasoning-delta': {
      const part = open();
      if (part !== undefined) part.text = `${part.text}${chunk.delta}`;
      return;
    }
    case 'text-end':
    case 'reasoning-end':
      Object.assign(open() ?? {}, { state: 'done' });
      return;
    case 'source-url':
    case 'source-document':
    case 'file':
      parts.push(chunk);
      return;
    case 'message-metadata':
    case 'finish':
      message.metadata = chunk.messageMetadata ?? message.metadata;
      return;
    default:
      if (chunk.type.startsWith('tool-')) addCallChunk(parts, chunk);
      else if (chunk.type.startsWith('data-') && !chunk.transient) {
        // Data chunks with the same id update one part.
        const { id, type } = chunk;
        const known = parts.findIndex((part) => id !== undefined && part.id === id && part.type === type);
        parts.splice(known < 0 ? parts.length : known, 1, chunk);
      }
  }
}

const OPEN = new Set<unknown>(['text', 'reasoning']);

function addCallChunk(parts: UiMessage['parts'], chunk: UiMessageChunk): void {
  const { toolCallId, toolName, approvalId } = chunk;
  const isOfCall = (part: Fields): boolean =>
    toolCallId === undefined
      ? isRecord(part.approval) && part.approval.id === approvalId
      : part.toolCallId === toolCallId;
  const known = parts.find(isOfCall);
  const part = known ?? { type: `tool-${toolName}`, toolCallId };
  if (known === undefined) parts.push(part);
  Object.assign(part, changeOf(chunk, known));
}

/** Removes preliminary output, which is valid until the next chunk about the call's state. */
const NO_OUTPUT = { output: undefined, preliminary: undefined };

function changeOf(chunk: UiMessageChunk, before: Fields | undefined): Fields {
  const { input, output, errorText, preliminary, approvalId: id, approved, approvalDescriptor } = chunk;
  switch (chunk.type) {
    case 'tool-input-start':
      return { state: 'input-streaming' };
    case 'tool-input-available':
      return { state: 'input-available', input, ...NO_OUTPUT };
    case 'tool-input-error':
      return { state: 'output-error', input, errorText, ...NO_OUTPUT };
    case 'tool-approval-request':
      return {
        state: 'approval-requested',
        approval: withoutUndefined({ id, descriptor: approvalDescriptor }),
      };
    case 'tool-approval-response': {
      const approval = { ...(before?.approval as Fields), id, approved, reason: chunk.reason };
      return { state: 'approval-responded', approval: withoutUndefined(approval) };
    }
    case 'tool-output-available':
      return { state: 'output-available', output, preliminary };
    case 'tool-output-error':
      return { state: 'output-error', errorText, ...NO_OUTPUT };
    case 'tool-output-denied':
      return { state: 'output-denied' };
    default:
      return {};
  }
}

/** The history of a chat for AG-UI. */
function agUiHistory(asked: AskedChat): Promise<readonly AgUiMessage[]> {
  return historyOf<AgUiMessage>(asked, agUiPrompt, ({ number, events, texts }) => {
    const encoder = new AgUiEncoder({ describeError: () => '', messages: [] });
    for (const event of events) encoder.encode(event);
    if (events.length > 0) return encoder.messages;
    return texts.map(({ text, position }) => ({
      id: `turn-${number}.${position}`,
      role: 'assistant',
      content: text,
    }));
  });
}

function agUiPrompt({ id, content }: SentPrompt): AgUiMessage {
  const parts = Array.isArray(content) ? (content as readonly { readonly text?: unknown }[]) : [];
  const text = parts.flatMap((part) => (typeof part.text === 'string' ? [part.text] : [])).join('\n');
  return { id, role: 'user', content: typeof content === 'string' ? content : text };
}

/** Clients do not receive the details of an error by default. */
const ANY_ERROR: DescribeTurnError = ({ filesRefused }) =>
  filesRefused
    ? 'The model’s provider refused the message with its files. Send it without them, or in another format.'
    : 'An error occurred.';

export type ProtocolName = 'ui-messages' | 'ag-ui' | 'events';

/** Prevents proxies from buffering the stream. */
const SSE_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

const UI_HEADERS = { ...SSE_HEADERS, 'x-vercel-ai-ui-message-stream': 'v1' };

/** The protocol that a chat handler's options name. */
export function protocolOf({
  protocol = 'ui-messages',
  describeError = ANY_ERROR,
}: Pick<RunResponseOptions, 'describeError'> & { readonly protocol?: ProtocolName }): ChatProtocol {
  switch (protocol) {
    case 'ui-messages':
      return uiMessages(UI_HEADERS, (events, { goesOn }) => uiMessageFrames(events, describeError, goesOn));
    case 'events':
      return uiMessages(SSE_HEADERS, async function* (events): AsyncGenerator<string, undefined> {
        for await (const { number, event, isNews } of events)
          if (isNews) yield `id: ${number}\ndata: ${JSON.stringify(event)}\n\n`;
      });
    case 'ag-ui':
      return {
        headers: SSE_HEADERS,
        readPost: (body) => {
          const { run, decide } = readAgUiRequest(body);
          return {
            chatId: run.threadId,
            decide,
            frames: (events) => agUiFrames(events, { ...run, describeError }),
            refuse: ({ message }) =>
              new Response(runStarted(run) + runRefused(message), { headers: SSE_HEADERS }),
          };
        },
        reconnect: ({ chatId, query }) => ({
          isWhole: true,
          frames: async function* (events, { asked }): AsyncGenerator<string, undefined> {
            const runId = query.get('runId') ?? `reconnect-${crypto.randomUUID()}`;
            const messages = await agUiHistory(asked);
            yield* agUiFrames(events, { threadId: chatId, runId, describeError, messages, isWhole: true });
          },
        }),
        history: agUiHistory,
      };
  }
}

function uiMessages(headers: ChatProtocol['headers'], frames: WriteFrames): ChatProtocol {
  const refuse = (fault: HttpFault): Response => fault.response;
  return {
    headers,
    readPost: (body) => ({ ...readUiMessageRequest(body), frames, refuse }),
    reconnect: () => ({ frames, isWhole: false }),
    history: uiMessageHistory,
  };
}

/** Encodes the events of a turn as server-sent events of the AI SDK's UI message stream. */
async function* uiMessageFrames(
  events: AsyncIterable<ReadEvent>,
  describeError: DescribeTurnError,
  greets: boolean,
): AsyncGenerator<string, undefined> {
  const encoder = new UiMessageEncoder(describeError);
  let isGreeted = !greets;
  for await (const { number, event, isNews } of events) {
    const { messageId } = encoder;
    const chunks = encoder.encode(event);
    if (!isNews) continue;
    if (!isGreeted && messageId !== '') yield frame({ type: 'start', messageId });
    isGreeted = true;
    if (event.type === 'answers-refused') yield frame({ type: 'error', errorText: refusalText(event) });
    for (const [index, chunk] of chunks.entries())
      yield index === chunks.length - 1 ? `id: ${number}\n${frame(chunk)}` : frame(chunk);
  }
  yield 'data: [DONE]\n\n';
}

export const ANSWERED_ALREADY = 'This was already answered, or its turn has ended.';

/** Why stored answers were refused, for the person who gave them. */
function refusalText({ isLate, error }: JsonObject): string {
  return isLate === false && isRecord(error) ? String(error.message) : ANSWERED_ALREADY;
}

function frame(data: UiMessageChunk | AgUiEvent): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

const PROTOCOL_VERSION = '1.0';

/** A run of a client. */
interface AgUiRun extends AgUiEncoderOptions {
  readonly threadId: string;
  readonly runId: string;
  /** Ids of calls whose results the client has; these results are not sent. */
  readonly given?: readonly string[];
  /** Sends all messages first, for a client that has none. */
  readonly isWhole?: boolean;
}

/** Encodes the events of a turn as server-sent events of an AG-UI run. */
async function* agUiFrames(
  events: AsyncIterable<ReadEvent>,
  run: AgUiRun,
): AsyncGenerator<string, undefined> {
  const { threadId, runId } = run;
  const encoder = new AgUiEncoder(run);
  const given = new Set(run.given);
  yield runStarted(run);
  if (run.isWhole) yield frame({ type: 'MESSAGES_SNAPSHOT', messages: run.messages });
  let isOver = false;
  /** The latest end of the turn; it counts only if no event follows, because a replayed turn may have been resumed. */
  let end: readonly AgUiEvent[] = [];
  for await (const { event, isNews } of events) {
    const encoded = encoder.encode(event);
    // The client that gave the answers gets the refusal.
    if (run.isWhole && event.type === 'answers-refused') continue;
    end = [];
    if (!isNews) continue;
    if (event.type === 'answers-refused') {
      isOver = true;
      yield runRefused(refusalText(event));
    } else if (event.type === 'turn-suspended' || event.type === 'turn-end') {
      isOver = true;
      end = encoded;
    } else for (const each of encoded) if (!isGiven(each, given)) yield frame(each);
  }
  for (const each of end)
    if (!isGiven(each, given))
      yield frame(each.type === 'RUN_FINISHED' ? { ...each, threadId, runId } : each);
  // No turn was open.
  if (!isOver && run.isWhole)
    yield frame({ type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } });
}

/** Whether an event is the result of a call that the client executed itself. */
function isGiven({ type, toolCallId }: AgUiEvent, given: ReadonlySet<string>): boolean {
  return type === 'TOOL_CALL_RESULT' && given.has(String(toolCallId));
}

function runStarted({ threadId, runId }: Pick<AgUiRun, 'threadId' | 'runId'>): string {
  return frame({ type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL_VERSION });
}

function runRefused(message: string): string {
  return frame({ type: 'RUN_ERROR', message, code: 'refused' });
}
