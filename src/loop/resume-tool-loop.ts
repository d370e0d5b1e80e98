import type { CallScope } from '../contract/call-scope.js';
import type { RunState } from '../contract/run-state.js';
import type { Answer } from '../contract/suspension.js';
import { applyAnswers } from './apply-answers.js';
import type { SuspendedStart } from './begin-run.js';
import { driveLoop } from './drive-loop.js';
import type { ToolLoopResult } from './loop-result.js';
import { readState } from './read-state.js';
import { type ResumeConfig, type ResumeOptions, readResume } from './resume-options.js';
import { checkOwner } from './run-owner.js';
import { isSignedWith } from './sign-state.js';

/**
 * Goes on with a suspended run. Answers come in any order, by the ids of `pending`; as long as
 * some are missing, the run stays suspended and nothing runs. Then the calls that waited are made, those that
 * had run are not made again, and the loop goes on. Tools are looked up anew by name, and the scope is given
 * again, so that another process can do this.
 *
 * The run keeps what it had: its model; of the given tools, those that it was offered before; and its owner, whose
 * scope must be given. Whoever answers for the owner is named apart: `{ scope, answeredBy }`.
 *
 * It returns and does not reject for the same things as `runToolLoop`.
 *
 * @throws ToolwrightError `InvalidAnswer` (514) for unknown, repeated and unfitting answers, and `InvalidState`
 *   (515) for a state that was changed, `RunNotAllowed` (523) for a scope of another owner; all of them change
 *   nothing, and the state can be resumed again.
 *
 * @example
 * ```ts
 * const run = await runToolLoop(config, messages, { data: { userId: 'u1' } });
 * if (run.status === 'suspended') {
 *   const answers = (run.pending ?? []).map(({ id }) => ({ id, approved: true }));
 *   const resumed = await resumeToolLoop(config, run.state, answers, { data: { userId: 'u1' } });
 *   console.log(resumed.content);
 * }
 * ```
 */
export async function resumeToolLoop(
  config: ResumeConfig,
  state: RunState | undefined,
  answers: readonly Answer[],
  options: ResumeOptions | CallScope = {},
): Promise<ToolLoopResult> {
  const read = readResume({ config, options });
  return driveLoop(config, resumeWith(config, state, { ...read, answers }), { scope: read.scope ?? {} });
}

/** With what a run goes on. */
export interface Resumption extends ResumeOptions {
  readonly answers: readonly Answer[];
  /** The state is this process's own or out of a store: nobody else could change it. */
  readonly isCertain?: boolean;
}

/** A run that goes on from its state with these answers; throws where it may not, or where either is wrong. */
export function resumeWith(config: ResumeConfig, state: unknown, resumption: Resumption): SuspendedStart {
  const { answers, answeredBy, scope = {}, model, isCertain = false } = resumption;
  const secret = config?.stateSecret;
  const read = readState(state, secret);
  const isKnown = isCertain || isSignedWith(read, secret);
  const isForged = !isKnown && read.signature !== undefined;
  checkOwner({ owner: read.owner, isCertain: isKnown, isForged }, scope);
  const suspended = model === undefined ? read : { ...read, model };
  return { suspended, calls: applyAnswers(suspended, answers, answeredBy) };
}
