import type { RunCheckpoint } from '../contract/run-checkpoint.js';
import type { RunState } from '../contract/run-state.js';
import type { OptionRule } from '../kernel/options.js';
import { checkArguments } from './author-fault.js';
import { ToolwrightError } from './toolwright-error.js';

/** What an age may be. */
export const AGE: OptionRule = {
  accepts: (value) => typeof value === 'number' && value >= 0,
  fix: 'milliseconds, 0 or more',
};

/** What is no age must not pass for none, or every run would be forgotten. */
export function checkAge(ageMs: number): void {
  checkArguments({ of: 'removeOlderThan', given: { ageMs }, rules: { ageMs: AGE } });
}

/** Why a store does not take a state: it would undo what somebody else does, or has done. */
export function refusedSave(runId: string): ToolwrightError {
  return new ToolwrightError(
    'RunClaimed',
    `Run '${runId}' is claimed, under way or over, or a newer state of it is kept.`,
  );
}

/** Why a run does not begin. */
export function refusedBegin(runId: string): ToolwrightError {
  return new ToolwrightError(
    'RunClaimed',
    `The store has a run '${runId}' already, and this one was not begun: give it another runId, or see with store.read('${runId}') what became of the other.`,
  );
}

/** What a store keeps beside a state, so that it finds the runs whose answers come too late. */
interface KeptExpiry {
  /** When the first of its answers comes too late. */
  readonly expiresAt: number | null;
  /** The conversation whose turn it is. */
  readonly turnOf: string | null;
}

/** When the first answer of a state comes too late; a run under way waits for none. */
export function expiryOf(state: RunState | RunCheckpoint): KeptExpiry {
  const pending = 'pending' in state ? state.pending : [];
  const times = pending.flatMap(({ expiresAt }) => (expiresAt === undefined ? [] : [Date.parse(expiresAt)]));
  const known = times.filter((time) => !Number.isNaN(time));
  return { expiresAt: known.length === 0 ? null : Math.min(...known), turnOf: state.turnOf ?? null };
}

/** Under which id a deleted conversation is kept: nobody can guess it, and nothing enters it. */
export function hiddenId(conversationId: string): string {
  return `${HIDDEN}${crypto.randomUUID()} ${conversationId}`;
}

const HIDDEN = 'deleted ';
const UUID_LENGTH = 36;

/** The id that a hidden conversation had, if its id is one of `hiddenId`. */
export function idBeforeHiding(id: string): string | undefined {
  return id.startsWith(HIDDEN) ? id.slice(HIDDEN.length + UUID_LENGTH + 1) : undefined;
}

/**
 * How the state of a run names the conversation whose turn it is. An id alone says nothing: clients may choose those of
 * conversations.
 */
export function turnMark(conversationId: string): string {
  return JSON.stringify({ turnOf: conversationId }).slice(1, -1);
}
