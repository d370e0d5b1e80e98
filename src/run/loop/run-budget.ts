import { setTimeout as pause } from 'node:timers/promises';
import {
  type AskableLimits,
  type Budget,
  type BudgetGrant,
  type BudgetLimits,
  type KeyedBudget,
  keepsBudgets,
  type Spending,
} from '../../core/contract/budget.js';
import {
  addAmounts,
  BUDGET_PARTS,
  type BudgetAccount,
  type BudgetAmounts,
  type BudgetLedger,
  type BudgetPart,
  type BudgetReservation,
  conversationKey,
  grantedKey,
  NO_AMOUNTS,
  partBeyond,
} from '../../core/contract/budget-ledger.js';
import type { CallRecord, CallScope, CallStatus } from '../../core/contract/call.js';
import type { Hooks } from '../../core/contract/hooks.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { LLMRequest, Usage } from '../../core/contract/llm-provider.js';
import {
  type RunState,
  STORED_ID,
  type StoredCallRecord,
  type StoredWaitingCall,
} from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { checkArguments, InvalidOptionsError } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { andThen, withinLimits } from '../../core/kernel/async.js';
import { cached } from '../../core/kernel/cached.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { HeldCall } from '../call/hooked-call.js';
import type { MaybeLater } from '../call/invocation.js';
import type { ModelQuestion, Reply } from './ask-model.js';
import type { LoopEnd } from './events.js';
import type { SentMessages } from './messages.js';
import type { ToolLoopConfig } from './options.js';
import { costOf, findPrice, inBillionths, inUnits, PRICES, priceOf } from './prices.js';
import { type ConfigFault, storeFailed, wrongConfig } from './run-errors.js';

/** When a reservation expires if its process crashes, and how often it is renewed. */
const LEASE_MS = 60_000;
const RENEW_MS = 20_000;
/** How long the end of a run waits for reservations that an abort has left behind. */
const GIVE_BACK_MS = 5_000;
/** How often a recovered run looks whether the reservations of its dead process have expired. */
const EXPIRY_LOOK_MS = 1_000;

/** The lifetime of a grant without a window. */
const YEAR_MS = 31_536_000_000;

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

const RESERVE_LESS = 'or reserve less, with budget.maxOutputTokens or a limit of tokens in llmOptions';

type BudgetedConfig = Pick<ToolLoopConfig, 'budget' | 'model' | 'fallback'> & { readonly store?: unknown };

interface BudgetStart {
  readonly scope: CallScope;
  /** The budget of the run whose call starts this run. */
  readonly parent: RunBudget | undefined;
  readonly before: CountedBefore | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The limits of a run, and the amounts that it has spent. */
export class RunBudget {
  readonly ledger: BudgetLedger | undefined;
  readonly isPriced: boolean;
  readonly #budget: Budget;
  readonly #parent: RunBudget | undefined;
  readonly #own: RunAccount;
  /** Its own account, and those of enclosing runs. */
  readonly #accounts: readonly RunAccount[];
  readonly #shared: readonly SharedAccount[];
  /** The accounts whose grants the state of this run contains. */
  readonly #granting: readonly Account[];
  /** Calls and their costs in billionths. */
  readonly #tools = new Map<string, { calls: number; cost: number }>();
  readonly #open = new Map<string, { readonly cost: number; readonly reserved: Reserved }>();
  readonly #beginning = new Set<Promise<unknown>>();
  #isClosed = false;
  #since = performance.now();
  /** Time that is not settled with the shared accounts yet. */
  #unsettledMs = 0;
  /** Settled amounts, by reservation, that the ledger does not have yet. */
  readonly #unwritten = new Map<string, BudgetAmounts>();
  /** The run is new, and has sent no request yet. */
  #isFresh: boolean;
  readonly #signal: AbortSignal | undefined;
  /** When all reservations of a crashed process have expired. */
  readonly #expiredAt: number;
  #end: ToolwrightError | undefined;
  #question: BudgetQuestion | undefined;

  /** @throws InvalidOptionsError (521) for a budget that cannot be enforced. */
  constructor(config: BudgetedConfig, { scope, parent, before, signal }: BudgetStart) {
    const { budget = parent?.forChildren ?? {}, store } = config;
    const [fault] = budgetFaults({ ...config, budget }, parent);
    if (fault !== undefined) throw wrongConfig(fault);
    this.#budget = budget;
    this.#parent = parent;
    this.#isFresh = before === undefined;
    this.#signal = signal;
    this.#expiredAt =
      before?.steps === undefined ? (parent ? parent.#expiredAt : 0) : performance.now() + LEASE_MS;
    const option = config.budget === undefined ? 'budget.children' : 'budget';
    const around = parent ? parent.#accounts : [];
    this.#own = new RunAccount(budget, { spent: spentBefore(before), depth: around.length, option });
    this.#accounts = [this.#own, ...around];
    this.isPriced = countsCost(budget) || parent?.isPriced === true;
    for (const [name, { calls, cost }] of Object.entries(before?.spent?.tools ?? {}))
      this.#tools.set(name, { calls, cost: inBillionths(cost) });
    const own = sharedAccounts(budget, scope);
    const keys = new Set(own.map(({ place }) => place));
    const inherited = parent ? parent.#shared : [];
    this.#shared = [...own, ...inherited.filter(({ place }) => !keys.has(place))];
    this.#granting = [this.#own, ...own];
    for (const { account, part, amount } of before?.granted ?? [])
      this.#granting.find(({ place }) => place === account)?.grant(part, amount);
    this.ledger = ledgerOf(budget, store, parent);
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

  /**
   * Its question, as a waiting call of the step that comes next, so that stores, conversations and pages handle it like
   * others. It is not a call of a model, and never part of the history.
   */
  questionBefore(iteration: number): StoredWaitingCall | undefined {
    if (this.#question === undefined || this.#end !== undefined) return undefined;
    const { account, part, message, ...amounts } = this.#question;
    const { place, whose } = account;
    const inUnitsOf = (amount: number): number => shown(part, Math.ceil(amount));
    const [limit, left] = [inUnitsOf(amounts.limit), inUnitsOf(amounts.left)];
    const [least, most] = [inUnitsOf(amounts.least), inUnitsOf(amounts.grantable)];
    const args = { of: whose, part, limit, left, least, most };
    const schema = { type: part === 'cost' ? 'number' : 'integer', minimum: least, maximum: most } as const;
    const question = `${message} How many more may it use, from ${least} to ${most}?`;
    return {
      status: 'waiting',
      // Pages identify calls by id, and a run may ask before several of its steps.
      id: `budget_${iteration}_${part}_${limit}`,
      name: 'budget',
      arguments: args,
      waits: [{ kind: 'question', index: 0, message: question, schema }],
      journal: { arguments: args, answers: [], once: [] },
      asks: { account: place, part },
    };
  }

  /** Why the run ends although calls are held for a question: another limit is used up. */
  get endInsteadOfAsking(): ToolwrightError | undefined {
    return this.#question && this.#end;
  }

  /**
   * Applies the answer to its question: a further amount, in units; or a refusal with a reason (possibly empty), and the run
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
        `The budget of ${whose} is spent, and no more was granted${given}.`,
      );
      return;
    }
    const { id, part } = asked;
    const { ledger } = this;
    const amount = part === 'cost' ? inBillionths(given) : given;
    if (shared === undefined || ledger === undefined) return account?.grant(part, amount);
    // Stored as a reservation that is never settled, whose id is derived from the answer, so that it is granted once.
    const { grantedAccount } = shared;
    const leaseMs = grantedAccount.windowMs ?? YEAR_MS;
    const reserve = (most: number) =>
      ledger.reserve({ id, accounts: [grantedAccount], amounts: { ...NO_AMOUNTS, [part]: most }, leaseMs });
    const outcome = await reserve(amount);
    if (outcome.status === 'spent' && outcome.left > 0) await reserve(outcome.left);
  }

  get progress(): Pick<RunState, 'spent' | 'granted'> {
    const granted = this.#granting.flatMap(({ grants }) => grants);
    return { spent: this.spending, ...(granted.length === 0 ? {} : { granted }) };
  }

  /** The amounts spent so far, including nested runs. */
  get spending(): Spending {
    this.#lap();
    const { tokens, cost, calls, steps, timeMs } = this.#own.spent;
    const priced = this.isPriced || cost > 0 ? { cost: inUnits(cost) } : {};
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
      // Without the store, the limits are unknown. A missing price has its own error.
      return notMade(ToolwrightError.is(cause) ? cause : storeFailed('The request was not sent', cause));
    }
    if (before === undefined && this.#signal?.aborted) return { ok: false, reason: 'aborted' };
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
    const settled = reserved.settle(amounts);
    if (settled !== undefined) await settled;
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
    const { model, tools = [], responseFormat } = request;
    let counted = 0;
    if (countTokens !== undefined) counted = countTokens(request);
    else {
      // Rather too high than too low.
      counted = FRAME_TOKENS + sent.tokens(tokensOf);
      for (const tool of tools) counted += cached(tokensKnown, tool, tokensOf);
      if (responseFormat !== undefined) counted += tokensIn(JSON.stringify(responseFormat));
    }
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
        return andThen(this.#awaitExpiry(reserved, amountsOf(least)), (mayFit) => {
          if (mayFit) return attempt(most);
          this.#spentByRequest({ inputTokens, outputTokens: least, isFirst }, reserved, amountsOf(least));
          return undefined;
        });
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
    const { maxOutputTokens: known = Infinity } = this.isPriced ? priceOf(prices, model) : {};
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
    beforeRun: ({ callId, tool, arguments: args }) => {
      const cost = costOfCall(tool, args);
      const amounts = ofCall(cost);
      const begin = (reserved: Reserved | Beyond) => {
        if ('part' in reserved)
          return this.isAsking ? HeldCall.word : { refuse: this.#end?.message ?? 'the budget is spent' };
        if (this.#isClosed) return reserved.settle(NO_AMOUNTS) as undefined;
        this.#open.set(callId, { cost, reserved });
        return undefined;
      };
      const attempt = (): MaybeLater<Reserved | Beyond> =>
        andThen(this.#reserve(amounts), (outcome) => {
          if (!('part' in outcome)) return outcome;
          return andThen(this.#awaitExpiry(outcome, amounts), (mayFit) => {
            if (mayFit) return attempt();
            this.#spent(outcome, amounts);
            return outcome;
          });
        });
      const reserving = attempt();
      if (!(reserving instanceof Promise || 'part' in reserving)) return begin(reserving);
      // A parallel call may end the run instead of asking; this is known once all have begun.
      const beginning = Promise.resolve(reserving).then(begin);
      const tracked = beginning.finally(() => this.#beginning.delete(tracked));
      this.#beginning.add(tracked);
      return tracked;
    },
    afterCall: ({ callId, name, status, isCompletion, isAnswered }) => {
      const open = this.#open.get(callId);
      if (open === undefined || isCompletion) return undefined;
      this.#open.delete(callId);
      const hasRun = mayHaveRun({ status }) && !isAnswered;
      if (hasRun) this.#countCall(name, open.cost);
      return open.reserved.settle(hasRun ? ofCall(open.cost) : NO_AMOUNTS) as undefined;
    },
  };

  /**
   * Returns the reservations of calls that wait for an answer, which are executed again and counted then, and of
   * calls that an abort ended while the ledger was called. Throws if amounts could not be written to the ledger.
   */
  async close(): Promise<void> {
    const beginning = Promise.allSettled(this.#beginning);
    if (this.#beginning.size > 0)
      await withinLimits(beginning, { signal: undefined, timeoutMs: GIVE_BACK_MS }).catch(() => {});
    this.#isClosed = true;
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { reserved } of open) await reserved.settle(NO_AMOUNTS);
    if (this.ledger !== undefined) await this.#writeSettled(this.ledger);
  }

  /**
   * Counts calls of a run whose process crashed that its last count does not contain. Shared accounts already contain
   * them.
   */
  countSettled(
    records: readonly StoredCallRecord[],
    find: (name: string) => ToolDefinition | undefined,
  ): void {
    for (const record of records) {
      if (!mayHaveRun(record)) continue;
      const { name, arguments: args } = record;
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

  #costOf(model: string, usage: Partial<Usage>): number {
    return this.isPriced ? costOf(priceOf(this.#budget.prices ?? PRICES, model), usage) : 0;
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
    if (this.ledger === undefined || this.#shared.length === 0) return { settle };
    return this.#reserveShared(this.ledger, { amounts, settle });
  }

  async #reserveShared(
    ledger: BudgetLedger,
    { amounts, settle }: Reserved & { readonly amounts: BudgetAmounts },
  ): Promise<Reserved | Beyond> {
    const id = crypto.randomUUID();
    let isReserved = false;
    try {
      await this.#writeSettled(ledger);
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
        this.#unwritten.set(id, { ...spent, timeMs });
        await this.#writeSettled(ledger).catch(() => {});
      },
    };
  }

  /**
   * Writes settled amounts to the ledger. If it fails, they are written before the next reservation: replies and
   * results must not be lost because of it.
   */
  async #writeSettled(ledger: BudgetLedger): Promise<void> {
    for (const [id, amounts] of this.#unwritten) {
      await ledger.settle(id, amounts);
      this.#unwritten.delete(id);
    }
  }

  /**
   * After a crash, the dead process may still hold reservations, also for the step that is made again: waits a moment,
   * and returns whether the amounts may fit then. False if they do not fit even without any reservation.
   */
  #awaitExpiry({ account, part, limit }: Beyond, amounts: BudgetAmounts): MaybeLater<boolean> {
    const { ledger } = this;
    if (!(account instanceof SharedAccount) || ledger === undefined) return false;
    if (performance.now() >= this.#expiredAt) return false;
    const look = async () => {
      const { spent } = await ledger.balance(account.account);
      if (partBeyond({ [part]: limit }, spent, amounts) !== undefined) return false;
      await pause(EXPIRY_LOOK_MS, undefined, { signal: this.#signal }).catch(() => {});
      return !this.#signal?.aborted;
    };
    return look();
  }

  /** Even the smallest useful request exceeded the budget. */
  #spentByRequest(
    { isFirst, inputTokens, outputTokens }: { isFirst: boolean; inputTokens: number; outputTokens: number },
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
        problem: `${option} is ${shown(part, limit)}, which is not enough for one request: a request ${reserves}`,
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
    const message = `${spent} the next step may use more.`;
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
export function budgetOf(config: BudgetedConfig, start: BudgetStart): RunBudget | undefined {
  return (config.budget ?? start.parent) ? new RunBudget(config, start) : undefined;
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

/** The least characters per token: English text has four, JSON and code three. */
const CHARS_PER_TOKEN = 3;
/** The overhead of a message and a request in addition to their texts. */
const FRAME_TOKENS = 8;

/** Of the definitions of tools, which every request of a run contains again. */
const tokensKnown = new WeakMap<object, number>();

function tokensOf(part: object): number {
  return FRAME_TOKENS + tokensIn(JSON.stringify(part));
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

/** Whether any part counts the cost of requests. */
function countsCost({ prices, cost, conversation, by = [], children }: Budget): boolean {
  const limits = [cost, conversation?.cost, children?.cost, ...by.map((keyed) => keyed.cost)];
  return prices !== undefined || limits.some((limit) => limit !== undefined);
}

function faultsOfAsking(of: string, limits: AskableLimits = {}): readonly ConfigFault[] {
  const { whenSpent = 'end' } = limits;
  if (whenSpent === 'end') return [];
  const asked = whenSpent === 'ask' ? limits : whenSpent.ask;
  const parts = BUDGET_PARTS.filter((part) => asked[part] !== undefined);
  const unlimited = parts.find((part) => limits[part] === undefined);
  if (parts.length > 0 && unlimited === undefined) return [];
  let option = `${of}.whenSpent`;
  if (BUDGET_PARTS.some((part) => limits[part] !== undefined))
    option += unlimited === undefined ? '.ask' : `.ask.${unlimited}`;
  const problem = `${option} grants more of a part that ${of} does not limit`;
  const fix = "a limit for each part that may be extended: { cost: 0.5, whenSpent: 'ask' }";
  return [{ option, problem, fix }];
}

/**
 * The faults of a budget for any run: models without a price, whose cost is unknown and not zero, a shared budget
 * without a store, and limits that ask for more although nothing can be granted.
 */
export function budgetFaults(
  { budget = {}, store, model, fallback = [] }: BudgetedConfig,
  parent?: RunBudget,
): readonly ConfigFault[] {
  const { conversation, by = [], children, prices = PRICES, ...own } = budget;
  const faults: ConfigFault[] = [];
  if (countsCost(budget) || parent?.isPriced)
    for (const next of [{ model }, ...fallback])
      if ('model' in next && next.model && findPrice(prices, next.model) === undefined)
        faults.push({
          option: 'budget.prices',
          problem: `there is no price for the model '${next.model}'`,
          fix: `budget: { prices: { ...PRICES, '${next.model}': { input: …, output: … } } }, in dollars for a million tokens`,
        });
  const isShared = conversation !== undefined || by.length > 0;
  if (isShared && ledgerOf(budget, store, parent) === undefined)
    faults.push({
      option: 'budget.store',
      problem: 'a budget of a conversation or a key needs a store, and none is set',
      fix: "budget: { conversation: { cost: 5 }, store: new SqliteRunStore({ path: 'runs.sqlite' }) }",
    });
  return [
    ...faults,
    ...faultsOfAsking('budget', own),
    ...faultsOfAsking('budget.conversation', conversation),
    ...by.flatMap((limits, index) => faultsOfAsking(`budget.by[${index}]`, limits)),
    ...faultsOfAsking('budget.children', children),
  ];
}

function ledgerOf(budget: Budget, store: unknown, parent: RunBudget | undefined): BudgetLedger | undefined {
  const storing = budget.store ?? (keepsBudgets(store) ? store : undefined);
  return storing?.budgets ?? parent?.ledger;
}

/** The question of a run that reached a limit; amounts in the units of ledgers. */
interface BudgetQuestion extends Beyond {
  readonly left: number;
  /** A smaller amount would not be enough for the next step. */
  readonly least: number;
  readonly message: string;
}

const WORDS: Readonly<Record<BudgetPart, string>> = {
  tokens: 'tokens',
  cost: 'units of cost',
  calls: 'calls',
  steps: 'requests',
  timeMs: 'milliseconds',
};

function shown(part: BudgetPart, amount: number): number {
  return part === 'cost' ? inUnits(amount) : Math.round(amount);
}

type AccountName = Pick<Account, 'place' | 'whose' | 'option'>;

/** An account from which a run spends, with its grants. */
abstract class Account {
  /** The same in every process that continues the run. */
  readonly place: string;
  readonly whose: string;
  /** The option with its limits: `budget.conversation`. */
  readonly option: string;
  limits: Partial<BudgetAmounts>;
  readonly #grantable: Partial<BudgetAmounts>;
  #granted: BudgetAmounts = NO_AMOUNTS;
  #isRefused = false;

  constructor({ place, whose, option }: AccountName, given: AskableLimits) {
    this.place = place;
    this.whose = whose;
    this.option = option;
    this.limits = amountsIn(given);
    this.#grantable = grantableIn(given);
  }

  /** The amount that can still be granted; 0 if no question is asked. */
  grantable(part: BudgetPart): number {
    if (this.#isRefused) return 0;
    return Math.max(0, (this.#grantable[part] ?? 0) - this.#granted[part]);
  }

  /** Limits a grant to the amount that may be granted. */
  grant(part: BudgetPart, amount: number): void {
    const granted = Math.max(0, Math.min(amount, this.grantable(part)));
    const amounts = { ...NO_AMOUNTS, [part]: granted };
    this.#granted = addAmounts(this.#granted, amounts);
    this.limits = raisedBy(this.limits, amounts);
  }

  /** No further questions are asked about it. */
  refuse(): void {
    this.#isRefused = true;
  }

  get grants(): readonly BudgetGrant[] {
    const parts = Object.entries(this.#granted) as [BudgetPart, number][];
    return parts.flatMap(([part, amount]) => (amount > 0 ? [{ account: this.place, part, amount }] : []));
  }
}

/** The account of one run; parallel calls and nested runs spend from it at the same time. Its sums change in place. */
class RunAccount extends Account {
  readonly spent: Record<BudgetPart, number>;
  /** What is spent or reserved. */
  readonly used: Record<BudgetPart, number>;

  /** `depth`: the number of enclosing runs. */
  constructor(
    given: AskableLimits,
    {
      spent,
      depth,
      option,
    }: Pick<AccountName, 'option'> & { readonly spent: BudgetAmounts; readonly depth: number },
  ) {
    super({ place: `run ${depth}`, whose: 'the run', option }, given);
    this.spent = { ...spent };
    this.used = { ...spent };
  }

  reserve(amounts: BudgetAmounts): void {
    add(this.used, amounts);
  }

  spend(amounts: BudgetAmounts): void {
    add(this.spent, amounts);
    add(this.used, amounts);
  }

  /** Replaces a reservation by what was really spent. */
  settle(reserved: BudgetAmounts, spent: BudgetAmounts): void {
    add(this.used, reserved, -1);
    if (spent !== NO_AMOUNTS) this.spend(spent);
  }

  passTime(ms: number): void {
    this.spent.timeMs += ms;
    this.used.timeMs += ms;
  }
}

function add(sum: Record<BudgetPart, number>, amounts: BudgetAmounts, factor = 1): void {
  // A loop over the parts would make a turn with a budget slower.
  sum.tokens += factor * amounts.tokens;
  sum.cost += factor * amounts.cost;
  sum.calls += factor * amounts.calls;
  sum.steps += factor * amounts.steps;
  sum.timeMs += factor * amounts.timeMs;
}

/** An account that several runs share, stored in a ledger with its grants. */
class SharedAccount extends Account {
  readonly key: string;
  /** Stores the grants for the same window; its limit is the total amount that may be granted. */
  readonly grantedAccount: BudgetAccount;
  readonly #window: Pick<BudgetAccount, 'windowMs'>;

  constructor(
    { key, option }: Pick<AccountName, 'option'> & { readonly key: string },
    { windowMs, ...given }: Omit<KeyedBudget, 'key'>,
  ) {
    super({ place: `${windowMs ?? 0} ${key}`, whose: `'${key}'`, option }, given);
    this.key = key;
    this.#window = windowMs === undefined ? {} : { windowMs };
    this.grantedAccount = { key: grantedKey(key), ...this.#window, limits: grantableIn(given) };
  }

  get account(): BudgetAccount {
    return { key: this.key, ...this.#window, limits: this.limits };
  }
}

function raisedBy(limits: Partial<BudgetAmounts>, more: BudgetAmounts): Partial<BudgetAmounts> {
  const parts = Object.entries(limits) as [BudgetPart, number][];
  return Object.fromEntries(parts.map(([part, limit]) => [part, limit + more[part]]));
}

/**
 * The accounts that several runs share.
 *
 * @throws InvalidOptionsError (521) if a key is missing, or invalid for stores.
 */
function sharedAccounts({ conversation, by = [] }: Budget, scope: CallScope): readonly SharedAccount[] {
  const { conversationId } = scope;
  const accounts: SharedAccount[] = [];
  if (conversation !== undefined) {
    if (conversationId === undefined)
      throw wrongConfig({
        option: 'budget.conversation',
        problem: 'the scope has no conversationId',
        fix: "the scope { conversationId: 'c1' }",
      });
    checkKey('scope.conversationId', conversationId);
    const key = conversationKey(conversationId);
    accounts.push(new SharedAccount({ key, option: 'budget.conversation' }, conversation));
  }
  for (const [index, { key: keyOf, ...limits }] of by.entries()) {
    const option = `budget.by[${index}]`;
    let key: unknown;
    let problem = 'the key is not a non-empty string, so that different users would share one budget';
    try {
      key = keyOf(scope);
    } catch (error) {
      // Also a fault of the author: a turn that is retried would fail each time.
      problem = `the key function failed: ${errorMessage(error)}`;
    }
    if (typeof key !== 'string' || key === '') {
      const fix =
        'a key function that returns the id of the account, and a scope with the data that it reads';
      throw wrongConfig({ option: `${option}.key`, problem, fix });
    }
    checkKey(`${option}.key`, key);
    accounts.push(new SharedAccount({ key, option }, limits));
  }
  return accounts;
}

/** Ledger keys have the same limits as stored ids. */
function checkKey(option: string, key: string): void {
  checkArguments({ of: 'the loop’s config', given: { [option]: key }, rules: { [option]: STORED_ID } });
}

/** Limits in the units of ledgers; without entries for missing and infinite limits. */
function amountsIn({ tokens, cost, calls, steps, timeMs }: BudgetLimits): Partial<BudgetAmounts> {
  const limits = { tokens, cost: cost === undefined ? undefined : inBillionths(cost), calls, steps, timeMs };
  return Object.fromEntries(Object.entries(limits).filter(([, limit]) => Number.isFinite(limit)));
}

function grantableIn({ whenSpent = 'end', ...limits }: AskableLimits): Partial<BudgetAmounts> {
  if (whenSpent === 'end') return {};
  return amountsIn(whenSpent === 'ask' ? limits : whenSpent.ask);
}

type CountedBefore = Pick<RunState, 'spent' | 'granted' | 'usage' | 'iterations'> & {
  /** Set if its process crashed. */
  readonly steps?: unknown;
};

/** The last count may be older than the stored replies of a lost run. */
function spentBefore(before: CountedBefore | undefined): BudgetAmounts {
  if (before === undefined) return NO_AMOUNTS;
  const { spent, usage, iterations } = before;
  const { tokens = 0, cost = 0, calls = 0, steps = 0, timeMs = 0 } = spent ?? {};
  return {
    tokens: Math.max(tokens, usage.totalTokens),
    cost: inBillionths(cost),
    calls,
    steps: Math.max(steps, iterations),
    timeMs,
  };
}

/** @throws RangeError for an invalid cost; the call is then refused. */
function costOfCall(tool: ToolDefinition | undefined, args: JsonObject = {}): number {
  const cost: unknown = typeof tool?.cost === 'function' ? tool.cost(args) : (tool?.cost ?? 0);
  if (typeof cost === 'number' && Number.isFinite(cost) && cost >= 0) return inBillionths(cost);
  throw new RangeError(
    `The cost of a call of '${tool?.name}' is ${String(cost)}; it must be a number, 0 or more`,
  );
}

const HAS_RUN: readonly CallStatus[] = ['success', 'error', 'timed_out', 'aborted', 'started'];

/** Whether the tool of an ended call has run, or may have run: no hook answered the call instead. */
export function mayHaveRun({ status, hooks = [] }: Pick<CallRecord, 'status' | 'hooks'>): boolean {
  return HAS_RUN.includes(status) && !hooks.some(({ did }) => did === 'answered');
}

interface Beyond {
  readonly account: Account;
  readonly part: BudgetPart;
  readonly limit: number;
  readonly used: number;
  /** The amount that can still be granted. */
  readonly grantable: number;
}

const NO_BALANCE = { reserved: NO_AMOUNTS };

/** Reserves in all accounts or in none; grants are looked up only if their own limits are exceeded. */
async function reserveShared(
  ledger: BudgetLedger,
  shared: readonly SharedAccount[],
  reservation: Omit<BudgetReservation, 'accounts'>,
): Promise<Beyond | undefined> {
  const accounts = shared.map(({ account }) => account);
  const outcome = await ledger.reserve({ ...reservation, accounts });
  if (outcome.status === 'reserved') return undefined;
  const raised = await Promise.all(
    shared.map(async (account) => {
      const { limits: mostGranted, ...grants } = account.grantedAccount;
      const { reserved } = Object.keys(mostGranted).length === 0 ? NO_BALANCE : await ledger.balance(grants);
      const isGranted = Object.values(reserved).some((amount) => amount > 0);
      const granted = isGranted ? reserved : NO_AMOUNTS;
      return { account, granted, limits: raisedBy(account.limits, granted) };
    }),
  );
  const again = raised.every(({ granted }) => granted === NO_AMOUNTS)
    ? outcome
    : await ledger.reserve({
        ...reservation,
        accounts: raised.map(({ account, limits }) => ({ ...account.account, limits })),
      });
  if (again.status === 'reserved') return undefined;
  const { key, part, left } = again;
  const known = raised.flatMap(({ account, granted, limits }) => {
    const limit = limits[part];
    if (account.key !== key || limit === undefined) return [];
    const grantable = account.grantable(part) - granted[part];
    return [{ account, part, limit, used: limit - left, grantable }];
  });
  for (const beyond of known) {
    const { limits: _, ...account } = beyond.account.account;
    const { spent, reserved } = await ledger.balance(account);
    const all = addAmounts(spent, reserved);
    // A key may have several windows; and more may be used than the limit.
    if (partBeyond({ [part]: beyond.limit }, all, reservation.amounts)) return { ...beyond, used: all[part] };
  }
  return known[0];
}
