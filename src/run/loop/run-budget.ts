import { type Budget, keepsBudgets, type Spending } from '../../core/contract/budget.js';
import {
  type BudgetAmounts,
  type BudgetLedger,
  NO_AMOUNTS,
  partBeyond,
} from '../../core/contract/budget-ledger.js';
import type { CallScope } from '../../core/contract/call.js';
import type { HookedCall, Hooks } from '../../core/contract/hooks.js';
import type { LLMRequest, Usage } from '../../core/contract/llm-provider.js';
import type { RunState, StoredCallRecord, StoredWaitingCall } from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { InvalidOptionsError } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { andThen, withinLimits } from '../../core/kernel/async.js';
import { cached } from '../../core/kernel/cached.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { HeldCall } from '../call/hooked-call.js';
import type { MaybeLater } from '../call/invocation.js';
import type { ModelQuestion, Reply } from './ask-model.js';
import {
  type Account,
  askingFaults,
  type Beyond,
  type BudgetQuestion,
  type CountedBefore,
  costOfCall,
  countsCost,
  grantShared,
  MISSING_LEDGER,
  mayHaveRun,
  missingPrice,
  questionCall,
  RunAccount,
  reserveShared,
  type SharedAccount,
  sharedAccounts,
  shown,
  spentBefore,
  WORDS,
} from './budget-accounts.js';
import type { LoopEnd } from './events.js';
import type { SentMessages } from './messages.js';
import type { ToolLoopConfig } from './options.js';
import { costOf, inBillionths, inUnits, PRICES, priceOf } from './prices.js';
import { storeFailed, wrongConfig } from './run-errors.js';

/** When a reservation expires if its process crashes, and how often it is renewed. */
const LEASE_MS = 60_000;
const RENEW_MS = 20_000;
/** How long the end of a run waits for reservations that an abort has left behind. */
const GIVE_BACK_MS = 5_000;

const MAX_OUTPUT_TOKENS = 8_192;
/** A smaller reply would usually be cut off, but paid for, so it is not requested. */
const USEFUL_OUTPUT_TOKENS = 1_024;

/** A reservation, to be settled once. */
interface Reserved {
  settle(spent: BudgetAmounts): void | Promise<void>;
}

/** A request that may be made, in the form to send, and its largest amounts. */
interface ReservedRequest {
  readonly request: LLMRequest;
  readonly at: BudgetAmounts;
  readonly reserved: Reserved;
}

/** The smallest useful request. */
interface RequestNeed {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** The first request of a new run. */
  readonly isFirst: boolean;
}

const RESERVE_LESS = 'or reserve less, with budget.maxOutputTokens or a limit of tokens in llmOptions';

type BudgetedConfig = Pick<ToolLoopConfig, 'budget' | 'store' | 'model' | 'fallback'>;

interface BudgetStart {
  readonly scope: CallScope;
  /** The budget of the run whose call starts this run. */
  readonly parent: RunBudget | undefined;
  readonly before: CountedBefore | undefined;
}

/** The limits of a run, and the amounts that it has spent. */
export class RunBudget {
  readonly #budget: Budget;
  readonly #parent: RunBudget | undefined;
  readonly #own: RunAccount;
  /** Its own account, and those of enclosing runs. */
  readonly #accounts: readonly RunAccount[];
  readonly #shared: readonly SharedAccount[];
  /** The accounts whose grants the state of this run contains. */
  readonly #granting: readonly Account[];
  readonly #ledger: BudgetLedger | undefined;
  readonly #isPriced: boolean;
  /** Calls and their costs in billionths. */
  readonly #tools = new Map<string, { calls: number; cost: number }>();
  readonly #open = new Map<string, { readonly cost: number; readonly reserved: Reserved }>();
  readonly #beginning = new Set<Promise<unknown>>();
  #isClosed = false;
  #since = performance.now();
  /** Time that is not settled with the shared accounts yet. */
  #unsettledMs = 0;
  /** The run is new, and has sent no request yet. */
  #isFresh: boolean;
  #end: ToolwrightError | undefined;
  #question: BudgetQuestion | undefined;

  /** @throws InvalidOptionsError (521) for a budget whose key or store is missing, or whose question has no amounts. */
  constructor(
    given: Budget | undefined,
    { scope, store, parent, before }: BudgetStart & Pick<BudgetedConfig, 'store'>,
  ) {
    const budget = given ?? parent?.forChildren ?? {};
    const [fault] = askingFaults(budget);
    if (fault !== undefined) throw wrongConfig(fault);
    this.#budget = budget;
    this.#parent = parent;
    this.#isFresh = before === undefined;
    const option = given === undefined ? 'budget.children' : 'budget';
    const around = parent === undefined ? [] : parent.#accounts;
    this.#own = new RunAccount(budget, { spent: spentBefore(before), depth: around.length, option });
    this.#accounts = [this.#own, ...around];
    this.#isPriced = countsCost(budget) || (parent === undefined ? false : parent.#isPriced);
    for (const [name, { calls, cost }] of Object.entries(before?.spent?.tools ?? {}))
      this.#tools.set(name, { calls, cost: inBillionths(cost) });
    const own = sharedAccounts(budget, scope);
    const keys = new Set(own.map(({ place }) => place));
    const inherited = parent === undefined ? [] : parent.#shared;
    this.#shared = [...own, ...inherited.filter(({ place }) => !keys.has(place))];
    this.#granting = [this.#own, ...own];
    for (const { account, part, amount } of before?.granted ?? [])
      this.#granting.find(({ place }) => place === account)?.grant(part, amount);
    const storing = budget.store ?? (keepsBudgets(store) ? store : undefined);
    this.#ledger = storing?.budgets ?? (parent === undefined ? undefined : parent.#ledger);
    if (own.length > 0 && this.#ledger === undefined) throw wrongConfig(MISSING_LEDGER);
  }

  /** The budget of runs inside its calls. */
  get forChildren(): Budget {
    const { children, prices, countTokens, maxOutputTokens } = this.#budget;
    return withoutUndefined({ ...children, prices, countTokens, maxOutputTokens });
  }

  /** The end of the run, if a limit was exceeded. */
  get ended(): LoopEnd | undefined {
    return this.#end && { status: 'budget', error: this.#end };
  }

  /** A limit was exceeded, and more can be granted: the run asks before it continues. */
  get isAsking(): boolean {
    return this.#end === undefined && this.#question !== undefined;
  }

  /** Its question, as a call of the step that comes next. */
  questionBefore(iteration: number): StoredWaitingCall | undefined {
    return this.#question && this.#end === undefined ? questionCall(this.#question, iteration) : undefined;
  }

  /** Why the run ends although calls are held for a question: another limit is used up. */
  get endInsteadOfAsking(): ToolwrightError | undefined {
    return this.#question && this.#end;
  }

  /**
   * Applies the answer to its question: a further amount; or a refusal with a reason (possibly empty), and the run
   * ends.
   */
  async answer(
    asked: Required<StoredWaitingCall>['asks'] & { readonly id: string },
    given: number | string,
  ): Promise<void> {
    const shared = this.#shared.find(({ place }) => place === asked.account);
    const account = shared ?? this.#accounts.find(({ place }) => place === asked.account);
    this.#question = undefined;
    if (typeof given !== 'number') {
      account?.refuse();
      const whose = account?.whose ?? 'the run';
      this.#end ??= new ToolwrightError(
        'BudgetSpent',
        `The budget of ${whose} is spent, and nobody grants more${given}.`,
      );
    } else if (shared === undefined || this.#ledger === undefined) account?.grant(asked.part, given);
    else await grantShared(this.#ledger, shared, { id: asked.id, part: asked.part, amount: given });
  }

  get progress(): Pick<RunState, 'spent' | 'granted'> {
    const granted = this.#granting.flatMap(({ grants }) => grants);
    return { spent: this.spending, ...(granted.length === 0 ? {} : { granted }) };
  }

  /** The amounts spent so far, including nested runs. */
  get spending(): Spending {
    this.#lap();
    const { tokens, cost, calls, steps, timeMs } = this.#own.spent;
    const priced = this.#isPriced || cost > 0 ? { cost: inUnits(cost) } : {};
    const tools = Object.fromEntries(
      Array.from(this.#tools, ([name, tool]) => [name, { calls: tool.calls, cost: inUnits(tool.cost) }]),
    );
    return { tokens, calls, steps, timeMs: Math.round(timeMs), ...priced, tools };
  }

  /** Makes a request if the budget allows it; `ask` makes it, with everything else around it. */
  async ask(
    run: { readonly usage: Usage; readonly sent: SentMessages },
    question: ModelQuestion,
    ask: (question: ModelQuestion) => Promise<Reply>,
  ): Promise<Reply> {
    let before: ReservedRequest | undefined;
    try {
      const reserving = this.#reserveRequest(question.request, run.sent);
      before = reserving instanceof Promise ? await reserving : reserving;
    } catch (cause) {
      // A mistake of the run's author is not a failure of the provider.
      if (cause instanceof InvalidOptionsError) throw cause;
      return notMade(notCounted('The request was not made', cause));
    }
    if (before === undefined)
      return notMade(this.#end ?? new ToolwrightError('BudgetSpent', 'The budget is spent.'));
    const { request, at, reserved } = before;
    const usedBefore = run.usage.totalTokens;
    let reply: Reply;
    try {
      // A failure is settled, too: a retry is reserved again.
      reply = await ask(request === question.request ? question : { ...question, request });
    } catch (error) {
      await reserved.settle(at);
      throw error;
    }
    const amounts = this.#amountsOf(reply, {
      model: request.model,
      at,
      withheld: run.usage.totalTokens - usedBefore,
    });
    try {
      const settled = reserved.settle(amounts);
      if (settled !== undefined) await settled;
    } catch (cause) {
      const error = notCounted('The reply came, and what it took could not be counted', cause);
      if (reply.ok) return { ok: false, reason: 'failed', error, isFinal: true };
    }
    return reply.ok && question.trace !== undefined ? { ...reply, cost: inUnits(amounts.cost) } : reply;
  }

  /**
   * Reserves the largest amounts of a request; if the budget is not enough, its reply may have fewer tokens. Returns
   * `undefined` if it may not be made.
   *
   * @throws InvalidOptionsError (521) for the first request of a run, if the budget was never enough for it.
   */
  #reserveRequest(request: LLMRequest, sent: SentMessages): MaybeLater<ReservedRequest | undefined> {
    const { countTokens } = this.#budget;
    const { model } = request;
    const counted = countTokens === undefined ? requestTokens(request, sent) : countTokens(request);
    const inputTokens = Math.max(0, Math.ceil(counted));
    const { unasked, most } = this.#outputOf(request);
    const least = Math.min(USEFUL_OUTPUT_TOKENS, most);
    const isFirst = this.#isFresh;
    this.#isFresh = false;
    const amountsOf = (outputTokens: number): BudgetAmounts =>
      ofRequest(inputTokens + outputTokens, this.#costOf(model, { inputTokens, outputTokens }));
    const attempt = (outputTokens: number): MaybeLater<ReservedRequest | undefined> => {
      const at = amountsOf(outputTokens);
      return andThen(this.#reserve(at), (reserved) => {
        const isLowered = outputTokens < unasked;
        if ('settle' in reserved)
          return {
            request: isLowered ? { ...request, maxOutputTokens: outputTokens } : request,
            at,
            reserved,
          };
        // Decreases each time, because others may spend from the same budget meanwhile.
        const lower = Math.min(this.#outputWithin(reserved, { model, inputTokens }), outputTokens - 1);
        if (lower >= least) return attempt(lower);
        this.#spentByRequest({ inputTokens, outputTokens: least, isFirst }, reserved, amountsOf(least));
        return undefined;
      });
    };
    return attempt(most);
  }

  /** The most tokens of a reply: without a budget, and with it. */
  #outputOf({ model, options }: LLMRequest): { readonly unasked: number; readonly most: number } {
    const { max_completion_tokens, max_output_tokens, maxOutputTokens: camel, max_tokens } = options;
    const given = [max_completion_tokens, max_output_tokens, camel, max_tokens];
    const said = given.find(Number.isFinite) as number | undefined;
    const { prices = PRICES, maxOutputTokens } = this.#budget;
    const { maxOutputTokens: known = Infinity } = this.#isPriced ? priceOf(prices, model) : {};
    const unasked = Math.min(said ?? Infinity, known);
    // For an unknown model, a limit is assumed but not sent, because the model may not support it.
    if (unasked === Infinity && maxOutputTokens === undefined)
      return { unasked: MAX_OUTPUT_TOKENS, most: MAX_OUTPUT_TOKENS };
    return { unasked, most: Math.min(unasked, maxOutputTokens ?? unasked) };
  }

  /** The most tokens of a reply that the rest of a part can pay for. */
  #outputWithin(
    { part, limit, used }: Beyond,
    { model, inputTokens }: { readonly model: string; readonly inputTokens: number },
  ): number {
    const left = limit - used;
    if (part === 'tokens') return left - inputTokens;
    if (part !== 'cost') return 0;
    const ofInput = this.#costOf(model, { inputTokens });
    const ofMillion = this.#costOf(model, { outputTokens: 1_000_000 });
    return Math.floor(((left - ofInput) * 1_000_000) / ofMillion);
  }

  /** The amounts of a request: the reported usage, or the reserved amounts. */
  #amountsOf(
    reply: Reply,
    {
      model,
      at,
      withheld,
    }: { readonly model: string; readonly at: BudgetAmounts; readonly withheld: number },
  ): BudgetAmounts {
    if (reply.ok) {
      const { usage } = reply.response;
      if (usage === undefined) return at;
      const { inputTokens, outputTokens, totalTokens } = usage;
      if (totalTokens + inputTokens + outputTokens === 0) return at;
      const tokens = Math.max(totalTokens, inputTokens + outputTokens);
      return ofRequest(tokens, this.#costOf(model, usage));
    }
    // A reply that a hook withheld was paid for.
    if (withheld > 0) return { ...at, tokens: withheld };
    const streamed = reply.reason === 'aborted' ? (reply.streamed ?? '') : '';
    const hasBegun = streamed !== '' || (reply.reason === 'failed' && reply.hasStreamed === true);
    // A failure before the first token is not charged; an interrupted reply is.
    return hasBegun ? { ...at, tokens: Math.max(at.tokens, tokensIn(streamed)) } : NO_AMOUNTS;
  }

  /** Runs around the calls of the run: the last hook, called if nothing else prevents the call. */
  readonly hook: Hooks = {
    name: 'budget',
    beforeRun: (call) => {
      const beginning = this.#beginCall(call);
      if (!(beginning instanceof Promise)) return beginning;
      const tracked = beginning.finally(() => this.#beginning.delete(tracked));
      this.#beginning.add(tracked);
      return tracked;
    },
    afterCall: ({ callId, name, status, isCompletion, isAnswered }) => {
      const open = this.#open.get(callId);
      if (open === undefined || isCompletion) return undefined;
      this.#open.delete(callId);
      const hasRun = mayHaveRun(status) && !isAnswered;
      if (hasRun) this.#countCall(name, open.cost);
      return open.reserved.settle(hasRun ? ofCall(open.cost) : NO_AMOUNTS) as undefined;
    },
  };

  #beginCall({ callId, tool, arguments: args }: HookedCall) {
    const cost = costOfCall(tool, args);
    const amounts = ofCall(cost);
    const begun = (reserved: Reserved | Beyond) => {
      if ('part' in reserved)
        return this.isAsking ? HeldCall.word : { refuse: this.#end?.message ?? 'the budget is spent' };
      if (this.#isClosed) return reserved.settle(NO_AMOUNTS) as undefined;
      this.#open.set(callId, { cost, reserved });
      return undefined;
    };
    const reserved = andThen(this.#reserve(amounts), (outcome) => {
      if ('part' in outcome) this.#spent(outcome, amounts);
      return outcome;
    });
    // A parallel call may end the run instead of asking; this is known once all have begun.
    const isLater = reserved instanceof Promise || 'part' in reserved;
    return isLater ? Promise.resolve(reserved).then(begun) : begun(reserved);
  }

  /**
   * Returns the reservations of calls that wait for an answer, which are executed again and counted then, and of
   * calls that an abort ended while the ledger was called.
   */
  async close(): Promise<void> {
    const beginning = Promise.allSettled(this.#beginning);
    if (this.#beginning.size > 0)
      await withinLimits(beginning, { signal: undefined, timeoutMs: GIVE_BACK_MS }).catch(() => {});
    this.#isClosed = true;
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { reserved } of open)
      try {
        await reserved.settle(NO_AMOUNTS);
      } catch {}
  }

  /**
   * Counts calls of a run whose process crashed that its last count does not contain. Shared accounts already contain
   * them.
   */
  countSettled(
    records: readonly StoredCallRecord[],
    find: (name: string) => ToolDefinition | undefined,
  ): void {
    for (const { name, status, hooks = [], arguments: args } of records) {
      if (!mayHaveRun(status) || hooks.some(({ did }) => did === 'answered')) continue;
      const cost = costOfCall(find(name), args);
      this.#countCall(name, cost);
      for (const account of this.#accounts) account.spend(ofCall(cost));
    }
  }

  #countCall(name: string, cost: number): void {
    const tool = this.#tools.get(name);
    if (tool === undefined) this.#tools.set(name, { calls: 1, cost });
    else {
      tool.calls += 1;
      tool.cost += cost;
    }
    if (this.#parent !== undefined) this.#parent.#countCall(name, cost);
  }

  /** @throws InvalidOptionsError (521) for a model without a price, if it needs one. */
  checkPrice(model: string): void {
    const missing = this.#isPriced ? missingPrice(this.#budget.prices, model) : undefined;
    if (missing !== undefined) throw wrongConfig(missing);
  }

  #costOf(model: string, usage: Partial<Usage>): number {
    return this.#isPriced ? costOf(priceOf(this.#budget.prices ?? PRICES, model), usage) : 0;
  }

  /** Reserves, or returns the limit that prevents it; as a promise only if the budget is shared with other runs. */
  #reserve(amounts: BudgetAmounts): MaybeLater<Reserved | Beyond> {
    this.#lap();
    const accounts = this.#accounts;
    for (const account of accounts) {
      const { limits, used } = account;
      const part = partBeyond(limits, used, amounts)?.part;
      if (part !== undefined)
        return {
          account,
          part,
          limit: limits[part] ?? 0,
          used: used[part],
          grantable: account.grantable(part),
        };
    }
    for (const account of accounts) account.reserve(amounts);
    const settle = (spent: BudgetAmounts): void => {
      for (const account of accounts) account.settle(amounts, spent);
    };
    if (this.#ledger === undefined || this.#shared.length === 0) return { settle };
    return this.#reserveShared(this.#ledger, { amounts, settle });
  }

  async #reserveShared(
    ledger: BudgetLedger,
    { amounts, settle }: Reserved & { readonly amounts: BudgetAmounts },
  ): Promise<Reserved | Beyond> {
    const id = crypto.randomUUID();
    let isReserved = false;
    try {
      const beyond = await reserveShared(ledger, this.#shared, { id, amounts, leaseMs: LEASE_MS });
      if (beyond !== undefined) return beyond;
      isReserved = true;
    } finally {
      if (!isReserved) settle(NO_AMOUNTS);
    }
    const renew = async () => ledger.renewReservation(id, LEASE_MS);
    // A failed renewal has no effect here: at worst, others may spend the reserved amounts.
    const timer = setInterval(() => renew().catch(() => {}), RENEW_MS);
    timer.unref();
    return {
      settle: async (spent) => {
        clearInterval(timer);
        settle(spent);
        this.#lap();
        const timeMs = Math.round(this.#unsettledMs);
        this.#unsettledMs = 0;
        await ledger.settle(id, { ...spent, timeMs });
      },
    };
  }

  /** Even the smallest useful request exceeded the budget. */
  #spentByRequest(
    { isFirst, inputTokens, outputTokens }: RequestNeed,
    beyond: Beyond,
    amounts: BudgetAmounts,
  ): void {
    const { account, part, limit, used } = beyond;
    const isReserved = part === 'tokens' || part === 'cost';
    const option = `${account.option}.${part}`;
    const least = shown(part, amounts[part]);
    const reserves = `reserves ${least} for about ${inputTokens} tokens of input and ${outputTokens} of output`;
    const mayAsk = beyond.grantable >= leastGrant(beyond, amounts);
    if (isFirst && isReserved && used === 0 && !mayAsk)
      throw wrongConfig({
        option,
        problem: `${option} is ${shown(part, limit)}, which pays for no useful request: one ${reserves}`,
        fix: `${option}: ${least} or more; ${RESERVE_LESS}`,
      });
    const next = `the next request ${reserves}. Raise ${option}, ${RESERVE_LESS}.`;
    this.#spent(beyond, amounts, isReserved ? next : undefined);
  }

  /** A limit was exceeded: the run ends, or asks for more. */
  #spent(beyond: Beyond, amounts: BudgetAmounts, next?: string): void {
    const { account, part, limit, used, grantable } = beyond;
    const left = Math.max(0, limit - used);
    const spent = `The budget of ${account.whose} is spent: of ${shown(part, limit)} ${WORDS[part]}, ${shown(part, left)} are left, and`;
    const message = `${spent} what comes next may take more.`;
    const least = leastGrant(beyond, amounts);
    // The user who grants more need not see how to reduce the request.
    if (grantable < least)
      this.#end ??= new ToolwrightError('BudgetSpent', next ? `${spent} ${next}` : message);
    else this.#question ??= { ...beyond, left, least, message };
  }

  /** Time counts once for the run, with any number of parallel calls; the enclosing run has its own clock. */
  #lap(): void {
    const now = performance.now();
    const lap = now - this.#since;
    this.#since = now;
    this.#own.passTime(lap);
    if (this.#parent === undefined) this.#unsettledMs += lap;
  }
}

/**
 * The budget of a run, from its config or from the enclosing run's call; `undefined` if there is none.
 *
 * @throws InvalidOptionsError (521) for a budget that cannot be enforced, and for a model without a price.
 */
export function budgetOf(
  { budget, store, model, fallback = [] }: BudgetedConfig,
  start: BudgetStart,
): RunBudget | undefined {
  if (budget === undefined && start.parent === undefined) return undefined;
  const made = new RunBudget(budget, { ...start, store });
  for (const next of [{ model }, ...fallback]) if ('model' in next && next.model) made.checkPrice(next.model);
  return made;
}

function ofRequest(tokens: number, cost: number): BudgetAmounts {
  return { tokens, cost, calls: 0, steps: 1, timeMs: 0 };
}

function ofCall(cost: number): BudgetAmounts {
  return { tokens: 0, cost, calls: 1, steps: 0, timeMs: 0 };
}

/** The smallest sufficient grant. Time is not reserved: slightly more than the used time is enough. */
function leastGrant({ part, limit, used }: Beyond, amounts: BudgetAmounts): number {
  return used - limit + (part === 'timeMs' ? 1 : amounts[part]);
}

function notMade(error: ToolwrightError): Reply {
  return { ok: false, reason: 'failed', error, isFinal: true, isUnsent: true };
}

/** Without the store, the limits are unknown, so the request is refused. A missing price has its own error. */
function notCounted(what: string, cause: unknown): ToolwrightError {
  return ToolwrightError.is(cause) ? cause : storeFailed(what, cause);
}

/** The least characters per token: English text has four, JSON and code three. */
const CHARS_PER_TOKEN = 3;
/** The overhead of a message and a request in addition to their texts. */
const FRAME_TOKENS = 8;

/** Of the definitions of tools, which every request of a run contains again. */
const tokensKnown = new WeakMap<object, number>();

function tokensOf(part: object): number {
  return FRAME_TOKENS + tokensIn(JSON.stringify(part));
}

/** Estimates the tokens of a request, rather too high than too low. */
function requestTokens({ tools = [], responseFormat }: LLMRequest, sent: SentMessages): number {
  let tokens = FRAME_TOKENS + sent.tokens(tokensOf);
  for (const tool of tools) tokens += cached(tokensKnown, tool, tokensOf);
  return responseFormat === undefined ? tokens : tokens + tokensIn(JSON.stringify(responseFormat));
}

/** Other characters than ASCII may take a token each, and rare ones several: their bytes are counted. */
function tokensIn(text: string): number {
  // Most texts are ASCII.
  if (Buffer.byteLength(text) === text.length) return Math.ceil(text.length / CHARS_PER_TOKEN);
  let others = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code > 0x7f) others += code > 0x7ff ? 1.5 : 1;
  }
  return Math.ceil((text.length - others) / CHARS_PER_TOKEN + others);
}
