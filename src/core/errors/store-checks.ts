import type { ConversationLog } from '../contract/conversation-log.js';
import type { RetentionAges, RetentionReport } from '../contract/retention.js';
import type { RunCheckpoint } from '../contract/run-checkpoint.js';
import type { RunState } from '../contract/run-state.js';
import { type OptionRule, optionTable } from '../kernel/options.js';
import { checkArguments, checkOptions } from './author-fault.js';
import { ToolwrightError } from './toolwright-error.js';

/** The rule for ages. */
const AGE: OptionRule = {
  accepts: (value) => typeof value === 'number' && value >= 0,
  fix: 'milliseconds, 0 or more',
};

/** An invalid age must not count as 0, because every run would be deleted. */
export function checkAge(ageMs: number): void {
  checkArguments({ of: 'removeOlderThan', given: { ageMs }, rules: { ageMs: AGE } });
}

/** Marks an error of a store that a retry does not fix, so that runs end at once. */
export function notRetryable<Failure extends object>(error: Failure): Failure {
  return Object.assign(error, { retryable: false });
}

/** The error of a store that refuses a state, because it would undo the work of another process. */
export function refusedSave(runId: string): ToolwrightError {
  return new ToolwrightError(
    'RunClaimed',
    `Run '${runId}' cannot be saved: it is claimed, running or ended, or the store has a newer state of it, or another state of the same revision.`,
  );
}

/** The error of a run that cannot begin. */
export function refusedBegin(runId: string): ToolwrightError {
  return new ToolwrightError(
    'RunClaimed',
    `The store already has a run '${runId}', so this run was not started: give it another runId, or read the outcome of the other run with store.read('${runId}').`,
  );
}

/**
 * Columns that a store writes with a state to find runs whose answers are overdue: the earliest deadline of its
 * answers, which a running run does not have, and the conversation if the run is a turn.
 */
export function expiryOf(state: RunState | RunCheckpoint): {
  readonly expiresAt: number | null;
  readonly turnOf: string | null;
} {
  let first = Number.POSITIVE_INFINITY;
  for (const { expiresAt = '' } of 'pending' in state ? state.pending : []) {
    const time = Date.parse(expiresAt);
    if (time < first) first = time;
  }
  return { expiresAt: Number.isFinite(first) ? first : null, turnOf: state.turnOf ?? null };
}

/** The id under which a deleted conversation is stored. It cannot be guessed, and entries cannot be added to it. */
export function hiddenId(conversationId: string): string {
  return `${HIDDEN}${crypto.randomUUID()} ${conversationId}`;
}

const HIDDEN = 'deleted ';
const UUID_LENGTH = 36;

/** The original id of a hidden conversation, if this is an id of `hiddenId`. */
export function idBeforeHiding(id: string): string | undefined {
  return id.startsWith(HIDDEN) ? id.slice(HIDDEN.length + UUID_LENGTH + 1) : undefined;
}

/**
 * How a stored state names the conversation of a turn. The id of a run is not proof, because clients may choose ids
 * like those of conversations.
 */
export function turnMark(conversationId: string): string {
  return JSON.stringify({ turnOf: conversationId }).slice(1, -1);
}

const AGES = optionTable<RetentionAges>('retention', {
  runs: AGE,
  jobs: AGE,
  events: AGE,
  conversations: AGE,
});

/** Conversations that are removed per query. */
const BATCH = 100;
const LEASE_MS = 60_000;

/** The parts that a store removes by age; each returns a number. */
interface AgedParts {
  readonly runs: (ageMs: number) => number | Promise<number>;
  readonly jobs: (ageMs: number) => number | Promise<number>;
  readonly conversations: ConversationLog;
  /** Conversations without open turns, waiting entries and changes for this long. */
  readonly idle: (ageMs: number, limit: number) => readonly string[] | Promise<readonly string[]>;
}

/** Removes old data from a store. */
export async function applyRetention(
  ages: RetentionAges,
  { runs, jobs, conversations, idle }: AgedParts,
): Promise<RetentionReport> {
  checkOptions(ages, AGES);
  const removed = { conversations: 0, runs: 0, jobs: 0, events: 0 };
  // First, because this also removes their runs, jobs and events.
  if (ages.conversations !== undefined)
    removed.conversations = await eraseIdle(conversations, idle, ages.conversations);
  if (ages.runs !== undefined) removed.runs = await runs(ages.runs);
  if (ages.jobs !== undefined) removed.jobs = await jobs(ages.jobs);
  if (ages.events !== undefined) removed.events = await conversations.removeEventsOlderThan(ages.events);
  return removed;
}

async function eraseIdle(log: ConversationLog, idle: AgedParts['idle'], ageMs: number): Promise<number> {
  for (let removed = 0; ; ) {
    const ids = await idle(ageMs, BATCH);
    let erased = 0;
    for (const conversationId of ids) {
      const hold = { conversationId, claim: crypto.randomUUID() };
      const outcome = await log.hold({ ...hold, leaseMs: LEASE_MS });
      if (outcome.status !== 'held') continue;
      const { turn, inbox, revision } = outcome.conversation;
      // An entry may have arrived since the conversation was found.
      if (turn !== undefined || inbox.length > 0) await log.letGo(hold, revision - 1);
      else if (await log.remove?.(hold, 'erase')) erased += 1;
    }
    removed += erased;
    if (ids.length < BATCH || erased === 0) return removed;
  }
}
