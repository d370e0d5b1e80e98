import { AsyncLocalStorage } from 'node:async_hooks';
import { HeldCall } from '../call/hooked-call.js';
import { type Budget, keepsBudgets, type Spending } from '../contract/budget.js';
import {
  addAmounts,
  type BudgetAmounts,
  type BudgetLedger,
  NO_AMOUNTS,
  partBeyond,
} from '../contract/budget-ledger.js';
import type { CallScope } from '../contract/call.js';
import type { HookedCall, Hooks } from '../contract/hooks.js';
import type { LLMRequest, Usage } from '../contract/llm-provider.js';
import type { RunState, StoredCallRecord } from '../contract/run-state.js';
import type { ToolDefinition } from '../contract/tool.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { withinLimits } from '../kernel/async.js';
import {
  type Account,
  type Beyond,
  type BudgetQuestion,
  type CountedBefore,
  costOfCall,
  grantShared,
  mayHaveRun,
  RunAccount,
  reserveShared,
  type SharedAccount,
  sharedAccounts,
  shown,
  spentBefore,
  WORDS,
} from './budget-accounts.js';
import {
  askingFaults,
  countsCost,
  MISSING_LEDGER,
  missingPrice,
  nextRequest,
  type RequestNeed,
  tooSmall,
  wrongBudget,
} from './budget-faults.js';
import { estimateTokens } from './estimate-tokens.js';
import type { ToolLoopConfig } from './options.js';
import { costOf, inBillionths, inUnits, PRICES, priceOf } from './prices.js';

/** The budget of the run whose call runs here: runs that begin in it are its children. */
const surroundingBudget = new AsyncLocalStorage<RunBudget>();

/** How long what is reserved counts where its process dies, and how often that is put off. */
const LEASE_MS = 60_000;
const RENEW_MS = 20_000;
/** How long the end of a run waits for reservations that an abort has left behind. */
const GIVE_BACK_MS = 5_000;

const MAX_OUTPUT_TOKENS = 8_192;
/** A reply that may have fewer tokens is mostly cut off, and paid for: it is not asked for. */
const USEFUL_OUTPUT_TOKENS = 1_024;

/** Something that was reserved and is to be settled, once. */
export interface Reserved {
  settle(spent: BudgetAmounts): Promise<void>;
}

/** A request that may be made, as it is to be sent, and what it takes at most. */
export interface ReservedRequest {
  readonly request: LLMRequest;
  readonly at: BudgetAmounts;
  readonly reserved: Reserved;
}

/** What of a config a budget has to do with. */
type BudgetedConfig = Pick<ToolLoopConfig, 'budget' | 'store' | 'model' | 'fallback'>;

/** What a run with a budget begins with. */
interface BudgetStart {
  readonly scope: CallScope;
  readonly before: CountedBefore | undefined;
}

/** What a run may spend, and has spent. */
export class RunBudget {
  readonly #budget: Budget;
  readonly #parent: RunBudget | undefined;
  readonly #own: RunAccount;
  readonly #depth: number;
  readonly #shared: readonly SharedAccount[];
  /** Those whose grants the state of this run keeps. */
  readonly #kept: readonly Account[];
  readonly #ledger: BudgetLedger | undefined;
  readonly #tools = new Map<string, { readonly calls: number; readonly cost: number }>();
  readonly #open = new Map<string, { readonly cost: number; readonly reserved: Reserved }>();
  readonly #beginning = new Set<Promise<unknown>>();
  #isClosed = false;
  #since = performance.now();
  /** Time that no shared account was told of yet. */
  #untold = 0;
  /** A run that begins, and has asked for nothing yet. */
  #isFresh: boolean;
  #end: ToolwrightError | undefined;
  #question: BudgetQuestion | undefined;

  /** @throws InvalidOptionsError (521) for a budget whose key or store is missing, or that asks for nothing. */
  constructor(
    given: Budget | undefined,
    { scope, store, before }: BudgetStart & Pick<BudgetedConfig, 'store'>,
  ) {
    const parent = surroundingBudget.getStore();
    const budget = given ?? parent?.forChildren ?? {};
    const [fault] = askingFaults(budget);
    if (fault !== undefined) throw wrongBudget(fault);
    this.#budget = budget;
    this.#parent = parent;
    this.#depth = parent === undefined ? 0 : parent.#depth + 1;
    this.#isFresh = before === undefined;
    const option = given === undefined ? 'budget.children' : 'budget';
    this.#own = new RunAccount(budget, { spent: spentBefore(before), depth: this.#depth, option });
    for (const [name, tool] of Object.entries(before?.spent?.tools ?? {})) this.#tools.set(name, tool);
    const own = sharedAccounts(budget, scope);
    const keys = new Set(own.map(({ place }) => place));
    this.#shared = [
      ...own,
      ...(parent === undefined ? [] : parent.#shared).filter(({ place }) => !keys.has(place)),
    ];
    this.#kept = [this.#own, ...own];
    for (const { account, part, amount } of before?.granted ?? [])
      this.#kept.find(({ place }) => place === account)?.grant(part, amount);
    const kept = budget.store ?? (keepsBudgets(store) ? store : undefined);
    this.#ledger = kept?.budgets ?? (parent === undefined ? undefined : parent.#ledger);
    if (own.length > 0 && this.#ledger === undefined) throw wrongBudget(MISSING_LEDGER);
  }

  /** What a run within one of its calls may spend. */
  get forChildren(): Budget {
    const { children = {}, prices, countTokens, maxOutputTokens } = this.#budget;
    return {
      ...children,
      ...(prices ? { prices } : {}),
      ...(countTokens ? { countTokens } : {}),
      ...(maxOutputTokens ? { maxOutputTokens } : {}),
    };
  }

  /** Why the run ends, where something was too much. */
  get end(): ToolwrightError | undefined {
    return this.#end;
  }

  /** How the run ends then. */
  get ended(): { readonly status: 'budget'; readonly error: ToolwrightError } | undefined {
    return this.#end && { status: 'budget', error: this.#end };
  }

  /** What is to be asked before the run goes on: something was too much, of which somebody may grant more. */
  get question(): BudgetQuestion | undefined {
    return this.#end === undefined ? this.#question : undefined;
  }

  /** Why the run ends although calls are held until somebody says how much more it may take: something else is spent. */
  get endInsteadOfAsking(): ToolwrightError | undefined {
    return this.#question && this.#end;
  }

  /** What somebody said to its question: so much more, or nothing, and then it ends. */
  async answer(
    asked: Pick<BudgetQuestion, 'account' | 'part'> & { readonly id: string },
    given: number | string,
  ): Promise<void> {
    const shared = this.#shared.find(({ place }) => place === asked.account);
    const account = shared ?? this.#accounts().find(({ place }) => place === asked.account);
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

  /** What the state of the run keeps of it. */
  get progress(): Pick<RunState, 'spent' | 'granted'> {
    const granted = this.#kept.flatMap(({ grants }) => grants);
    return { spent: this.spending, ...(granted.length === 0 ? {} : { granted }) };
  }

  /** What has been spent so far, runs within it included. */
  get spending(): Spending {
    this.#lap();
    const { tokens, cost, calls, steps, timeMs } = this.#own.spent;
    const priced = this.#isPriced || cost > 0 ? { cost: inUnits(cost) } : {};
    return {
      tokens,
      calls,
      steps,
      timeMs: Math.round(timeMs),
      ...priced,
      tools: Object.fromEntries(this.#tools),
    };
  }

  /**
   * Reserves what a request may take at most; its reply may have fewer tokens where the budget affords no more. Nothing
   * where it may not be made.
   *
   * @throws InvalidOptionsError (521) for the first request of a run, where the budget has never had enough for it.
   */
  async reserveRequest(request: LLMRequest): Promise<ReservedRequest | undefined> {
    const { countTokens = estimateTokens } = this.#budget;
    const { model } = request;
    const inputTokens = Math.max(0, Math.ceil(countTokens(request)));
    const { unasked, most } = this.#outputOf(request);
    const least = Math.min(USEFUL_OUTPUT_TOKENS, most);
    const isFirst = this.#isFresh;
    this.#isFresh = false;
    const amountsOf = (outputTokens: number): BudgetAmounts => ({
      ...NO_AMOUNTS,
      tokens: inputTokens + outputTokens,
      steps: 1,
      cost: this.#costOf(model, { inputTokens, outputTokens }),
    });
    let outputTokens = most;
    const lower = (beyond: Beyond): void => {
      // Less each time: others may spend from the same budget meanwhile.
      outputTokens = Math.min(this.#outputWithin(beyond, { model, inputTokens }), outputTokens - 1);
      if (outputTokens < least)
        this.#spentByRequest({ inputTokens, outputTokens: least, isFirst }, beyond, amountsOf(least));
    };
    while (outputTokens >= least) {
      const at = amountsOf(outputTokens);
      const reserved = await this.#reserve(at, lower);
      if (reserved === undefined) continue;
      const isLowered = outputTokens < unasked;
      return { request: isLowered ? { ...request, maxOutputTokens: outputTokens } : request, at, reserved };
    }
    return undefined;
  }

  /** The most tokens that a reply could have for what is left of a part. */
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

  /** What a reply took; where the provider does not tell, what was reserved. */
  amountsOf(model: string, usage: Usage | undefined, at: BudgetAmounts): BudgetAmounts {
    if (usage === undefined || usage.totalTokens + usage.inputTokens + usage.outputTokens === 0) return at;
    const { inputTokens, outputTokens, totalTokens } = usage;
    const tokens = Math.max(totalTokens, inputTokens + outputTokens);
    return { ...NO_AMOUNTS, tokens, steps: 1, cost: this.#costOf(model, usage) };
  }

  /** What surrounds the calls of the run: the last of its hooks, asked when nothing else is in the way. */
  readonly hook: Hooks = {
    name: 'budget',
    beforeRun: (call) => {
      const beginning = this.#begin(call).finally(() => this.#beginning.delete(beginning));
      this.#beginning.add(beginning);
      return beginning;
    },
    afterCall: async ({ callId, name, status, isCompletion, isAnswered }) => {
      const open = this.#open.get(callId);
      if (open === undefined || isCompletion) return undefined;
      this.#open.delete(callId);
      const hasRun = mayHaveRun(status) && !isAnswered;
      if (hasRun) this.#countCall(name, open.cost);
      await open.reserved.settle(hasRun ? { ...NO_AMOUNTS, calls: 1, cost: open.cost } : NO_AMOUNTS);
      return undefined;
    },
  };

  async #begin({ callId, tool, arguments: args }: HookedCall) {
    const cost = costOfCall(tool, args);
    const amounts = { ...NO_AMOUNTS, calls: 1, cost };
    const reserved = await this.#reserve(amounts, (beyond) => this.#spent(beyond, amounts));
    if (reserved === undefined && this.question !== undefined) return HeldCall.word;
    if (reserved === undefined) return { refuse: this.end?.message ?? 'the budget is spent' };
    if (this.#isClosed) await reserved.settle(NO_AMOUNTS);
    else this.#open.set(callId, { cost, reserved });
    return undefined;
  }

  /**
   * Gives back what was reserved for calls that wait for an answer: they are made again, and counted then. And for those
   * that an abort ended while the ledger was being asked.
   */
  async close(): Promise<void> {
    const beginning = Promise.allSettled(this.#beginning);
    if (this.#beginning.size > 0)
      await withinLimits(beginning, { signal: undefined, timeoutMs: GIVE_BACK_MS }).catch(() => {});
    this.#isClosed = true;
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { reserved } of open) await reserved.settle(NO_AMOUNTS).catch(() => {});
  }

  /** Runs a call of the run, in which other runs may begin. */
  within<Value>(work: () => Value): Value {
    return surroundingBudget.run(this, work);
  }

  /** Counts calls of a run that was lost, of which its last count knew nothing. Who shares a budget has counted them. */
  countSettled(
    records: readonly StoredCallRecord[],
    find: (name: string) => ToolDefinition | undefined,
  ): void {
    for (const { name, status, hooks = [], arguments: args } of records) {
      if (!mayHaveRun(status) || hooks.some(({ did }) => did === 'answered')) continue;
      const cost = costOfCall(find(name), args);
      this.#countCall(name, cost);
      for (const account of this.#accounts())
        account.spent = addAmounts(account.spent, { ...NO_AMOUNTS, calls: 1, cost });
    }
  }

  #countCall(name: string, cost: number): void {
    const { calls, cost: before } = this.#tools.get(name) ?? { calls: 0, cost: 0 };
    this.#tools.set(name, { calls: calls + 1, cost: inUnits(inBillionths(before) + cost) });
    if (this.#parent !== undefined) this.#parent.#countCall(name, cost);
  }

  /** @throws InvalidOptionsError (521) for a model without a price, where there has to be one. */
  checkPrice(model: string): void {
    if (!this.#isPriced) return;
    const missing = missingPrice(this.#budget.prices, model);
    if (missing !== undefined) throw wrongBudget(missing);
  }

  get #isPriced(): boolean {
    return countsCost(this.#budget) || this.#isPricedAround;
  }

  get #isPricedAround(): boolean {
    return this.#parent === undefined ? false : this.#parent.#isPriced;
  }

  #costOf(model: string, usage: Partial<Usage>): number {
    if (!this.#isPriced) return 0;
    return costOf(priceOf(this.#budget.prices ?? PRICES, model), usage);
  }

  /** The tokens that a reply may have at most: where nobody limits it, and as the budget says. */
  #outputOf({ model, options }: LLMRequest): { readonly unasked: number; readonly most: number } {
    const said = [
      options.max_completion_tokens,
      options.max_output_tokens,
      options.maxOutputTokens,
      options.max_tokens,
    ].find((value) => Number.isFinite(value)) as number | undefined;
    const { prices = PRICES, maxOutputTokens } = this.#budget;
    const known = this.#isPriced ? priceOf(prices, model).maxOutputTokens : undefined;
    const limits = [said, known].filter((limit) => limit !== undefined);
    // What a model of which nothing is known may say is assumed, and not asked for: it may know no such limit.
    if (limits.length === 0 && maxOutputTokens === undefined)
      return { unasked: MAX_OUTPUT_TOKENS, most: MAX_OUTPUT_TOKENS };
    const unasked = Math.min(...limits);
    return { unasked, most: Math.min(unasked, maxOutputTokens ?? unasked) };
  }

  async #reserve(amounts: BudgetAmounts, onBeyond: (beyond: Beyond) => void): Promise<Reserved | undefined> {
    this.#lap();
    const accounts = this.#accounts();
    for (const account of accounts) {
      const { limits, used } = account;
      const part = partBeyond(limits, used, amounts)?.part;
      if (part === undefined) continue;
      const grantable = account.grantable(part);
      onBeyond({ account, part, limit: limits[part] ?? 0, used: used[part], grantable });
      return undefined;
    }
    for (const account of accounts) account.reserved = addAmounts(account.reserved, amounts);
    const release = (): void => {
      for (const account of accounts) account.reserved = addAmounts(account.reserved, negative(amounts));
    };
    const ledger = this.#ledger;
    const isShared = ledger !== undefined && this.#shared.length > 0;
    const id = crypto.randomUUID();
    try {
      const beyond = isShared
        ? await reserveShared(ledger, this.#shared, { id, amounts, leaseMs: LEASE_MS })
        : undefined;
      if (beyond !== undefined) {
        release();
        onBeyond(beyond);
        return undefined;
      }
    } catch (error) {
      release();
      throw error;
    }
    const timer = isShared ? setInterval(() => renew(ledger, id), RENEW_MS) : undefined;
    timer?.unref();
    return {
      settle: async (spent) => {
        clearInterval(timer);
        release();
        for (const account of accounts) account.spent = addAmounts(account.spent, spent);
        this.#lap();
        const timeMs = Math.round(this.#untold);
        this.#untold = 0;
        if (isShared) await ledger.settle(id, { ...spent, timeMs });
      },
    };
  }

  /** Its own, and those of the runs around it. */
  #accounts(): readonly RunAccount[] {
    return [this.#own, ...(this.#parent === undefined ? [] : this.#parent.#accounts())];
  }

  /** Even the least useful request was too much. */
  #spentByRequest(
    { isFirst, ...tokens }: Pick<RequestNeed, 'inputTokens' | 'outputTokens'> & { readonly isFirst: boolean },
    beyond: Beyond,
    amounts: BudgetAmounts,
  ): void {
    const { account, part, limit, used } = beyond;
    const need = { ...tokens, option: `${account.option}.${part}`, reserved: shown(part, amounts[part]) };
    const isReserved = part === 'tokens' || part === 'cost';
    const mayAsk = beyond.grantable >= leastGrant(beyond, amounts);
    if (isFirst && isReserved && used === 0 && !mayAsk) throw wrongBudget(tooSmall(need, shown(part, limit)));
    this.#spent(beyond, amounts, isReserved ? nextRequest(need) : undefined);
  }

  /** Something was too much: the run ends, or asks for more. */
  #spent(beyond: Beyond, amounts: BudgetAmounts, next?: string): void {
    const { account, part, limit, used, grantable: most } = beyond;
    const left = Math.max(0, limit - used);
    const { place, whose } = account;
    const spent = `The budget of ${whose} is spent: of ${shown(part, limit)} ${WORDS[part]}, ${shown(part, left)} are left, and`;
    const message = `${spent} what comes next may take more.`;
    const least = leastGrant(beyond, amounts);
    // Who is asked for more need not know how to ask for less.
    if (most < least) this.#end ??= new ToolwrightError('BudgetSpent', next ? `${spent} ${next}` : message);
    else this.#question ??= { account: place, whose, part, limit, left, least, most, message };
  }

  /** Time goes by for the run itself once, however many calls it makes at once; the run around it has its own clock. */
  #lap(): void {
    const now = performance.now();
    const lap = now - this.#since;
    this.#since = now;
    this.#own.spent = addAmounts(this.#own.spent, { ...NO_AMOUNTS, timeMs: lap });
    if (this.#parent === undefined) this.#untold += lap;
  }
}

/**
 * What a run may spend: by its config, or within the call of another run that has a budget.
 *
 * @throws InvalidOptionsError (521) for one that cannot be kept, and for a model without a price.
 */
export function budgetOf(
  { budget, store, model, fallback = [] }: BudgetedConfig,
  start: BudgetStart,
): RunBudget | undefined {
  if (budget === undefined && surroundingBudget.getStore() === undefined) return undefined;
  const made = new RunBudget(budget, { ...start, store });
  for (const next of [{ model }, ...fallback]) if ('model' in next && next.model) made.checkPrice(next.model);
  return made;
}

/** How much more would be enough to go on. Time is not reserved: a little more than was used is. */
function leastGrant({ part, limit, used }: Beyond, amounts: BudgetAmounts): number {
  return used - limit + (part === 'timeMs' ? 1 : amounts[part]);
}

/** Nobody hears of a renewal that fails: at worst others may spend what is under way here. */
function renew(ledger: BudgetLedger, id: string): void {
  try {
    Promise.resolve(ledger.renewReservation(id, LEASE_MS)).catch(() => {});
  } catch {}
}

function negative({ tokens, cost, calls, steps, timeMs }: BudgetAmounts): BudgetAmounts {
  return { tokens: -tokens, cost: -cost, calls: -calls, steps: -steps, timeMs: -timeMs };
}
