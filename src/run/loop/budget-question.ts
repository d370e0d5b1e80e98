import type { RunState, StoredCall, StoredWaitingCall } from '../../core/contract/run-state.js';
import { toolResult } from '../../core/contract/tool-result.js';
import { failedResult } from '../call/result-text.js';
import { callRecord } from '../call/run-body.js';
import { type BudgetQuestion, shown } from './budget-accounts.js';
import type { LoopEnd, LoopRun } from './loop-run.js';
import { parseCall } from './messages.js';
import { inBillionths } from './prices.js';
import { openWaits, suspendRun } from './suspend.js';

/**
 * The question in the form of a waiting call, so that stores, conversations and pages handle it like others. It is
 * not a call of a model, and never part of the history.
 */
function questionCall({ part, ...asked }: BudgetQuestion, iteration: number): StoredWaitingCall {
  const [limit, left, least, most] = [asked.limit, asked.left, asked.least, asked.most].map((amount) =>
    shown(part, Math.ceil(amount)),
  ) as [number, number, number, number];
  const args = { of: asked.whose, part, limit, left, least, most };
  const message = `${asked.message} How many more may it take, from ${least} to ${most}?`;
  const schema = { type: part === 'cost' ? 'number' : 'integer', minimum: least, maximum: most } as const;
  return {
    status: 'waiting',
    // Pages identify calls by id, and a run may ask before several of its steps.
    id: `budget_${iteration}_${part}_${limit}`,
    name: 'budget',
    arguments: args,
    waits: [{ kind: 'question', index: 0, message, schema }],
    journal: { arguments: args, answers: [], once: [] },
    asks: { account: asked.account, part },
  };
}

/** Whether an observed call is the question of a budget, and not a call of a model. */
export function isBudgetQuestion(callId: unknown, tool: unknown): boolean {
  return tool === 'budget' && /^budget_\d+_[a-zA-Z]+_/.test(String(callId));
}

/** Appends the question to the calls of a message, if the run asks one. */
export function withQuestion(run: LoopRun, open: RunState['open']): RunState['open'] {
  const question = run.budget?.question;
  return question === undefined
    ? open
    : { ...open, calls: [...open.calls, questionCall(question, run.iterations)] };
}

/** The step in which a suspended run asks: a question without other calls belongs to the request that was not made. */
export function askingStep({ iterations, open: { calls } }: Pick<RunState, 'iterations' | 'open'>): number {
  return calls.length > 0 && calls.every(isQuestion) ? iterations + 1 : iterations;
}

/** Suspends the run before a request, until an answer grants a further amount. */
export async function suspendedForBudget(run: LoopRun): Promise<LoopEnd | undefined> {
  if (run.budget?.question === undefined) return undefined;
  const state = suspendRun(run, withQuestion(run, { content: '', calls: [] }));
  if (state === undefined) return undefined;
  await emitQuestion(run, state);
  return { status: 'suspended', state };
}

/** Reports the question to observers as a call that begins, and waits. */
export async function emitQuestion({ sink }: LoopRun, state: RunState): Promise<void> {
  const asked = state.open.calls.find(isQuestion);
  if (sink === undefined || asked === undefined) return;
  const { id: callId, name: tool, arguments: args } = asked;
  const pending = openWaits(state).flatMap((open) => (open.call.id === callId ? [open.pending] : []));
  await sink({ type: 'call-start', callId, tool, arguments: args });
  await sink({ type: 'call-suspended', callId, tool, pending });
}

type Question = StoredWaitingCall & Required<Pick<StoredWaitingCall, 'asks'>>;

function isQuestion(call: StoredCall): call is Question {
  return call.status === 'waiting' && call.asks !== undefined;
}

/**
 * Applies the answer to the question of a continued run, if it asked one; the sink receives it as the end of that
 * call. Returns the calls of the model.
 */
export async function takeGrant(
  { budget, sink, runId, iterations: step }: LoopRun,
  calls: readonly StoredCall[],
): Promise<readonly StoredCall[]> {
  const asked = calls.find(isQuestion);
  if (asked === undefined) return calls;
  const { asks, journal, id: callId, name: tool } = asked;
  const value = journal.answers[0]?.value;
  const granted = typeof value === 'number' && journal.refused === undefined ? value : undefined;
  const amount = granted !== undefined && asks.part === 'cost' ? inBillionths(granted) : granted;
  const reason = journal.refused?.reason;
  const id = `grant ${runId} ${callId}`;
  await budget?.answer({ ...asks, id }, amount ?? (reason === undefined ? '' : `: ${reason}`));
  const isRefused = granted === undefined;
  const result = isRefused
    ? failedResult('BudgetSpent', 'Nobody grants more.')
    : toolResult(`${granted} more are granted.`);
  const request = parseCall(asked, { runId, step, index: calls.indexOf(asked) });
  const status = isRefused ? 'refused' : 'success';
  const record = callRecord({ request, attempt: 0, since: 0 }, { status, result });
  await sink?.({ type: 'call-end', callId, tool, result, record });
  return calls.filter((call) => call !== asked);
}
