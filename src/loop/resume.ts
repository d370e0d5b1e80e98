import { answerWait } from '../call/answer-wait.js';
import type { Answer, CallJournal, Wait } from '../contract/call.js';
import type { StoredCall } from '../contract/run-state.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import type { RunStart } from './loop-run.js';
import { checkOwner, type ResumeConfig, type ResumeOptions } from './options.js';
import { isSignedWith, type OpenWait, validateState } from './suspend.js';

/** With what a run goes on. */
export interface Resumption extends ResumeOptions {
  readonly answers: readonly Answer[];
  /** The state is this process's own or out of a store: nobody else could change it. */
  readonly isCertain?: boolean;
}

/**
 * A run that goes on from its state, with the answers in its calls.
 *
 * @throws ToolwrightError `InvalidState` (515), `RunNotAllowed` (523) and `InvalidAnswer` (514), which names every
 *   answer that fits nothing.
 */
export function resumeWith(config: ResumeConfig, given: unknown, resumption: Resumption): RunStart {
  const { answers, answeredBy, scope = {}, model, isCertain = false } = resumption;
  const secret = config?.stateSecret;
  const { state, waits } = validateState(given, secret);
  const isKnown = isCertain || isSignedWith(state, secret);
  const isForged = !isKnown && state.signature !== undefined;
  checkOwner({ owner: state.owner, isCertain: isKnown, isForged }, scope);
  const calls = applyAnswers(state.open.calls, waits, { answers, answeredBy });
  const unanswered = new Set(calls.flatMap((call) => (call.status === 'waiting' ? call.waits : [])));
  return {
    suspended: {
      ...state,
      ...(model === undefined ? {} : { model }),
      open: { ...state.open, calls },
      pending: waits.filter(({ wait }) => unanswered.has(wait)).map(({ pending }) => pending),
    },
  };
}

/** Puts answers into the calls that wait for them, in any order; the given calls stay as they are. */
function applyAnswers(
  calls: readonly StoredCall[],
  waits: readonly OpenWait[],
  { answers, answeredBy }: Pick<Resumption, 'answers' | 'answeredBy'>,
): readonly StoredCall[] {
  if (!Array.isArray(answers)) throw invalid(['they are no array']);
  const pending = new Set(waits.map((open) => open.pending.id));
  const answered = new Map<string, Answer>();
  const faults: string[] = [];
  for (const answer of answers as readonly unknown[]) {
    const fault = faultOf(answer, pending, answered);
    if (fault === undefined) answered.set((answer as Answer).id, answer as Answer);
    else faults.push(fault);
  }
  const applied = calls.map((call) => {
    let current = call;
    for (const open of waits) {
      const { wait } = open;
      const { id, tool } = open.pending;
      const answer = open.call === call ? answered.get(id) : undefined;
      if (answer === undefined || current.status !== 'waiting') continue;
      const outcome = answerWait({ wait, journal: current.journal }, answer);
      if (!outcome.ok) {
        faults.push(`'${id}' (${tool}): ${outcome.problem}`);
        continue;
      }
      const journal = withGiven(outcome.journal, wait, answeredBy);
      // A refusal answers all of its call.
      const left = journal.refused === undefined ? current.waits.filter((other) => other !== wait) : [];
      current = { ...current, journal, waits: left };
    }
    return current;
  });
  if (faults.length > 0) throw invalid(faults);
  return applied;
}

function faultOf(
  answer: unknown,
  pending: ReadonlySet<string>,
  answered: ReadonlyMap<string, Answer>,
): string | undefined {
  if (typeof answer !== 'object' || answer === null || !('id' in answer) || typeof answer.id !== 'string')
    return 'an answer without an id';
  if (answered.has(answer.id)) return `'${answer.id}' is answered twice`;
  if (pending.has(answer.id)) return undefined;
  return `'${answer.id}' is not pending: it was answered before, or belongs to another run or call`;
}

function withGiven(journal: CallJournal, { kind, index }: Wait, answeredBy: unknown): CallJournal {
  if (answeredBy === undefined) return journal;
  return { ...journal, given: [...(journal.given ?? []), { kind, index, answeredBy }] };
}

function invalid(faults: readonly string[]): ToolwrightError {
  const lines = faults.map((fault) => `\n  - ${fault}`);
  return new ToolwrightError(
    'InvalidAnswer',
    `The run was not resumed; its answers are wrong:${lines.join('')}`,
  );
}
