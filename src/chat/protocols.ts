import type { JsonObject } from '../contract/json-schema.js';
import { MAX_TIMER_MS } from '../kernel/async.js';
import { isRecord } from '../kernel/json.js';
import { AgUiEncoder, type AgUiEvent, type AgUiMessage } from './ag-ui-encoder.js';
import { agUiRunOf, decideAgUi, readAgUiInput } from './ag-ui-request.js';
import { agUiHistory, uiMessageHistory } from './chat-history.js';
import type { ChatProtocol, HttpFault, WriteFrames } from './chat-request.js';
import type { DescribeError } from './shown-calls.js';
import type { ReadEvent } from './turn-readings.js';
import { type UiMessageChunk, UiMessageEncoder } from './ui-message-encoder.js';
import { readUiMessageRequest } from './ui-message-request.js';

export const DEFAULT_HEARTBEAT_MS = 15_000;

/** What went wrong in a turn is the server's to know. */
export const ANY_ERROR = (): string => 'An error occurred.';

export type ProtocolName = 'ui-messages' | 'ag-ui' | 'events';

/** No proxy is to collect the stream before it hands it on. */
export const SSE_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

export const UI_HEADERS = { ...SSE_HEADERS, 'x-vercel-ai-ui-message-stream': 'v1' };

export function protocolOf(name: ProtocolName, describeError: DescribeError): ChatProtocol {
  switch (name) {
    case 'ui-messages':
      return uiMessages(UI_HEADERS, (events, { goesOn }) =>
        uiMessageFrames(events, { describeError, greets: goesOn }),
      );
    case 'events':
      return uiMessages(SSE_HEADERS, (events) => eventFrames(events));
    case 'ag-ui':
      return agUi(describeError);
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

function agUi(describeError: DescribeError): ChatProtocol {
  return {
    headers: SSE_HEADERS,
    readPost: (body) => {
      const input = readAgUiInput(body);
      const run = { ...agUiRunOf(input), describeError };
      return {
        chatId: run.threadId,
        decide: (asked) => decideAgUi(input, asked),
        frames: (events) => agUiFrames(events, run),
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

/** The events of a turn as the AI SDK's UI message stream, in frames of server-sent events. */
export async function* uiMessageFrames(
  events: AsyncIterable<ReadEvent>,
  { describeError, greets }: { readonly describeError: DescribeError; readonly greets: boolean },
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

async function* eventFrames(events: AsyncIterable<ReadEvent>): AsyncGenerator<string, undefined> {
  for await (const { number, event, isNews } of events)
    if (isNews) yield `id: ${number}\ndata: ${JSON.stringify(event)}\n\n`;
}

export const ANSWERED_ALREADY = 'Somebody else has answered already.';

/** Why answers were refused after they had entered, for whoever gave them. */
function refusalText({ isLate, error }: JsonObject): string {
  return isLate === false && isRecord(error) ? String(error.message) : ANSWERED_ALREADY;
}

function frame(data: UiMessageChunk | AgUiEvent): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

interface FrameStreamOptions {
  readonly heartbeatMs: number;
  /** The reader has left before the end. */
  readonly onLeave: () => void;
}

/**
 * Frames as a body, read one by one as the reader asks for them: whoever does not read costs what one page of events
 * does. A silence is broken by comments.
 */
export function frameStream(
  frames: AsyncGenerator<string, undefined>,
  { heartbeatMs, onLeave }: FrameStreamOptions,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let next: Promise<IteratorResult<string, undefined>> | undefined;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        next ??= frames.next();
        const read = await orSilence(next, heartbeatMs);
        if (read === undefined) return controller.enqueue(encoder.encode(': still there\n\n'));
        next = undefined;
        if (read.done) controller.close();
        else controller.enqueue(encoder.encode(read.value));
      },
      cancel: onLeave,
    },
    { highWaterMark: 0 },
  );
}

async function orSilence<Value>(work: Promise<Value>, heartbeatMs: number): Promise<Value | undefined> {
  const silence = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => silence.resolve(undefined), Math.min(heartbeatMs, MAX_TIMER_MS));
  try {
    return await Promise.race([work, silence.promise]);
  } finally {
    clearTimeout(timer);
  }
}

const PROTOCOL_VERSION = '1.0';

/** A run as its client calls it, and what the client has. */
interface AgUiRun {
  readonly threadId: string;
  readonly runId: string;
  readonly describeError: DescribeError;
  readonly messages: readonly AgUiMessage[];
  readonly state?: unknown;
  /** Calls whose results the client has: they are not told it. */
  readonly given?: readonly string[];
  /** Everything that was said is told first, for a client that has nothing. */
  readonly isWhole?: boolean;
}

/** The events of a turn as a run of AG-UI, in frames of server-sent events. */
export async function* agUiFrames(
  events: AsyncIterable<ReadEvent>,
  run: AgUiRun,
): AsyncGenerator<string, undefined> {
  const { threadId, runId } = run;
  const encoder = new AgUiEncoder(run);
  const given = new Set(run.given);
  yield runStarted(run);
  if (run.isWhole) yield frame({ type: 'MESSAGES_SNAPSHOT', messages: run.messages });
  let isOver = false;
  /** How it has ended, unless more comes: a turn that is told again may have waited, and gone on. */
  let end: readonly AgUiEvent[] = [];
  for await (const { event, isNews } of events) {
    const encoded = encoder.encode(event);
    // Whoever gave them is told.
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
  // Nothing was open.
  if (!isOver && run.isWhole)
    yield frame({ type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } });
}

/** The result of a call which the client has made itself. */
function isGiven({ type, toolCallId }: AgUiEvent, given: ReadonlySet<string>): boolean {
  return type === 'TOOL_CALL_RESULT' && given.has(String(toolCallId));
}

function runStarted({ threadId, runId }: Pick<AgUiRun, 'threadId' | 'runId'>): string {
  return frame({ type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL_VERSION });
}

/** Nothing was done for the run. */
function runRefused(message: string): string {
  return frame({ type: 'RUN_ERROR', message, code: 'refused' });
}
