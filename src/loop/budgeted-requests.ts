import type { BudgetAmounts } from '../contract/budget-ledger.js';
import { NO_AMOUNTS } from '../contract/budget-ledger.js';
import type { HookNote } from '../contract/call.js';
import type { Usage } from '../contract/llm-provider.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from '../kernel/error-message.js';
import { askModel, type Reply } from './ask-model.js';
import { tokensIn } from './estimate-tokens.js';
import type { LoopRun, Question, RunHooks } from './loop-run.js';
import { inUnits } from './prices.js';
import type { Reserved, RunBudget } from './run-budget.js';

/** Makes the requests of a run as far as its budget reaches, with whatever else surrounds them within. */
export class BudgetedRequests implements RunHooks {
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
    const { provider, request, onPart, onFailure, trace } = question;
    const before = await this.#reserve(question);
    if ('reply' in before) {
      // It was counted before anybody knew that it cannot be made.
      if (onFailure !== undefined) run.iterations -= 1;
      return before.reply;
    }
    const { at, reserved } = before;
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

  async #reserve({
    request,
  }: Question): Promise<
    { readonly reply: Reply } | { readonly at: BudgetAmounts; readonly reserved: Reserved }
  > {
    try {
      const { at, reserved } = await this.#budget.reserveRequest(request);
      if (reserved !== undefined) return { at, reserved };
      const error = this.#budget.end ?? new ToolwrightError('BudgetSpent', 'The budget is spent.');
      return { reply: { ok: false, reason: 'failed', error, isFinal: true } };
    } catch (cause) {
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
