import type { SafeLog } from '../call/log.js';
import type { ConversationLog } from '../contract/conversation-log.js';
import type { Schedule, ScheduleStore } from '../contract/schedule-store.js';
import { MAX_TIMER_MS } from '../kernel/async.js';
import { nextDue } from './due-times.js';

/** Schedules that are looked at in one page. */
const PAGE = 100;

/** What due prompts are taken from, and where they go. */
interface ScheduleRunnerParts {
  readonly schedules: ScheduleStore;
  readonly conversations: ConversationLog;
  /** Milliseconds between two looks, where nothing is due before. */
  readonly pollMs: number;
  readonly log: SafeLog;
}

/**
 * Puts the prompts of schedules into their conversations when their time has come. Any number of processes may do so: the
 * key of a prompt names its schedule and its time, so that it enters once, also where one dies before it has moved the
 * schedule on.
 */
export class ScheduleRunner {
  readonly #parts: ScheduleRunnerParts;
  #looking: Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(parts: ScheduleRunnerParts) {
    this.#parts = parts;
    this.#looking = this.#look();
  }

  /** Looks no more, and resolves when what is being entered is kept. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { pollMs, log } = this.#parts;
    let waitMs = pollMs;
    try {
      waitMs = Math.min(pollMs, await this.#enterDue());
    } catch (error) {
      log.warn('The store could not be asked for schedules', { error });
    }
    if (this.#isClosed) return;
    const again = (): void => {
      this.#looking = this.#look();
    };
    this.#timer = setTimeout(again, Math.min(waitMs, MAX_TIMER_MS)).unref();
  }

  /** Enters all that is due, and gives the milliseconds until something else is. */
  async #enterDue(): Promise<number> {
    while (!this.#isClosed) {
      const { now, due, nextAt = Number.POSITIVE_INFINITY } = await this.#parts.schedules.dueSchedules(PAGE);
      const entered = await Promise.all(due.map((schedule) => this.#enter(schedule, now)));
      if (nextAt > now) return nextAt - now;
      // A page of nothing but failures would come again at once.
      if (!entered.includes(true)) break;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** False where it failed; it is due until it did not. */
  async #enter(schedule: Schedule, now: number): Promise<boolean> {
    const { schedules, conversations, log } = this.#parts;
    const { id, conversationId, dueAt, owner, timing } = schedule;
    try {
      if (timing.kind === 'once' || !(await this.#isWaiting(schedule))) {
        const content = { kind: 'prompt' as const, content: promptOf(schedule) };
        const owned = owner === undefined ? content : { ...content, owner };
        await conversations.enter({ conversationId, key: `${prefixOf(id)}${dueAt}`, content: owned });
      }
      const next = nextDue(schedule, now);
      if (next === undefined && timing.kind !== 'once')
        log.warn(`Schedule '${id}' ended: its time does not come again`, { timing });
      await schedules.moveSchedule({ id, dueAt, ...(next === undefined ? {} : { next }) });
      return true;
    } catch (error) {
      log.warn(`The prompt of schedule '${id}' could not enter its conversation`, { error });
      return false;
    }
  }

  /** A conversation that waits for somebody would else find its inbox full of one schedule's prompts. */
  async #isWaiting({ id, conversationId }: Schedule): Promise<boolean> {
    const kept = await this.#parts.conversations.read(conversationId);
    return kept?.inbox.some(({ key }) => key.startsWith(prefixOf(id))) ?? false;
  }
}

/** What the keys of a schedule's prompts begin with. */
function prefixOf(id: string): string {
  return `schedule ${id} `;
}

/** What the model is told: it did not come from the user just now. */
function promptOf({ id, text, dueAt }: Schedule): string {
  return `[System: schedule:${id}, due ${new Date(dueAt).toISOString()}] ${text}`;
}
