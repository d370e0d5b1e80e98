import { withAnswer } from '../call/answer-wait.js';
import { expiryReason, isExpired } from '../call/approval.js';
import type { Answer, CallJournal, Wait } from '../contract/call.js';
import type { RunState, StoredCall, StoredInnerRun, StoredWaitingCall } from '../contract/run-state.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { waitsOf } from './inner-runs.js';
import { type OpenWait, openWaits, type ValidState, validateState } from './suspend.js';

/** Answers by the ids of what they answer, who gave them, and what is wrong with them. */
interface GivenAnswers {
  readonly answers: ReadonlyMap<string, Answer>;
  readonly answeredBy: unknown;
  readonly faults: string[];
  /** The id that whoever answers knows. */
  readonly label: (id: string) => string;
}

/**
 * Puts answers into the calls that wait for them, in any order, also in runs inside calls; the given state stays as it
 * is.
 *
 * @throws ToolwrightError `InvalidAnswer` (514), which names every answer that fits nothing.
 */
export function applyAnswers(
  valid: ValidState,
  { answers, answeredBy }: { readonly answers: readonly Answer[]; readonly answeredBy?: unknown },
): readonly StoredCall[] {
  if (!Array.isArray(answers)) throw invalidAnswers(['they are no array']);
  const pending = new Set(valid.waits.map((open) => open.pending.id));
  const answered = new Map<string, Answer>();
  const faults: string[] = [];
  for (const answer of answers as readonly unknown[]) {
    const fault = faultOf(answer, pending, answered);
    if (fault === undefined) answered.set((answer as Answer).id, answer as Answer);
    else faults.push(fault);
  }
  const calls = answerOpen(valid, { answers: answered, answeredBy, faults, label: (id) => id });
  if (faults.length > 0) throw invalidAnswers(faults);
  return calls;
}

function answerOpen({ state, waits }: ValidState, given: GivenAnswers): readonly StoredCall[] {
  return state.open.calls.map((call) => {
    if (call.status !== 'waiting') return call;
    const own = waits.filter((open) => open.call === call);
    const answered = answerCall(call, own, given);
    return call.inner === undefined || answered.journal.refused !== undefined
      ? answered
      : answerInner(answered, own, given);
  });
}

function answerCall(
  call: StoredWaitingCall,
  waits: readonly OpenWait[],
  { answers, answeredBy, faults, label }: GivenAnswers,
): StoredWaitingCall {
  let current = call;
  for (const { wait, pending } of waits) {
    if (wait.inner !== undefined) continue;
    const answer = answers.get(pending.id);
    if (answer === undefined) {
      if (isExpired(wait)) current = expired(current, wait);
      continue;
    }
    const outcome = withAnswer({ wait, journal: current.journal }, answer);
    if (!outcome.ok) {
      faults.push(`'${label(pending.id)}' (${pending.tool}): ${outcome.problem}`);
      continue;
    }
    const journal = withGiven(outcome.journal, wait, answeredBy);
    // A refusal answers all of its call.
    const left = journal.refused === undefined ? current.waits.filter((other) => other !== wait) : [];
    current = { ...current, journal, waits: left };
  }
  return current;
}

/** The answers to what runs inside a call wait for; what they wait for then is what the call waits for. */
function answerInner(
  call: StoredWaitingCall,
  waits: readonly OpenWait[],
  given: GivenAnswers,
): StoredWaitingCall {
  const inner = (call.inner ?? []).map(({ run, state, result }): StoredInnerRun => {
    if (state === undefined) return { run, ...(result ? { result } : {}) };
    const own = waits.filter(({ wait }) => wait.inner?.run === run);
    const ids = new Map(own.map(({ wait, pending }) => [wait.inner?.id ?? '', pending.id]));
    const answers = new Map<string, Answer>();
    for (const [id, outer] of ids) {
      const answer = given.answers.get(outer);
      if (answer !== undefined) answers.set(id, { ...answer, id });
    }
    const label = (id: string): string => given.label(ids.get(id) ?? id);
    return { run, state: answeredState(state, { ...given, answers, label }) };
  });
  return {
    ...call,
    inner,
    waits: [...call.waits.filter((wait) => wait.inner === undefined), ...waitsOf(inner)],
  };
}

function answeredState(given: RunState, answers: GivenAnswers): RunState {
  // It comes from outside, as the state around it does.
  const valid = validateState(given, undefined);
  return withCalls(valid.state, answerOpen(valid, answers));
}

/** A state with these calls, and what they wait for. */
export function withCalls(state: RunState, calls: readonly StoredCall[]): RunState {
  const open = { ...state.open, calls };
  return { ...state, open, pending: openWaits({ ...state, open }).map(({ pending }) => pending) };
}

/** A call that nobody answered in time: nothing else of it is waited for. */
function expired(call: StoredWaitingCall, wait: Wait): StoredWaitingCall {
  const refused = { reason: expiryReason(wait), expired: true } as const;
  return { ...call, journal: { ...call.journal, refused }, waits: [] };
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

export function invalidAnswers(faults: readonly string[]): ToolwrightError {
  const lines = faults.map((fault) => `\n  - ${fault}`);
  return new ToolwrightError(
    'InvalidAnswer',
    `The run was not resumed; its answers are wrong:${lines.join('')}`,
  );
}
