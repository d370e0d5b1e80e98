import { createResultChecker, type ResultChecker } from '../checking/create-result-checker.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { historyFaults } from '../loop/read-history.js';
import { readState } from '../loop/read-state.js';
import { isSignedWith } from '../loop/sign-state.js';
import type { ConversationSnapshot } from './conversation-snapshot.js';
import { SNAPSHOT_SCHEMA } from './snapshot-schema.js';

let check: ResultChecker | undefined;

/** A snapshot, and whether the owners in it are certain: nobody else could change it. */
export interface ReadSnapshot {
  readonly snapshot: ConversationSnapshot;
  readonly isCertain: boolean;
}

/**
 * Takes the snapshot of a conversation from outside; the copy is the conversation's own.
 *
 * @throws ToolwrightError `InvalidState` (515) where it is none, or where it was changed: with a secret
 *   anywhere, without one as far as that shows.
 */
export function readSnapshot(snapshot: unknown, secret: string | undefined): ReadSnapshot {
  check ??= createResultChecker(SNAPSHOT_SCHEMA);
  const faults = check(snapshot);
  if (faults.length > 0) {
    const told = faults.slice(0, 5).map(({ path, message }) => `${path || 'it'} ${message}`);
    throw invalid(`This is no snapshot of a conversation of this version: ${told.join('; ')}.`);
  }
  const read = JSON.parse(JSON.stringify(snapshot)) as ConversationSnapshot;
  const [fault] = historyFaults(read.messages);
  if (fault !== undefined) throw invalid(`The history of the snapshot is none: ${fault.problem}.`);
  const isCertain = isSignedWith(read, secret);
  if (secret !== undefined && !isCertain)
    throw invalid('The snapshot of the conversation was changed, or signed with another secret.');
  const standing = read.turn?.standing;
  if (standing === undefined || standing.status === 'running') return { snapshot: read, isCertain };
  const { messages } = readState(standing.state, secret);
  if (messages.length < read.messages.length)
    throw invalid('The snapshot of the conversation was changed: its suspended run has another history.');
  return { snapshot: read, isCertain };
}

function invalid(message: string): ToolwrightError {
  return new ToolwrightError('InvalidState', message);
}
