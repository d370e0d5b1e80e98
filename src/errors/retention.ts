import type { ConversationLog } from '../contract/conversation-log.js';
import type { RetentionAges, RetentionReport } from '../contract/retention.js';
import { optionTable } from '../kernel/options.js';
import { checkOptions } from './author-fault.js';
import { AGE } from './store-checks.js';

const AGES = optionTable<RetentionAges>('retention', {
  runs: AGE,
  jobs: AGE,
  events: AGE,
  conversations: AGE,
});

/** Conversations that are removed between two looks for more. */
const BATCH = 100;
const LEASE_MS = 60_000;

/** What a store removes by age, each by itself; gives numbers. */
interface AgedParts {
  readonly runs: (ageMs: number) => number | Promise<number>;
  readonly jobs: (ageMs: number) => number | Promise<number>;
  readonly conversations: ConversationLog;
  /** Conversations in which nothing is open or waits and nothing has happened for so long. */
  readonly idle: (ageMs: number, limit: number) => readonly string[] | Promise<readonly string[]>;
}

/** Removes what has become old in a store. */
export async function applyRetention(
  ages: RetentionAges,
  { runs, jobs, conversations, idle }: AgedParts,
): Promise<RetentionReport> {
  checkOptions(ages, AGES);
  const byAge = async (age: number | undefined, remove: AgedParts['runs']): Promise<number> =>
    age === undefined ? 0 : remove(age);
  return {
    // First, as they take their runs, jobs and events along.
    conversations: await byAge(ages.conversations, (age) =>
      eraseIdle(conversations, (limit) => idle(age, limit)),
    ),
    runs: await byAge(ages.runs, runs),
    jobs: await byAge(ages.jobs, jobs),
    events: await byAge(ages.events, (age) => conversations.removeEventsOlderThan(age)),
  };
}

async function eraseIdle(
  log: ConversationLog,
  idle: (limit: number) => readonly string[] | Promise<readonly string[]>,
): Promise<number> {
  for (let removed = 0; ; ) {
    const ids = await idle(BATCH);
    let erased = 0;
    for (const conversationId of ids) if (await eraseUnlessOpen(log, conversationId)) erased += 1;
    removed += erased;
    if (ids.length < BATCH || erased === 0) return removed;
  }
}

/** Something may have entered since it was found. */
async function eraseUnlessOpen(log: ConversationLog, conversationId: string): Promise<boolean> {
  const hold = { conversationId, claim: crypto.randomUUID() };
  const outcome = await log.hold({ ...hold, leaseMs: LEASE_MS });
  if (outcome.status !== 'held') return false;
  const { turn, inbox, revision } = outcome.conversation;
  if (turn === undefined && inbox.length === 0) return (await log.remove?.(hold, 'erase')) ?? false;
  await log.letGo(hold, revision - 1);
  return false;
}
