import { setTimeout as pause } from 'node:timers/promises';
import type { HookMoment, HookNote } from '../../core/contract/call.js';
import type { HookedRequest, Hooks } from '../../core/contract/hooks.js';
import type {
  LLMRequest,
  LLMResponse,
  RequestMetadata,
  ToolChoice,
  ToolSchema,
} from '../../core/contract/llm-provider.js';
import type { RequestTrace, Telemetry, TracedRequestEnd } from '../../core/contract/telemetry.js';
import { InvalidOptionsError } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { unlessAborted } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { type Fields, isRecord, plainJson, withoutUndefined } from '../../core/kernel/json.js';
import {
  answerOf,
  type HookAnswer,
  type HooksByMoment,
  hooksByMoment,
  type NamedHook,
} from '../call/hooked-call.js';
import { safeLog } from '../call/log.js';
import { KNOWN_SECRETS } from '../call/redact.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import {
  askModel,
  type Failure,
  type ModelQuestion,
  normalizeResponse,
  type PartListener,
  providerFailure,
  type Reply,
  streamWhole,
} from './ask-model.js';
import { keptOf } from './keep-recent.js';
import { addUsage, HistoryScope, type LoopRun, type Writable } from './loop-run.js';
import { isLoopCall } from './loop-tools.js';
import {
  compactedHistory,
  type ProviderTarget,
  type StepSettings,
  settingsOf,
  type ToolLoopConfig,
} from './options.js';

/** The return value of a hook, or the reply that ends the request instead. */
type Asked = { readonly said: HookAnswer } | { readonly said?: undefined; readonly reply: Reply };

/** A request or a reply on its way through the hooks. */
interface Passing<Value> {
  readonly moment: HookMoment;
  readonly value: Value;
  readonly ask: (hook: Hooks, value: Value) => unknown;
  /** Normalizes what a hook returned instead. */
  readonly read: (rewritten: Value) => Value;
}

export class RequestHooks {
  readonly #hooks: HooksByMoment;
  #notes: HookNote[] = [];

  private constructor(hooks: HooksByMoment) {
    this.#hooks = hooks;
  }

  static among(tools: ToolRegistry, { hooks = [] }: ToolLoopConfig): RequestHooks | undefined {
    const found = hooksByMoment([...tools.hooks, ...hooks]);
    const { beforeRequest, afterResponse, onError } = found;
    const count = beforeRequest.length + afterResponse.length + onError.length;
    return count === 0 ? undefined : new RequestHooks(found);
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
    const before = await this.#pass<LLMRequest>(run, {
      moment: 'beforeRequest',
      value: given,
      ask: (hook, request) => hook.beforeRequest?.(request, about),
      read: (request) => sendable(request, given),
    });
    if ('reply' in before) return before.reply;
    const request = before.value;
    // Parts that hooks may withhold are streamed only after the hooks have seen them.
    trace?.sent(request);
    const isHeld = this.#hooks.afterResponse.some(({ hook }) => hook.onlyReads !== true);
    let reply = await askModel({ provider, request, onPart: isHeld ? undefined : onPart });
    if (!reply.ok && reply.reason === 'failed') reply = await this.#onFailure(run, { about, request }, reply);
    if (!reply.ok) return reply;
    const after = await this.#pass<LLMResponse>(run, {
      moment: 'afterResponse',
      value: reply.response,
      ask: (hook, response) => hook.afterResponse?.(response, { ...about, request }),
      read: normalizeResponse,
    });
    if ('reply' in after) {
      // The reply was paid for all the same.
      addUsage(run, reply.response.usage);
      return after.reply;
    }
    if (isHeld && onPart) await streamWhole(after.value, onPart);
    return { ok: true, response: after.value };
  }

  /** Passes a value through the hooks of a moment, in order. */
  async #pass<Value>(
    run: LoopRun,
    { moment, value, ask, read }: Passing<Value>,
  ): Promise<{ readonly value: Value } | { readonly reply: Reply }> {
    let passed = value;
    for (const named of this.#hooks[moment]) {
      const asked = await this.#askHook(run, named, { moment, ask: (hook) => ask(hook, passed) });
      if (asked.said === undefined) return asked;
      const { request, response } = asked.said;
      const rewritten = request ?? response;
      if (rewritten === undefined || rewritten === passed) continue;
      passed = read(rewritten as Value);
      this.#notes.push({ hook: named.name, did: 'rewrote', in: moment });
    }
    return { value: passed };
  }

  /** The failure, or a hook's reply instead. If a hook fails here, there is nothing to refuse. */
  async #onFailure(
    run: LoopRun,
    { about, request }: { readonly about: HookedRequest; readonly request: LLMRequest },
    failure: Failure,
  ): Promise<Reply> {
    const { error } = failure;
    for (const named of this.#hooks.onError) {
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
      ? 'The request was not sent'
      : 'The request was sent, but its reply is not used';
  const options = cause === undefined ? undefined : { cause };
  const error = new ToolwrightError('RequestRefused', `${what}: ${reason}`, options);
  return { ok: false, reason: 'failed', error, isFinal: true };
}

/** Whether the model is offered the tools, and the settings of its request. */
interface Offer {
  readonly withTools: boolean;
  readonly settings?: StepSettings | undefined;
}

const ABORTED: Reply = { ok: false, reason: 'aborted' };

/** Sends one request to the model: settings, request, reply. */
export function requestReply(run: LoopRun, withTools = true): Promise<Reply> {
  const { config, sink, signal } = run;
  if (signal?.aborted) return Promise.resolve(ABORTED);
  const isPrepared = (sink ?? config.prepareStep ?? config.compactHistory) !== undefined;
  return isPrepared ? prepareAndSend(run, withTools) : send(run, { withTools });
}

async function prepareAndSend(run: LoopRun, withTools: boolean): Promise<Reply> {
  const { config, sink, signal } = run;
  const taken = sink?.({ type: 'step-start', iteration: run.iterations + 1 });
  if (taken !== undefined) await taken;
  // The reader may have aborted the run at this event; then no request is sent.
  if (signal?.aborted) return ABORTED;
  const { prepareStep, compactHistory } = config;
  let settings: StepSettings | undefined;
  try {
    const prepared = (prepareStep ?? compactHistory) && prepareRequest(run);
    settings = await (prepared && signal ? unlessAborted(prepared, signal) : prepared);
  } catch (cause) {
    if (signal?.aborted) return ABORTED;
    const names = [prepareStep && 'prepareStep', compactHistory && 'compactHistory'].filter(Boolean);
    const problem = `${names.join(' or ')} failed: ${errorMessage(cause)}`;
    return refusedReply('beforeRequest', problem, cause);
  }
  if (signal?.aborted) return ABORTED;
  // A returned promise resolves later than an awaited one.
  return await send(run, { withTools, settings });
}

function send(run: LoopRun, offer: Offer): Promise<Reply> {
  run.iterations += 1;
  const question = questionOf(run, offer);
  if ('error' in question) return askAgain(run, offer, { failure: question });
  const { trace } = question;
  return ask(run, question).then(
    (reply) => {
      if (!reply.ok && reply.reason === 'failed') return askAgain(run, offer, { trace, failure: reply });
      trace?.end(requestEnd(reply));
      return reply;
    },
    (error) => {
      trace?.end({ how: 'failed', error });
      throw error;
    },
  );
}

/** Makes a failed request again, as often as may be. */
async function askAgain(
  run: LoopRun,
  offer: Offer,
  asked: { readonly trace?: RequestTrace | undefined; readonly failure: Failure },
): Promise<Reply> {
  const { config, sink, signal } = run;
  const { providerRetries = DEFAULT_RETRIES } = config;
  let { trace } = asked;
  let reply: Reply = asked.failure;
  // It was counted before it was clear that it cannot be made.
  if (asked.failure.isUnsent) run.iterations -= 1;
  try {
    for (let retries = new Retries(providerRetries); isRetryable(reply); ) {
      const { error } = reply;
      const { cause } = error;
      const delayMs = retries.pauseAfter(cause);
      if (delayMs === undefined) {
        if (run.failedOver === run.fallback.length) break;
        run.failedOver += 1;
        retries = new Retries(providerRetries);
      }
      const model = targetOf(run).model ?? config.model;
      const pauseMs = delayMs ?? 0;
      const fields = { model, delayMs: Math.round(pauseMs), error: error.message };
      safeLog(config.logger).warn('The provider failed; the request is sent again', fields);
      await sink?.({ type: 'request-retry', iteration: run.iterations, model, delayMs: pauseMs, error });
      if (pauseMs > 0) await pause(pauseMs, undefined, { signal }).catch(() => {});
      if (signal?.aborted) {
        reply = ABORTED;
        break;
      }
      run.providerRetries += 1;
      if (delayMs !== undefined) trace?.event({ type: 'request-retry', delayMs, error: cause });
      else {
        // Another model is a separate request in the trace.
        trace?.end(requestEnd(reply));
        trace = undefined;
      }
      const question = questionOf(run, offer, trace);
      if ('error' in question) reply = question;
      else {
        trace = question.trace;
        reply = await ask(run, question);
      }
    }
    trace?.end(requestEnd(reply));
    return reply;
  } catch (error) {
    trace?.end({ how: 'failed', error });
    throw error;
  }
}

/**
 * Whether the request may be made again, if the failure may be temporary, or to the next provider, which is then used
 * for the rest of the run. Once a part of the reply was streamed, it would be streamed twice.
 */
function isRetryable(reply: Reply): reply is Failure {
  return !reply.ok && reply.reason === 'failed' && !reply.hasStreamed && !reply.isFinal;
}

/** A request, or the failure of a method of its provider. `trace`: of an earlier try of the same request. */
function questionOf(run: LoopRun, offer: Offer, trace?: RequestTrace): ModelQuestion | Failure {
  const { tools } = run;
  const onPart = partListener(run);
  const { provider } = targetOf(run);
  let request: LLMRequest;
  try {
    request = buildRequest(run, offer);
  } catch (cause) {
    if (cause instanceof InvalidOptionsError) throw cause;
    return providerFailure(cause);
  }
  if (run.trace === undefined) return { provider, request, onPart };
  const facts = { provider, request, isStreamed: onPart !== undefined, redaction: tools.redaction };
  return traced({ provider, request, onPart }, trace ?? run.trace.startRequest(facts));
}

/** Passes on the parts of a reply, except the calls that the loop answers itself. */
function partListener(run: LoopRun): PartListener | undefined {
  const { sink, hasReader } = run;
  if (sink === undefined || hasReader?.() === false) return undefined;
  const hidden = new Set<string>();
  return (part) => {
    if (part.type === 'call-input-start' && isLoopCall(run, part.tool)) hidden.add(part.callId);
    return 'callId' in part && hidden.has(part.callId) ? undefined : sink(part);
  };
}

/** Sends one request to the provider, within the budget and the hooks of the run. The trace stays open for retries. */
function ask(run: LoopRun, question: ModelQuestion): Promise<Reply> {
  const { trace } = question;
  return trace === undefined ? askWithin(run, question) : trace.within(() => askWithin(run, question));
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
  const { config, iterations, messages, usage, signal, offer } = run;
  const { prepareStep, compactHistory, model } = config;
  const known = { step: iterations + 1, usage, signal };
  const settings =
    prepareStep && (await settingsOf(prepareStep, { ...known, messages: messages.slice(), model }));
  if (settings !== undefined) offer.checkNames('what prepareStep returns', settings);
  if (compactHistory === undefined || settings?.messages !== undefined || signal?.aborted) return settings;
  const kept = keptOf.get(compactHistory)?.(messages);
  if (kept !== undefined) return { ...settings, messages: kept };
  const asked = settings?.model ?? model;
  const compacted = await compactHistory(messages.slice(), { ...known, model: asked });
  const { messages: carried, repairs } = compactedHistory(compacted, messages);
  run.sent.reportRepairs(repairs);
  return { ...settings, messages: carried };
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
  const offered = withTools ? run.offer.definitions(tools, { provider, model }) : [];
  const definitions = answer?.tool ? [...offered, answer.tool] : offered;
  const hasTools = definitions.length > 0;
  const key = provider.itemKey?.(model);
  // A copy, because providers and tests may store the array, and the history continues to grow.
  const messages = sent.for(key, settings.messages).slice();
  const { scope, runId, iterations: step } = run;
  const { conversationId } = scope;
  const metadata: RequestMetadata =
    conversationId === undefined ? { runId, step } : { conversationId, runId, step };
  // Most requests have one of these forms. Adding keys one by one costs twice as much.
  const request: Writable<LLMRequest> = hasTools
    ? { model, messages, options, tools: definitions, metadata }
    : { model, messages, options: withoutToolOptions(options), metadata };
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

/** The pauses before a failed request is sent again. */
class Retries {
  #tries = 0;

  constructor(private readonly most: number) {}

  /** Milliseconds until the request may be repeated after this error; `undefined` if that would not help. */
  pauseAfter(cause: unknown): number | undefined {
    const { isRetryable, retryAfterMs, tries } = retryWanted(cause);
    this.#tries += tries;
    if (this.#tries > this.most || !isRetryable) return undefined;
    if (typeof retryAfterMs === 'number' && retryAfterMs >= 0)
      return retryAfterMs <= LONGEST_RETRY_AFTER_MS ? retryAfterMs : undefined;
    const longest = Math.min(FIRST_PAUSE_MS * 2 ** (this.#tries - 1), LONGEST_PAUSE_MS);
    // Clients that failed together would retry together.
    return longest * (0.5 + Math.random() / 2);
  }
}

/** What a provider's error states about retries; nothing if it cannot be read. */
function retryWanted(cause: unknown): Fields & { readonly tries: number } {
  try {
    const { retryable, isRetryable, retryAfterMs, tries } = isRecord(cause) ? cause : {};
    // A client with its own retries reports their number. Errors of the AI SDK have `isRetryable`.
    const made = typeof tries === 'number' ? Math.max(1, tries) : 1;
    return { isRetryable: retryable ?? isRetryable, retryAfterMs, tries: made };
  } catch {
    return { tries: 1 };
  }
}

/** A request whose streamed parts are added to its trace. */
function traced(question: ModelQuestion, trace: RequestTrace): ModelQuestion {
  const { onPart } = question;
  const recorded: PartListener | undefined =
    onPart &&
    ((part) => {
      trace.part();
      return onPart(part);
    });
  return { ...question, onPart: recorded, trace };
}

/** Sends a request outside a run, as often as a run does by default, and records it if there is a recorder. */
export async function askRecorded(telemetry: Telemetry | undefined, question: ModelQuestion): Promise<Reply> {
  if (!telemetry?.isOn) return askUntilAnswered(question);
  const { provider, request, onPart } = question;
  const isStreamed = onPart !== undefined;
  const trace = telemetry.startRequest({ provider, request, isStreamed, redaction: KNOWN_SECRETS });
  trace.sent(request);
  const reply = await trace.within(() => askUntilAnswered(traced(question, trace)));
  trace.end(requestEnd(reply));
  return reply;
}

async function askUntilAnswered(question: ModelQuestion): Promise<Reply> {
  const { request, trace } = question;
  const retries = new Retries(DEFAULT_RETRIES);
  let reply = await askModel(question);
  while (isRetryable(reply)) {
    const { cause } = reply.error;
    const delayMs = retries.pauseAfter(cause);
    if (delayMs === undefined) break;
    trace?.event({ type: 'request-retry', delayMs, error: cause });
    await pause(delayMs, undefined, { signal: request.signal }).catch(() => {});
    reply = await askModel(question);
  }
  return reply;
}

function requestEnd(reply: Reply): TracedRequestEnd {
  if (reply.ok) return { how: 'replied', response: reply.response, cost: reply.cost };
  return reply.reason === 'aborted'
    ? { how: 'aborted' }
    : { how: 'failed', error: reply.error.cause ?? reply.error };
}
