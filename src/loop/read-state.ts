import { canonicalJson } from '../checking/canonical-json.js';
import { createResultChecker, type ResultChecker } from '../checking/create-result-checker.js';
import { plainJson } from '../checking/plain-json.js';
import type { ArgumentFault } from '../contract/argument-fault.js';
import type { RunState } from '../contract/run-state.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { openWaits } from './open-waits.js';
import { historyFaults } from './read-history.js';
import { RUN_STATE_SCHEMA } from './run-state-schema.js';
import { isSignedWith } from './sign-state.js';

let check: ResultChecker | undefined;

/**
 * Takes the state of a suspended run from outside; the copy is the run's own, because tools may change what
 * they are given.
 *
 * @throws ToolwrightError `InvalidState` (515) where it is none, or where it was changed: with a secret
 *   anywhere, without one as far as `pending` shows it.
 */
export function readState(state: unknown, secret: string | undefined): RunState {
  const faults = stateFaults(state);
  if (faults.length > 0) {
    const told = faults.slice(0, 5).map(({ path, message }) => `${path || 'it'} ${message}`);
    throw invalid(`This is no state of a suspended run of this version: ${told.join('; ')}.`);
  }
  const read = plainJson(state) as RunState;
  if (secret !== undefined && !isSignedWith(read, secret))
    throw invalid('The state of the run was changed, or signed with another secret.');
  const [fault] = historyFaults(read.messages);
  if (fault !== undefined) throw invalid(`The history of the state is none: ${fault.problem}.`);
  const pending = openWaits(read).map((wait) => wait.pending);
  if (canonicalJson(pending) !== canonicalJson(read.pending))
    throw invalid('The state of the run was changed: its pending calls are not those of its open message.');
  return read;
}

/** What of a state is not as the loop relies on it. */
export function stateFaults(state: unknown): readonly ArgumentFault[] {
  check ??= createResultChecker(RUN_STATE_SCHEMA);
  return check(state);
}

function invalid(message: string): ToolwrightError {
  return new ToolwrightError('InvalidState', message);
}
