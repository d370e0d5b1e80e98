import type { RunState, StoredCall, StoredWaitingCall } from '../../core/contract/run-state.js';
import { toolResult } from '../../core/contract/tool-result.js';
import { failedResult } from '../call/result-text.js';
import { callRecord } from '../call/run-body.js';
import type { LoopRun } from './loop-run.js';
import { parseCall } from './messages.js';
import { inBillionths } from './prices.js';
import { openWaits } from './suspend.js';

/** Whether an observed call is the question of a budget, and not a call of a model. */
export function isBudgetQuestion(callId: unknown, tool: unknown): boolean {
  return tool === 'budget' && /^budget_\d+_[a-zA-Z]+_/.test(String(callId));
}

/** The step in which a suspended run asks: a question without other calls belongs to the request that was not made. */
export function askingStep({ iterations, open: { calls } }: Pick<RunState, 'iterations' | 'open'>): number {
  return calls.length > 0 && calls.every(isQuestion) ? iterations + 1 : iterations;
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
