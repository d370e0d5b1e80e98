import { hooksWith, type NamedHook, type SaidWord, wordOf } from '../call/hooked-call.js';
import { SafeLog } from '../call/log.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import type { HookMoment, HookNote } from '../contract/call.js';
import type { HookedRequest, Hooks } from '../contract/hooks.js';
import type { LLMRequest, LLMResponse } from '../contract/llm-provider.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { unlessAborted } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import { isRecord, plainJson } from '../kernel/json.js';
import {
  askModel,
  type Failure,
  normalizeResponse,
  type Question,
  type Reply,
  tellWhole,
} from './ask-model.js';
import { addUsage, HistoryScope, type LoopRun } from './loop-run.js';
import type { ToolLoopConfig } from './options.js';

/** What a hook returned, or the reply that ends the request instead. */
type Asked = { readonly said: SaidWord } | { readonly said?: undefined; readonly reply: Reply };

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

  /** What was done about requests since the last call. */
  takeNotes(): readonly HookNote[] {
    const notes = this.#notes;
    this.#notes = [];
    return notes;
  }

  async ask(run: LoopRun, { provider, request: given, onPart, onFailure, trace }: Question): Promise<Reply> {
    const scope = new HistoryScope(run.scope, run.messages);
    const about = { runId: run.runId, step: run.iterations, scope };
    const before = await this.#beforeRequest(run, about, given);
    if ('reply' in before) return before.reply;
    const { request } = before;
    // What hooks may take back is not streamed before they have seen it.
    trace?.sent(request);
    const isHeld = this.#after.some(({ hook }) => hook.onlyReads !== true);
    let reply = await askModel(provider, request, { onPart: isHeld ? undefined : onPart });
    if (!reply.ok && reply.reason === 'failed') reply = await this.#onFailure(run, { about, request }, reply);
    if (!reply.ok) return reply.reason === 'failed' && onFailure ? onFailure(reply) : reply;
    const after = await this.#afterResponse(run, { ...about, request }, reply.response);
    if (after.ok && isHeld && onPart) await tellWhole(after.response, onPart);
    // It was paid for all the same.
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

  /** The failure, or a reply that a hook gives instead. A hook that fails here has nothing to refuse. */
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
      const said = wordOf(moment, signal === undefined ? await asked : await unlessAborted(asked, signal));
      const { request, response, note, refuse } = said;
      if (request !== undefined && !(isRecord(request) && Array.isArray(request.messages)))
        throw new TypeError('`request` has no messages');
      if (response !== undefined && !isRecord(response)) throw new TypeError('`response` is no reply');
      if (note !== undefined)
        this.#notes.push({ hook: name, did: 'noted', in: moment, note: plainJson(note) });
      if (refuse === undefined) return { said };
      const did = moment === 'beforeRequest' ? 'refused' : 'withheld';
      this.#notes.push({ hook: name, did, in: moment });
      return { reply: refusedReply(moment, String(refuse)) };
    } catch (cause) {
      if (signal?.aborted) return { reply: { ok: false, reason: 'aborted' } };
      this.#notes.push({ hook: name, did: 'failed', in: moment });
      new SafeLog(config.logger).warn(`The hook '${name}' failed in ${moment}`, { error: cause });
      return { reply: refusedReply(moment, `the hook '${name}' failed: ${errorMessage(cause)}`, cause) };
    }
  }
}

/** The parts that end the request, limit it and identify it stay; servers refuse tool options in a request without tools. */
function sendable(rewritten: LLMRequest, { signal, metadata, maxOutputTokens }: LLMRequest): LLMRequest {
  const { tools, toolChoice, parallelToolCalls, ...others } = rewritten;
  const limits = [maxOutputTokens, rewritten.maxOutputTokens].filter((limit) => limit !== undefined);
  return {
    ...others,
    ...(tools?.length ? { tools } : {}),
    ...(tools?.length && toolChoice !== undefined ? { toolChoice } : {}),
    ...(tools?.length && parallelToolCalls !== undefined ? { parallelToolCalls } : {}),
    ...(limits.length > 0 ? { maxOutputTokens: Math.min(...limits) } : {}),
    ...(signal ? { signal } : {}),
    ...(metadata ? { metadata } : {}),
  };
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
