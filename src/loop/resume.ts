import { answerWait } from '../call/answer-wait.js';
import { expiryReason, isExpired } from '../call/approval.js';
import type { CheckedArguments } from '../call/edited-call.js';
import { ToolRegistry } from '../call/tool-registry.js';
import type { Answer, CallJournal, Wait } from '../contract/call.js';
import type { RunState, StoredCall, StoredWaitingCall } from '../contract/run-state.js';
import type { ToolDefinition } from '../contract/tool.js';
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

/** What of a config a resume needs before anything runs. */
type ResumedConfig = { readonly [Part in 'stateSecret' | 'tools']?: ResumeConfig[Part] | undefined };

/**
 * A run that goes on from its state, with the answers in its calls; a promise where arguments were edited, because
 * they are checked first.
 *
 * @throws ToolwrightError `InvalidState` (515), `RunNotAllowed` (523) and `InvalidAnswer` (514), which names every
 *   answer that fits nothing.
 */
export function resumeWith(
  config: ResumedConfig,
  given: unknown,
  resumption: Resumption,
): RunStart | Promise<RunStart> {
  const { answeredBy, scope = {}, model, isCertain = false } = resumption;
  const secret = config?.stateSecret;
  const { state, waits } = validateState(given, secret);
  const isKnown = isCertain || isSignedWith(state, secret);
  const isForged = !isKnown && state.signature !== undefined;
  checkOwner({ owner: state.owner, isCertain: isKnown, isForged }, scope);
  const answered = applyAnswers(state.open.calls, waits, { answers: resumption.answers, answeredBy });
  const startWith = (calls: readonly StoredCall[]): RunStart => {
    const unanswered = new Set(calls.flatMap((call) => (call.status === 'waiting' ? call.waits : [])));
    return {
      suspended: {
        ...state,
        ...(model === undefined ? {} : { model }),
        open: { ...state.open, calls },
        pending: waits.filter(({ wait }) => unanswered.has(wait)).map(({ pending }) => pending),
      },
    };
  };
  return answered.some(isUncheckedEdit)
    ? checkEdits(answered, toolsOf(config, state)).then(startWith)
    : startWith(answered);
}

function isUncheckedEdit(call: StoredCall): call is StoredWaitingCall {
  const edited = call.status === 'waiting' ? call.journal.edited : undefined;
  return edited !== undefined && edited.isChecked === undefined;
}

/** What the run was offered and is given now: nobody checks with tools that it may not use. */
function toolsOf({ tools }: ResumedConfig, { tools: names }: RunState): ToolRegistry | undefined {
  if (tools === undefined) return undefined;
  const registry = tools instanceof ToolRegistry ? tools : new ToolRegistry().register(...tools);
  return names === undefined ? registry : registry.view({ allow: [...names] });
}

/** Arguments that were edited, as their tools will get them. Whoever edited them hears of all that is wrong. */
async function checkEdits(
  calls: readonly StoredCall[],
  tools: ToolRegistry | undefined,
): Promise<readonly StoredCall[]> {
  const faults: string[] = [];
  const checkEdit = async (call: StoredCall): Promise<StoredCall> => {
    if (!isUncheckedEdit(call)) return call;
    const { id, name, journal } = call;
    const checked = await tools?.check(name, journal.arguments);
    const problem = problemOf(checked) ?? unchangeable(tools?.offered(name));
    if (!checked?.ok || problem !== undefined) {
      faults.push(`the edited arguments of '${name}' (${id}): ${problem}`);
      return call;
    }
    const { original } = journal.edited ?? { original: journal.arguments };
    const edited = { original, isChecked: true as const };
    return { ...call, journal: { ...journal, arguments: checked.arguments, edited } };
  };
  const checked = await Promise.all(calls.map(checkEdit));
  if (faults.length > 0) throw invalid(faults);
  return checked;
}

/** The tool may have changed its mind since the question was asked. */
function unchangeable(tool: ToolDefinition | undefined): string | undefined {
  const decisions = typeof tool?.approval === 'object' ? tool.approval.decisions : undefined;
  return decisions === undefined || decisions.includes('edit') ? undefined : 'its tool takes no edits';
}

function problemOf(checked: CheckedArguments | undefined): string | undefined {
  if (checked === undefined) return 'they can be checked only where the tools are given';
  if (!checked.ok) return checked.problem;
  // A person means what they write: what the tool does not know is told instead of taken away.
  return checked.removed.length > 0 ? `there is no ${checked.removed.join(', ')}` : undefined;
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
      if (open.call !== call || current.status !== 'waiting') continue;
      if (answer === undefined) {
        if (isExpired(wait)) current = expired(current, wait);
        continue;
      }
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

function invalid(faults: readonly string[]): ToolwrightError {
  const lines = faults.map((fault) => `\n  - ${fault}`);
  return new ToolwrightError(
    'InvalidAnswer',
    `The run was not resumed; its answers are wrong:${lines.join('')}`,
  );
}
