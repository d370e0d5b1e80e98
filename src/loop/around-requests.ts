import { hooksWith, type NamedHook, type SaidWord, wordOf } from '../call/hooked-call.js';
import { SafeLog } from '../call/log.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import { type BudgetAmounts, NO_AMOUNTS } from '../contract/budget-ledger.js';
import type { HookMoment, HookNote } from '../contract/call.js';
import type { HookedRequest, Hooks } from '../contract/hooks.js';
import type { LLMRequest, LLMResponse, Usage } from '../contract/llm-provider.js';
import type { Logger } from '../contract/ports.js';
import { InvalidOptionsError } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { unlessAborted } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import { isRecord, plainJson } from '../kernel/json.js';
import { askModel, type Failure, normalizeResponse, type Reply, tellWhole } from './ask-model.js';
import { tokensIn } from './estimate-tokens.js';
import { addUsage, HistoryScope, type LoopRun, type Question, type RunHooks } from './loop-run.js';
import type { ToolLoopConfig } from './options.js';
import { inUnits } from './prices.js';
import type { Reserved, ReservedRequest, RunBudget } from './run-budget.js';

/** What surrounds the requests of a run: its budget, and its hooks within. `undefined` where nothing does. */
export function hooksAround(
  tools: ToolRegistry,
  config: ToolLoopConfig,
  budget: RunBudget | undefined,
): RunHooks | undefined {
  const hooks = RequestHooks.among(tools, config);
  return budget === undefined ? hooks : new BudgetedRequests(budget, hooks);
}

/** The hooks that have to do with the requests of a run. */
class RequestHooks implements RunHooks {
  readonly #before: readonly NamedHook[];
  readonly #after: readonly NamedHook[];
  readonly #onError: readonly NamedHook[];
  #notes: HookNote[] = [];

  private constructor(hooks: readonly Hooks[]) {
    this.#before = hooksWith(hooks, 'beforeRequest');
    this.#after = hooksWith(hooks, 'afterResponse');
    this.#onError = hooksWith(hooks, 'onError');
  }

  /** `undefined` where none of them has: then nothing is asked. */
  static among(tools: ToolRegistry, { hooks = [] }: ToolLoopConfig): RequestHooks | undefined {
    const asked = new RequestHooks([...tools.hooks, ...hooks]);
    return asked.#before.length + asked.#after.length + asked.#onError.length === 0 ? undefined : asked;
  }

  takeNotes(): readonly HookNote[] {
    const notes = this.#notes;
    this.#notes = [];
    return notes;
  }

  async ask(run: LoopRun, { provider, request, onPart, onFailure, trace }: Question): Promise<Reply> {
    const { runId, iterations: step } = run;
    const scope = new HistoryScope(run.scope, run.messages);
    const asking = new AskedRequest(run, { runId, step, scope }, (note) => this.#notes.push(note));
    const before = await asking.before(this.#before, request);
    if (!before.ok) return before.reply;
    // What hooks may take back is not told before they have had their say.
    trace?.sent(before.request);
    const isHeld = this.#after.some(({ hook }) => hook.onlyReads !== true);
    const reply = await askModel(provider, before.request, { onPart: isHeld ? undefined : onPart });
    const heard =
      !reply.ok && reply.reason === 'failed'
        ? await asking.failed(this.#onError, before.request, reply)
        : reply;
    if (!heard.ok) return heard.reason === 'failed' && onFailure ? onFailure(heard) : heard;
    const after = await asking.after(this.#after, before.request, heard.response);
    if (after.ok && isHeld && onPart) await tellWhole(after.response, onPart);
    // It was paid for all the same.
    if (!after.ok) addUsage(run, heard.response.usage);
    return after;
  }
}

type Asked = { readonly said: SaidWord } | { readonly said?: undefined; readonly reply: Reply };

/** One request that hooks are asked about. */
class AskedRequest {
  readonly #signal: AbortSignal | undefined;
  readonly #logger: Logger | undefined;
  readonly #about: HookedRequest;
  readonly #keep: (note: HookNote) => void;

  constructor({ signal, config }: LoopRun, about: HookedRequest, keep: (note: HookNote) => void) {
    this.#signal = signal;
    this.#logger = config.logger;
    this.#about = about;
    this.#keep = keep;
  }

  async before(
    hooks: readonly NamedHook[],
    given: LLMRequest,
  ): Promise<
    { readonly ok: true; readonly request: LLMRequest } | { readonly ok: false; readonly reply: Reply }
  > {
    let request = given;
    for (const named of hooks) {
      const asked = await this.#ask(named, 'beforeRequest', (hook) =>
        hook.beforeRequest?.(request, this.#about),
      );
      if (asked.said === undefined) return { ok: false, reply: asked.reply };
      const { request: rewritten } = asked.said;
      if (rewritten === undefined || rewritten === request) continue;
      request = sendable(rewritten as LLMRequest, given);
      this.#keep({ hook: named.name, did: 'rewrote', in: 'beforeRequest' });
    }
    return { ok: true, request };
  }

  async after(hooks: readonly NamedHook[], request: LLMRequest, given: LLMResponse): Promise<Reply> {
    let response = given;
    for (const named of hooks) {
      const asked = await this.#ask(named, 'afterResponse', (hook) =>
        hook.afterResponse?.(response, { ...this.#about, request }),
      );
      if (asked.said === undefined) return asked.reply;
      const { response: rewritten } = asked.said;
      if (rewritten === undefined || rewritten === response) continue;
      response = normalizeResponse(rewritten as LLMResponse);
      this.#keep({ hook: named.name, did: 'rewrote', in: 'afterResponse' });
    }
    return { ok: true, response };
  }

  /** What stands for a request that failed: the failure, or a reply that a hook gives instead. */
  async failed(hooks: readonly NamedHook[], request: LLMRequest, failure: Failure): Promise<Reply> {
    const { error } = failure;
    for (const named of hooks) {
      const asked = await this.#ask(named, 'onError', (hook) =>
        hook.onError?.({ of: 'request', error, request, about: this.#about }),
      );
      // One that fails to hear of an error has nothing to refuse.
      if (asked.said?.response === undefined) continue;
      this.#keep({ hook: named.name, did: 'answered', in: 'onError' });
      return { ok: true, response: normalizeResponse(asked.said.response as LLMResponse) };
    }
    return failure;
  }

  async #ask(named: NamedHook, moment: HookMoment, ask: (hook: Hooks) => unknown): Promise<Asked> {
    const { name, hook } = named;
    try {
      const asked = ask(hook);
      const answer = this.#signal === undefined ? await asked : await unlessAborted(asked, this.#signal);
      const said = wordOf(moment, answer);
      checkForm(said);
      if (said.note !== undefined)
        this.#keep({ hook: name, did: 'noted', in: moment, note: plainJson(said.note) });
      if (said.refuse === undefined) return { said };
      this.#keep({ hook: name, did: moment === 'beforeRequest' ? 'refused' : 'withheld', in: moment });
      return { reply: refusedReply(moment, String(said.refuse)) };
    } catch (cause) {
      if (this.#signal?.aborted) return { reply: { ok: false, reason: 'aborted' } };
      this.#keep({ hook: name, did: 'failed', in: moment });
      new SafeLog(this.#logger).warn(`The hook '${name}' failed in ${moment}`, { error: cause });
      return { reply: refusedReply(moment, `the hook '${name}' failed: ${errorMessage(cause)}`, cause) };
    }
  }
}

/** @throws TypeError for what is no request or reply. */
function checkForm({ request, response }: SaidWord): void {
  if (request !== undefined && !(isRecord(request) && Array.isArray(request.messages)))
    throw new TypeError('`request` has no messages');
  if (response !== undefined && !isRecord(response)) throw new TypeError('`response` is no reply');
}

/**
 * What ends the request, limits it and says whose it is stays; servers refuse options about tools where there are none.
 */
function sendable(rewritten: LLMRequest, { signal, metadata, maxOutputTokens }: LLMRequest): LLMRequest {
  const { tools, toolChoice, parallelToolCalls, ...others } = rewritten;
  const limit = lower(maxOutputTokens, rewritten.maxOutputTokens);
  const offer = tools?.length
    ? {
        tools,
        ...(toolChoice === undefined ? {} : { toolChoice }),
        ...(parallelToolCalls === undefined ? {} : { parallelToolCalls }),
      }
    : {};
  return {
    ...others,
    ...offer,
    ...(limit ? { maxOutputTokens: limit } : {}),
    ...(signal ? { signal } : {}),
    ...(metadata ? { metadata } : {}),
  };
}

function lower(limit: number | undefined, own: number | undefined): number | undefined {
  return limit === undefined || own === undefined ? (limit ?? own) : Math.min(limit, own);
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

/** Makes the requests of a run as far as its budget reaches, with whatever else surrounds them within. */
class BudgetedRequests implements RunHooks {
  readonly #budget: RunBudget;
  readonly #within: RunHooks | undefined;

  constructor(budget: RunBudget, within: RunHooks | undefined) {
    this.#budget = budget;
    this.#within = within;
  }

  takeNotes(): readonly HookNote[] {
    return this.#within?.takeNotes() ?? [];
  }

  async ask(run: LoopRun, question: Question): Promise<Reply> {
    const { provider, onPart, onFailure, trace } = question;
    const before = await this.#reserve(question);
    if ('reply' in before) {
      // It was counted before anybody knew that it cannot be made.
      if (onFailure !== undefined) run.iterations -= 1;
      return before.reply;
    }
    const { request, at, reserved } = before;
    const usage = run.usage;
    // What becomes of a failure is settled apart: it may be asked again, and that is reserved anew.
    const once = { provider, request, ...(onPart ? { onPart } : {}), ...(trace ? { trace } : {}) };
    let reply: Reply;
    try {
      if (this.#within === undefined) trace?.sent(request);
      reply = await (this.#within?.ask(run, once) ?? askModel(provider, request, { onPart }));
    } catch (error) {
      await reserved.settle(at);
      throw error;
    }
    const amounts = this.#amountsOf(run, question, { reply, at, usage });
    const fault = await settle(reserved, amounts);
    if (fault !== undefined && reply.ok) return fault;
    if (reply.ok) return trace === undefined ? reply : { ...reply, cost: inUnits(amounts.cost) };
    return reply.reason === 'failed' && onFailure !== undefined ? onFailure(reply) : reply;
  }

  async #reserve({ request }: Question): Promise<{ readonly reply: Reply } | ReservedRequest> {
    try {
      const reserved = await this.#budget.reserveRequest(request);
      if (reserved !== undefined) return reserved;
      const error = this.#budget.end ?? new ToolwrightError('BudgetSpent', 'The budget is spent.');
      return { reply: { ok: false, reason: 'failed', error, isFinal: true } };
    } catch (cause) {
      // What the author of the run got wrong is not the provider's failure.
      if (cause instanceof InvalidOptionsError) throw cause;
      return { reply: notCounted('The request was not made', cause) };
    }
  }

  /** What a request took, whatever came of it. */
  #amountsOf(
    run: LoopRun,
    { request }: Question,
    { reply, at, usage }: { readonly reply: Reply; readonly at: BudgetAmounts; readonly usage: Usage },
  ): BudgetAmounts {
    const { model } = request;
    if (reply.ok) return this.#budget.amountsOf(model, reply.response.usage, at);
    // A reply that a hook withheld was paid for.
    const tokens = run.usage.totalTokens - usage.totalTokens;
    if (tokens > 0) return { ...at, tokens };
    const streamed = reply.reason === 'aborted' ? (reply.streamed ?? '') : '';
    const hasBegun = streamed !== '' || (reply.reason === 'failed' && reply.isTold === true);
    // What failed before a word was heard is not charged for; what broke off is.
    return hasBegun ? { ...at, tokens: Math.max(at.tokens, tokensIn(streamed)) } : NO_AMOUNTS;
  }
}

async function settle(reserved: Reserved, amounts: BudgetAmounts): Promise<Reply | undefined> {
  try {
    await reserved.settle(amounts);
    return undefined;
  } catch (cause) {
    return notCounted('The reply came, and what it took could not be counted', cause);
  }
}

/** Without a store nobody knows what may be spent: fails closed. A price that is missing says so itself. */
function notCounted(what: string, cause: unknown): Reply {
  const error = ToolwrightError.is(cause)
    ? cause
    : new ToolwrightError('RunStoreFailed', `${what}: ${errorMessage(cause)}`, { cause });
  return { ok: false, reason: 'failed', error, isFinal: true };
}
