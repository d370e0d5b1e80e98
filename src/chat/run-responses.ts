import type { Answer, PendingCall } from '../contract/call.js';
import type { JsonObject } from '../contract/json-schema.js';
import { errorJson, eventJson } from '../conversation/events.js';
import { checkArguments, checkOptions } from '../errors/author-fault.js';
import { isRecord } from '../kernel/json.js';
import {
  FILLED_TEXT,
  FUNCTION,
  LIST,
  MILLISECONDS,
  optionTable,
  RECORD,
  required,
  withMethods,
} from '../kernel/options.js';
import type { ToolLoopStream } from '../loop/events.js';
import { agUiAnswersIn, agUiRunOf, readAgUiInput } from './ag-ui-request.js';
import {
  ANY_ERROR,
  agUiFrames,
  DEFAULT_HEARTBEAT_MS,
  frameStream,
  SSE_HEADERS,
  UI_HEADERS,
  uiMessageFrames,
} from './protocols.js';
import type { DescribeError } from './turn-encoder.js';
import type { ReadEvent } from './turn-readings.js';
import { clientAnswers } from './ui-message-request.js';

/** How a run is told to one reader. */
export interface RunResponseOptions {
  /** What the reader is told of a run that failed; default: nothing but that it failed. */
  readonly describeError?: DescribeError;
  /** Milliseconds of silence after which the reader gets a sign of life; default 15,000. */
  readonly heartbeatMs?: number;
}

/** The same for the AI SDK. */
export interface UIMessageResponseOptions extends RunResponseOptions {
  /** Id of the message: for a run that goes on with answers that of the message that has them. Default: a new one. */
  readonly messageId?: string;
}

/** The same for AG-UI. */
export interface AgUiResponseOptions extends RunResponseOptions {
  /** What the client has sent: a `RunAgentInput`. */
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
 * A run as the UI message stream of the AI SDK, for a route of one's own. A reader that leaves aborts the run, as
 * everybody does who leaves its events. Where the run is suspended, its state is the route's to keep: `run.result`.
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
 * @throws InvalidOptionsError (521) for options that are wrong.
 */
export function toUIMessageResponse(run: ToolLoopStream, options: UIMessageResponseOptions = {}): Response {
  checkRun('toUIMessageResponse', run);
  checkOptions(options, UI_OPTIONS);
  const { describeError = ANY_ERROR, messageId = crypto.randomUUID() } = options;
  const { events, leave } = eventsOf(run, { type: 'turn-start', messageId });
  const frames = uiMessageFrames(events, { describeError, greets: false });
  return responseOf(frames, { ...options, leave, headers: UI_HEADERS });
}

/**
 * A run as events of AG-UI 1.0, for a route of one's own. As `toUIMessageResponse`.
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
 * @throws InvalidOptionsError (521) for options that are wrong; an Error for what is no such input.
 */
export function toAgUiResponse(run: ToolLoopStream, options: AgUiResponseOptions): Response {
  checkRun('toAgUiResponse', run);
  checkOptions(options, AG_UI_OPTIONS);
  const { describeError = ANY_ERROR } = options;
  const told = { ...agUiRunOf(readAgUiInput(options.input)), describeError };
  const { events, leave } = eventsOf(run, { type: 'turn-start' });
  return responseOf(agUiFrames(events, told), { ...options, leave, headers: SSE_HEADERS });
}

/**
 * The answers that the last message of `useChat` gives to what a suspended run waits for, for `resumeToolLoop`. What
 * answers nothing that waits is left out.
 *
 * @throws Error where an answer to an approval is neither yes nor no, has what looks like edits, or another slip of a
 *   name.
 */
export function uiMessageAnswers(message: unknown, pending: readonly PendingCall[]): readonly Answer[] {
  checkArguments({ of: 'uiMessageAnswers', given: { pending }, rules: { pending: required(LIST) } });
  const parts = isRecord(message) && Array.isArray(message.parts) ? message.parts.filter(isRecord) : [];
  return clientAnswers({ parts }, { pending });
}

/**
 * The same of a `RunAgentInput`.
 *
 * @throws Error where it does not cover everything that waits for somebody, as AG-UI wants it.
 */
export function agUiAnswers(input: unknown, pending: readonly PendingCall[]): readonly Answer[] {
  checkArguments({ of: 'agUiAnswers', given: { pending }, rules: { pending: required(LIST) } });
  return agUiAnswersIn(readAgUiInput(input), { pending });
}

const RUN = withMethods([], 'streamToolLoop(config, messages)');

function checkRun(of: string, run: ToolLoopStream): void {
  const rule = { ...RUN, accepts: (value: unknown) => isRecord(value) && Symbol.asyncIterator in value };
  checkArguments({ of, given: { run }, rules: { run: required(rule) } });
}

/** What happens in a run, as a conversation tells of a turn. */
function eventsOf(run: ToolLoopStream, begin: JsonObject) {
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
  return { events: events(), leave: () => void iterator.return?.() };
}

interface RunResponseParts extends RunResponseOptions {
  readonly leave: () => void;
  readonly headers: Readonly<Record<string, string>>;
}

function responseOf(frames: AsyncGenerator<string, undefined>, parts: RunResponseParts): Response {
  const { heartbeatMs = DEFAULT_HEARTBEAT_MS, leave, headers } = parts;
  return new Response(frameStream(frames, { heartbeatMs, onLeave: leave }), { headers });
}
