import type { RunState, StoredCall } from '../contract/run-state.js';
import type { Answer, CallJournal, Wait } from '../contract/suspension.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { answerWait } from '../invocation/answer-wait.js';
import { type OpenWait, openWaits } from './open-waits.js';

/**
 * Puts answers into the calls that wait for them, in any order; the given state stays as it is.
 *
 * @throws ToolwrightError `InvalidAnswer` (514) naming every answer that fits nothing.
 */
export function applyAnswers(
  state: RunState,
  answers: readonly Answer[],
  answeredBy?: unknown,
): readonly StoredCall[] {
  if (!Array.isArray(answers)) throw invalid(['they are no array']);
  const waits = new Map(openWaits(state).map((open) => [open.pending.id, open]));
  const faults: string[] = [];
  const answered = new Map<string, Answer>();
  for (const answer of answers as readonly unknown[]) {
    const fault = faultOf(answer, { waits, answered });
    if (fault === undefined) answered.set((answer as Answer).id, answer as Answer);
    else faults.push(fault);
  }
  const byCall = Map.groupBy(waits.values(), ({ call }): StoredCall => call);
  const calls = state.open.calls.map((call) => {
    const own = byCall.get(call) ?? [];
    return own.reduce((current, open) => answerOne(current, open, { answered, faults, answeredBy }), call);
  });
  if (faults.length > 0) throw invalid(faults);
  return calls;
}

interface Known {
  readonly waits: ReadonlyMap<string, OpenWait>;
  readonly answered: ReadonlyMap<string, Answer>;
}

function faultOf(answer: unknown, { waits, answered }: Known): string | undefined {
  if (typeof answer !== 'object' || answer === null || !('id' in answer) || typeof answer.id !== 'string')
    return 'an answer without an id';
  if (answered.has(answer.id)) return `'${answer.id}' is answered twice`;
  if (waits.has(answer.id)) return undefined;
  return `'${answer.id}' is not pending: it was answered before, or belongs to another run or call`;
}

interface Answering {
  readonly answered: ReadonlyMap<string, Answer>;
  readonly faults: string[];
  readonly answeredBy: unknown;
}

/** A refusal answers all of its call. */
function answerOne(
  call: StoredCall,
  { wait, pending }: OpenWait,
  { answered, faults, answeredBy }: Answering,
): StoredCall {
  const answer = answered.get(pending.id);
  if (answer === undefined || call.status !== 'waiting') return call;
  const outcome = answerWait({ wait, journal: call.journal }, answer);
  if (!outcome.ok) {
    faults.push(`'${pending.id}' (${pending.tool}): ${outcome.problem}`);
    return call;
  }
  const journal = withGiven(outcome.journal, wait, answeredBy);
  return { ...call, journal, waits: remaining(call.waits, wait, journal) };
}

function withGiven(journal: CallJournal, { kind, index }: Wait, answeredBy: unknown): CallJournal {
  if (answeredBy === undefined) return journal;
  return { ...journal, given: [...(journal.given ?? []), { kind, index, answeredBy }] };
}

function remaining(waits: readonly Wait[], done: Wait, journal: CallJournal): readonly Wait[] {
  return journal.refused === undefined ? waits.filter((wait) => wait !== done) : [];
}

function invalid(faults: readonly string[]): ToolwrightError {
  const lines = faults.map((fault) => `\n  - ${fault}`);
  return new ToolwrightError(
    'InvalidAnswer',
    `The run was not resumed; its answers are wrong:${lines.join('')}`,
  );
}
