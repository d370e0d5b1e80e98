import type { CallScope } from '../contract/call-scope.js';
import type { RunState } from '../contract/run-state.js';
import type { Answer } from '../contract/suspension.js';
import { applyAnswers } from './apply-answers.js';
import type { RunStart } from './begin-run.js';
import { driveLoop } from './drive-loop.js';
import type { ToolLoopConfig } from './loop-config.js';
import type { ToolLoopResult } from './loop-result.js';
import { readState } from './read-state.js';

/**
 * Goes on with a suspended run. Answers come in any order, by the ids of `pending`; as long as
 * some are missing, the run stays suspended and nothing runs. Then the calls that waited are made, those that
 * had run are not made again, and the loop goes on. Tools are looked up anew by name, and the scope is given
 * again, so that another process can do this.
 *
 * It returns and does not reject for the same things as `runToolLoop`.
 *
 * @throws ToolwrightError `InvalidAnswer` (514) for unknown, repeated and unfitting answers, and `InvalidState`
 *   (515) for a state that was changed; both change nothing, and the state can be resumed again.
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
  config: ToolLoopConfig,
  state: RunState | undefined,
  answers: readonly Answer[],
  scope: CallScope = {},
): Promise<ToolLoopResult> {
  return driveLoop(config, resumeWith(config, state, answers), { scope });
}

/** A run that goes on from its state with these answers; throws where either is wrong. */
export function resumeWith(config: ToolLoopConfig, state: unknown, answers: readonly Answer[]): RunStart {
  const suspended = readState(state, config?.stateSecret);
  return { suspended, calls: applyAnswers(suspended, answers) };
}
