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
import { askingFaults, countsCost, MISSING_LEDGER, missingPrice, wrongBudget } from './budget-faults.js';
import { estimateTokens } from './estimate-tokens.js';
import type { ToolLoopConfig } from './options.js';
import { costOf, inBillionths, inUnits, PRICES, priceOf } from './prices.js';

/** The budget of the run whose call runs here: runs that begin in it are its children. */
export const surroundingBudget = new AsyncLocalStorage<RunBudget>();

/** How long what is reserved counts where its process dies, and how often that is put off. */
const LEASE_MS = 60_000;
const RENEW_MS = 20_000;
/** How long the end of a run waits for reservations that an abort has left behind. */
const GIVE_BACK_MS = 5_000;

const MAX_OUTPUT_TOKENS = 8_192;

/** Something that was reserved and is to be settled, once. */
export interface Reserved {
  settle(spent: BudgetAmounts): Promise<void>;
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
    this.#own = new RunAccount(budget, { spent: spentBefore(before), depth: this.#depth });
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

  /** What a request may take at most, or why it may not be made. */
  async reserveRequest(
    request: LLMRequest,
  ): Promise<{ readonly at: BudgetAmounts; readonly reserved?: Reserved }> {
    const { countTokens = estimateTokens } = this.#budget;
    const inputTokens = Math.max(0, Math.ceil(countTokens(request)));
    const outputTokens = this.#largestOutput(request);
    const cost = this.#costOf(request.model, { inputTokens, outputTokens });
    const at = { ...NO_AMOUNTS, tokens: inputTokens + outputTokens, steps: 1, cost };
    const reserved = await this.#reserve(at);
    return reserved === undefined ? { at } : { at, reserved };
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
    const reserved = await this.#reserve({ ...NO_AMOUNTS, calls: 1, cost });
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

  #largestOutput({ model, options }: LLMRequest): number {
    const said = [
      options.max_completion_tokens,
      options.max_output_tokens,
      options.maxOutputTokens,
      options.max_tokens,
    ];
    const limit = said.find((value) => typeof value === 'number');
    if (typeof limit === 'number') return limit;
    const { prices = PRICES, maxOutputTokens } = this.#budget;
    if (maxOutputTokens !== undefined) return maxOutputTokens;
    return (this.#isPriced ? priceOf(prices, model).maxOutputTokens : undefined) ?? MAX_OUTPUT_TOKENS;
  }

  async #reserve(amounts: BudgetAmounts): Promise<Reserved | undefined> {
    this.#lap();
    const accounts = this.#accounts();
    for (const account of accounts) {
      const { limits, used } = account;
      const part = partBeyond(limits, used, amounts)?.part;
      if (part === undefined) continue;
      const grantable = account.grantable(part);
      return this.#spent({ account, part, limit: limits[part] ?? 0, used: used[part], grantable }, amounts);
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
        return this.#spent(beyond, amounts);
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

  #spent({ account, part, limit, used, grantable: most }: Beyond, amounts: BudgetAmounts): undefined {
    const left = Math.max(0, limit - used);
    const { place, whose } = account;
    const message = `The budget of ${whose} is spent: of ${shown(part, limit)} ${WORDS[part]}, ${shown(part, left)} are left, and what comes next may take more.`;
    // Time is not reserved: a little more than was used is enough to go on.
    const least = used - limit + (part === 'timeMs' ? 1 : amounts[part]);
    if (most < least) this.#end ??= new ToolwrightError('BudgetSpent', message);
    else this.#question ??= { account: place, whose, part, limit, left, least, most, message };
    return undefined;
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
): RunBudget {
  const made = new RunBudget(budget, { ...start, store });
  for (const next of [{ model }, ...fallback]) if ('model' in next && next.model) made.checkPrice(next.model);
  return made;
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
