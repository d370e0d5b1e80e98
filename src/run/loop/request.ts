import { setTimeout as pause } from 'node:timers/promises';
import type { HookMoment, HookNote } from '../../core/contract/call.js';
import type { HookedRequest, Hooks } from '../../core/contract/hooks.js';
import type {
  LLMRequest,
  LLMResponse,
  Message,
  RequestMetadata,
  ToolChoice,
  ToolSchema,
} from '../../core/contract/llm-provider.js';
import type { TracePlace } from '../../core/contract/ports.js';
import type { RequestTrace, RunTrace, Telemetry, TracedRequestEnd } from '../../core/contract/telemetry.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { unlessAborted } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isRecord, plainJson, withoutUndefined } from '../../core/kernel/json.js';
import { answerOf, type HookAnswer, hooksWith, type NamedHook } from '../call/hooked-call.js';
import { safeLog } from '../call/log.js';
import { KNOWN_SECRETS } from '../call/redact.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import {
  askModel,
  type Failure,
  type ModelQuestion,
  normalizeResponse,
  type PartListener,
  type Reply,
  streamWhole,
} from './ask-model.js';
import type { ToolLoopResult } from './events.js';
import { keptFrom } from './keep-recent.js';
import { addUsage, HistoryScope, type LoopRun, usageSince, type Writable } from './loop-run.js';
import { offeredDefinitions } from './offered-tools.js';
import type { ProviderTarget, ToolLoopConfig } from './options.js';
import { compactedHistory, type StepSettings, settingsOf } from './step-settings.js';

/** The return value of a hook, or the reply that ends the request instead. */
type Asked = { readonly said: HookAnswer } | { readonly said?: undefined; readonly reply: Reply };

export class RequestHooks {
  readonly #before: readonly NamedHook[];
  readonly #after: readonly NamedHook[];
  readonly #onError: readonly NamedHook[];
  #notes: HookNote[] = [];

  private constructor(hooks: readonly Hooks[]) {
    this.#before = hooksWith(hooks, 'beforeRequest');
    this.#after = hooksWith(hooks, 'afterResponse');
    this.#onError = hooksWith(hooks, 'onError');
  }

  static among(tools: ToolRegistry, { hooks = [] }: ToolLoopConfig): RequestHooks | undefined {
    const found = new RequestHooks([...tools.hooks, ...hooks]);
    return found.#before.length + found.#after.length + found.#onError.length === 0 ? undefined : found;
  }

  /** The notes about requests since the last call. */
  takeNotes(): readonly HookNote[] {
    const notes = this.#notes;
    this.#notes = [];
    return notes;
  }

  async ask(run: LoopRun, { provider, request: given, onPart, trace }: ModelQuestion): Promise<Reply> {
    const scope = new HistoryScope(run.scope, run.messages);
    const about = { runId: run.runId, step: run.iterations, scope };
    const before = await this.#beforeRequest(run, about, given);
    if ('reply' in before) return before.reply;
    const { request } = before;
    // Parts that hooks may withhold are streamed only after the hooks have seen them.
    trace?.sent(request);
    const isHeld = this.#after.some(({ hook }) => hook.onlyReads !== true);
    let reply = await askModel({ provider, request, onPart: isHeld ? undefined : onPart });
    if (!reply.ok && reply.reason === 'failed') reply = await this.#onFailure(run, { about, request }, reply);
    if (!reply.ok) return reply;
    const after = await this.#afterResponse(run, { ...about, request }, reply.response);
    if (after.ok && isHeld && onPart) await streamWhole(after.response, onPart);
    // The reply was paid for all the same.
    if (!after.ok) addUsage(run, reply.response.usage);
    return after;
  }

  async #beforeRequest(
    run: LoopRun,
    about: HookedRequest,
    given: LLMRequest,
  ): Promise<{ readonly request: LLMRequest } | { readonly reply: Reply }> {
    let request = given;
    for (const named of this.#before) {
      const asked = await this.#askHook(run, named, {
        moment: 'beforeRequest',
        ask: (hook) => hook.beforeRequest?.(request, about),
      });
      if (asked.said === undefined) return { reply: asked.reply };
      const { request: rewritten } = asked.said;
      if (rewritten === undefined || rewritten === request) continue;
      request = sendable(rewritten as LLMRequest, given);
      this.#notes.push({ hook: named.name, did: 'rewrote', in: 'beforeRequest' });
    }
    return { request };
  }

  async #afterResponse(
    run: LoopRun,
    about: HookedRequest & { readonly request: LLMRequest },
    given: LLMResponse,
  ): Promise<Reply> {
    let response = given;
    for (const named of this.#after) {
      const asked = await this.#askHook(run, named, {
        moment: 'afterResponse',
        ask: (hook) => hook.afterResponse?.(response, about),
      });
      if (asked.said === undefined) return asked.reply;
      const { response: rewritten } = asked.said;
      if (rewritten === undefined || rewritten === response) continue;
      response = normalizeResponse(rewritten as LLMResponse);
      this.#notes.push({ hook: named.name, did: 'rewrote', in: 'afterResponse' });
    }
    return { ok: true, response };
  }

  /** The failure, or a hook's reply instead. If a hook fails here, there is nothing to refuse. */
  async #onFailure(
    run: LoopRun,
    { about, request }: { readonly about: HookedRequest; readonly request: LLMRequest },
    failure: Failure,
  ): Promise<Reply> {
    const { error } = failure;
    for (const named of this.#onError) {
      const { said } = await this.#askHook(run, named, {
        moment: 'onError',
        ask: (hook) => hook.onError?.({ of: 'request', error, request, about }),
      });
      if (said?.response === undefined) continue;
      this.#notes.push({ hook: named.name, did: 'answered', in: 'onError' });
      return { ok: true, response: normalizeResponse(said.response as LLMResponse) };
    }
    return failure;
  }

  async #askHook(
    { signal, config }: LoopRun,
    { name, hook }: NamedHook,
    { moment, ask }: { readonly moment: HookMoment; readonly ask: (hook: Hooks) => unknown },
  ): Promise<Asked> {
    try {
      const asked = ask(hook);
      const said = answerOf(moment, signal === undefined ? await asked : await unlessAborted(asked, signal));
      const { request, response, note, refuse } = said;
      if (request !== undefined && !(isRecord(request) && Array.isArray(request.messages)))
        throw new TypeError('`request` has no messages');
      if (response !== undefined && !isRecord(response)) throw new TypeError('`response` is not a reply');
      if (note !== undefined)
        this.#notes.push({ hook: name, did: 'noted', in: moment, note: plainJson(note) });
      if (refuse === undefined) return { said };
      const did = moment === 'beforeRequest' ? 'refused' : 'withheld';
      this.#notes.push({ hook: name, did, in: moment });
      return { reply: refusedReply(moment, String(refuse)) };
    } catch (cause) {
      if (signal?.aborted) return { reply: { ok: false, reason: 'aborted' } };
      this.#notes.push({ hook: name, did: 'failed', in: moment });
      safeLog(config.logger).warn(`The hook '${name}' failed in ${moment}`, { error: cause });
      return { reply: refusedReply(moment, `the hook '${name}' failed: ${errorMessage(cause)}`, cause) };
    }
  }
}

/**
 * The abort signal, the limits and the ids of a request stay; servers refuse tool options in a request without tools.
 */
function sendable(rewritten: LLMRequest, { signal, metadata, maxOutputTokens }: LLMRequest): LLMRequest {
  const { tools, toolChoice, parallelToolCalls, ...others } = rewritten;
  const limits = [maxOutputTokens, rewritten.maxOutputTokens].filter((limit) => limit !== undefined);
  return withoutUndefined({
    ...others,
    ...(tools?.length ? { tools, toolChoice, parallelToolCalls } : {}),
    maxOutputTokens: limits.length > 0 ? Math.min(...limits) : undefined,
    signal: signal ?? rewritten.signal,
    metadata: metadata ?? rewritten.metadata,
  });
}

function refusedReply(moment: HookMoment, reason: string, cause?: unknown): Reply {
  const what =
    moment === 'beforeRequest'
      ? 'The request was not made'
      : 'The request was made, and its reply is not used';
  const options = cause === undefined ? undefined : { cause };
  const error = new ToolwrightError('RequestRefused', `${what}: ${reason}`, options);
  return { ok: false, reason: 'failed', error, isFinal: true };
}

/** Whether the model is offered the tools, and the settings of its request. */
interface Offer {
  readonly withTools: boolean;
  readonly settings?: StepSettings;
}

const WITH_TOOLS: Offer = { withTools: true };

const ABORTED: Reply = { ok: false, reason: 'aborted' };

/** Sends one request to the model: settings, request, reply. */
export function requestReply(run: LoopRun, offer = WITH_TOOLS): Promise<Reply> {
  const { config, sink, signal } = run;
  if (signal?.aborted) return Promise.resolve(ABORTED);
  const isPrepared = config.prepareStep !== undefined || config.compactHistory !== undefined;
  return sink === undefined && !isPrepared ? send(run, offer) : prepareAndSend(run, offer);
}

async function prepareAndSend(run: LoopRun, offer: Offer): Promise<Reply> {
  const { config, sink, signal } = run;
  const taken = sink?.({ type: 'step-start', iteration: run.iterations + 1 });
  if (taken !== undefined) await taken;
  // The reader may have aborted the run at this event; then no request is sent.
  if (signal?.aborted) return ABORTED;
  const { prepareStep, compactHistory } = config;
  const settings = prepareStep || compactHistory ? await prepareRequest(run) : undefined;
  if (signal?.aborted) return ABORTED;
  // A returned promise resolves later than an awaited one.
  return await send(run, settings === undefined ? offer : { ...offer, settings });
}

function send(run: LoopRun, offer: Offer): Promise<Reply> {
  run.iterations += 1;
  const asked = questionOf(run, offer);
  const trace = startTrace(run, asked);
  const asking = ask(run, trace, asked).then((reply) =>
    reply.ok || reply.reason === 'aborted' ? reply : askAgain(run, reply, { offer, trace }),
  );
  return trace === undefined ? asking : endTrace(trace, asking);
}

function questionOf(run: LoopRun, offer: Offer): ModelQuestion {
  const { sink, hasReader } = run;
  const onPart = sink !== undefined && hasReader?.() !== false ? sink : undefined;
  return { provider: targetOf(run).provider, request: buildRequest(run, offer), onPart };
}

/**
 * Retries a failed request if the failure may be temporary, then uses the next provider of the run, for the rest of
 * the run. Once a part of the reply was streamed, there is no retry, because it would be streamed twice.
 */
async function askAgain(
  run: LoopRun,
  failure: Failure,
  { offer, trace: first }: { readonly offer: Offer; readonly trace: RequestTrace | undefined },
): Promise<Reply> {
  const { providerRetries = DEFAULT_RETRIES } = run.config;
  // It was counted before it was clear that it cannot be made.
  if (failure.isUnsent) run.iterations -= 1;
  let trace = first;
  let reply: Reply = failure;
  for (let tries = 0; !reply.ok && reply.reason === 'failed' && !reply.hasStreamed && !reply.isFinal; ) {
    const { error } = reply;
    const { cause } = error;
    // A client with its own retries reports their number.
    tries += isRecord(cause) && typeof cause.tries === 'number' ? Math.max(1, cause.tries) : 1;
    const delayMs = tries <= providerRetries ? waitBefore(tries, cause) : undefined;
    if (delayMs === undefined) {
      if (run.failedOver === run.fallback.length) break;
      run.failedOver += 1;
      tries = 0;
    }
    await pauseBefore(run, error, delayMs ?? 0);
    if (run.signal?.aborted) {
      reply = ABORTED;
      break;
    }
    run.providerRetries += 1;
    const asked = questionOf(run, offer);
    if (delayMs !== undefined) trace?.event({ type: 'request-retry', delayMs, error: cause });
    else {
      // Another model is a separate request in the trace.
      trace?.end(requestEnd(reply));
      trace = startTrace(run, asked);
    }
    reply = await ask(run, trace, asked);
  }
  trace?.end(requestEnd(reply));
  return reply;
}

/** Reports that a request failed and is made again, and waits. */
async function pauseBefore(run: LoopRun, error: Error, delayMs: number): Promise<void> {
  const { config, sink, signal, iterations: iteration } = run;
  const model = targetOf(run).model ?? config.model;
  const fields = { model, delayMs: Math.round(delayMs), error: error.message };
  safeLog(config.logger).warn('The provider failed and the request is made again', fields);
  await sink?.({ type: 'request-retry', iteration, model, delayMs, error });
  if (delayMs > 0) await pause(delayMs, undefined, { signal }).catch(() => {});
}

function startTrace({ trace, tools }: LoopRun, { provider, request, onPart }: ModelQuestion) {
  const isStreamed = onPart !== undefined;
  return trace?.startRequest({ provider, request, isStreamed, redaction: tools.redaction });
}

async function endTrace(trace: RequestTrace, asking: Promise<Reply>): Promise<Reply> {
  try {
    const reply = await asking;
    trace.end(requestEnd(reply));
    return reply;
  } catch (error) {
    trace.end({ how: 'failed', error });
    throw error;
  }
}

/** Sends one request to the provider, within the budget and the hooks of the run. The trace stays open for retries. */
function ask(run: LoopRun, trace: RequestTrace | undefined, question: ModelQuestion): Promise<Reply> {
  if (trace === undefined) return askWithin(run, question);
  const onPart = tracedParts(trace, question.onPart);
  return trace.within(() => askWithin(run, { ...question, onPart, trace }));
}

function askWithin(run: LoopRun, question: ModelQuestion): Promise<Reply> {
  const { budget } = run;
  if (budget === undefined) return askOnce(run, question);
  return budget.ask(run, question, (asked) => askOnce(run, asked));
}

function askOnce(run: LoopRun, asked: ModelQuestion): Promise<Reply> {
  if (run.hooks !== undefined) return run.hooks.ask(run, asked);
  asked.trace?.sent(asked.request);
  return askModel(asked);
}

/** The settings of the run's `prepareStep` and `compactHistory` for its next request. */
async function prepareRequest(run: LoopRun): Promise<StepSettings | undefined> {
  const { config, iterations, messages, usage, signal } = run;
  const { prepareStep, compactHistory, model } = config;
  const known = { step: iterations + 1, usage, signal };
  try {
    const settings =
      prepareStep && (await settingsOf(prepareStep, { ...known, messages: messages.slice(), model }));
    if (compactHistory === undefined || settings?.messages !== undefined || signal?.aborted) return settings;
    const asked = settings?.model ?? model;
    const given = messages.slice();
    const compacted = await compactHistory(given, { ...known, model: asked });
    if (keptFrom.get(compacted) === given) return { ...settings, messages: compacted };
    const { messages: carried, repairs } = compactedHistory(compacted, messages);
    run.sent.reportRepairs(repairs);
    return { ...settings, messages: carried };
  } catch (error) {
    // The preparation was interrupted with the run.
    if (signal?.aborted) return undefined;
    throw error;
  }
}

function targetOf({ config, fallback, failedOver }: LoopRun): ProviderTarget {
  // An index of -1 would be looked up as a name, which is slow.
  return failedOver === 0 ? config : (fallback[failedOver - 1] ?? config);
}

function buildRequest(run: LoopRun, { withTools, settings = {} }: Offer): LLMRequest {
  const { config, signal, sent } = run;
  const { provider, model: own = config.model } = targetOf(run);
  // The model of a step applies only to the provider for which it was chosen.
  const model = run.failedOver > 0 ? own : (settings.model ?? own);
  const options = settings.llmOptions ?? config.llmOptions ?? {};
  const answer = withTools ? run.output?.offer(provider, model) : undefined;
  const tools = settings.tools && withTools ? run.tools.view({ allow: [...settings.tools] }) : run.tools;
  const offered = withTools ? offeredDefinitions(run, tools, { provider, model }) : [];
  const definitions = answer?.tool ? [...offered, answer.tool] : offered;
  const hasTools = definitions.length > 0;
  const key = provider.itemKey?.(model);
  const history = sent.for(key, settings.messages);
  const isLong = history.length >= LONG_HISTORY;
  // A copy, because providers and tests may store the array, and the history continues to grow.
  const messages = isLong ? [] : history.slice();
  const { scope, runId, iterations: step } = run;
  const { conversationId } = scope;
  const metadata: RequestMetadata =
    conversationId === undefined ? { runId, step } : { conversationId, runId, step };
  // Most requests have one of these forms. Adding keys one by one costs twice as much.
  const request: Writable<LLMRequest> = hasTools
    ? { model, messages, options, tools: definitions, metadata }
    : { model, messages, options: withoutToolOptions(options), metadata };
  if (isLong) Object.defineProperty(request, 'messages', copiedWhenRead(history));
  if (hasTools) {
    const isChosen = run.isAnswerAsked || (settings.toolChoice ?? config.toolChoice) !== undefined;
    const toolChoice = isChosen ? choiceFor(run, settings, answer?.tool) : undefined;
    if (toolChoice !== undefined) request.toolChoice = toolChoice;
    if (config.parallelToolCalls !== undefined) request.parallelToolCalls = config.parallelToolCalls;
  }
  const responseFormat = settings.responseFormat ?? answer?.format;
  if (responseFormat !== undefined) request.responseFormat = responseFormat;
  if (signal !== undefined) request.signal = signal;
  return request;
}

function choiceFor(
  { config, toolCalls, isAnswerAsked }: LoopRun,
  { toolChoice: ofStep }: StepSettings,
  answer: ToolSchema | undefined,
): ToolChoice | undefined {
  if (isAnswerAsked && answer !== undefined) return { tool: answer.function.name };
  const { toolChoice } = config;
  if (ofStep !== undefined || toolChoice === undefined || toolCalls.length === 0) return ofStep ?? toolChoice;
  // A choice that forces a call applies to the first call; otherwise the run would never end.
  if (typeof toolChoice === 'string') return toolChoice === 'required' ? 'auto' : toolChoice;
  return 'tool' in toolChoice ? 'auto' : { ...toolChoice, mode: 'auto' };
}

/** From this length on, copying is slower than a property that copies when it is read. */
const LONG_HISTORY = 2_000;

/** `history` is append-only, so that its length identifies its state. */
function copiedWhenRead(history: readonly Message[]): PropertyDescriptor {
  const { length } = history;
  let messages: readonly Message[] | undefined;
  return {
    enumerable: true,
    configurable: true,
    get: () => {
      messages ??= history.slice(0, length);
      return messages;
    },
    set: (replaced: readonly Message[]) => {
      messages = replaced;
    },
  };
}

/** Servers refuse tool options in a request without tools. */
function withoutToolOptions(options: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (!('tool_choice' in options) && !('parallel_tool_calls' in options)) return options;
  const { tool_choice: _, parallel_tool_calls: __, ...others } = options;
  return others;
}

const DEFAULT_RETRIES = 2;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;
/** Longer requested pauses are not waited for. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/** Milliseconds until the same request may be retried; `undefined` if that would not help. */
function waitBefore(tries: number, cause: unknown): number | undefined {
  // Errors of the AI SDK have `isRetryable`.
  if (!isRecord(cause) || !(cause.retryable ?? cause.isRetryable)) return undefined;
  const { retryAfterMs } = cause;
  if (typeof retryAfterMs === 'number' && retryAfterMs >= 0)
    return retryAfterMs <= LONGEST_RETRY_AFTER_MS ? retryAfterMs : undefined;
  const longest = Math.min(FIRST_PAUSE_MS * 2 ** (tries - 1), LONGEST_PAUSE_MS);
  // Clients that failed together would retry together.
  return longest * (0.5 + Math.random() / 2);
}

/** Starts the trace of a run that starts or continues, if there is a recorder. */
export function traceOfRun(
  telemetry: Telemetry | undefined,
  run: Pick<LoopRun, 'runId' | 'config' | 'scope'> & { readonly before: TracePlace | undefined },
): RunTrace | undefined {
  if (!telemetry?.isOn) return undefined;
  const { runId, config, scope, before } = run;
  const { agentName: agent, model } = config;
  return telemetry.startRun({ runId, model, agent, conversationId: scope.conversationId, before });
}

/** Drives a run within its trace, which ends with it. */
export async function driveTraced(
  run: LoopRun,
  trace: RunTrace,
  drive: () => Promise<ToolLoopResult>,
): Promise<ToolLoopResult> {
  const { iterations, usage, record } = run;
  const calls = run.toolCalls.length;
  const callIds = (record?.open?.calls ?? []).flatMap((call) =>
    call.status === 'settled' ? [call.record.id] : [],
  );
  if (callIds.length > 0) trace.event({ type: 'settled-before', callIds });
  const costBefore = run.budget?.spending.cost ?? 0;
  const counts = () => {
    const cost = run.budget?.spending.cost;
    const { inputTokens, outputTokens, totalTokens } = usageSince(usage, run.usage);
    return {
      requests: run.iterations - iterations,
      calls: run.toolCalls.length - calls,
      usage: { inputTokens, outputTokens, totalTokens },
      ...(cost === undefined ? {} : { cost: cost - costBefore }),
    };
  };
  try {
    const result = await trace.within(drive);
    const { status, error, pending } = result;
    trace.end({ status, error, waits: pending?.map(({ kind }) => kind), ...counts() });
    return result;
  } catch (error) {
    trace.end({ status: 'failed', error, ...counts() });
    throw error;
  }
}

/** Adds each part of a streamed reply to the trace. */
function tracedParts(trace: RequestTrace, onPart: PartListener | undefined): PartListener | undefined {
  if (onPart === undefined) return undefined;
  return (part) => {
    trace.part();
    return onPart(part);
  };
}

/** Sends a request outside a run, and records it if there is a recorder. */
export async function askRecorded(telemetry: Telemetry | undefined, question: ModelQuestion): Promise<Reply> {
  if (!telemetry?.isOn) return askModel(question);
  const { provider, request, onPart } = question;
  const isStreamed = onPart !== undefined;
  const trace = telemetry.startRequest({ provider, request, isStreamed, redaction: KNOWN_SECRETS });
  trace.sent(request);
  const asked = { ...question, onPart: tracedParts(trace, onPart) };
  const reply = await trace.within(() => askModel(asked));
  trace.end(requestEnd(reply));
  return reply;
}

function requestEnd(reply: Reply): TracedRequestEnd {
  if (reply.ok) return { how: 'replied', response: reply.response, cost: reply.cost };
  return reply.reason === 'aborted'
    ? { how: 'aborted' }
    : { how: 'failed', error: reply.error.cause ?? reply.error };
}
