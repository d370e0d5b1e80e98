import type { SafeLog } from '../call/log.js';
import type { ConversationLog, KeptConversation } from '../contract/conversation-log.js';
import type { Schedule, ScheduleStore } from '../contract/schedule-store.js';
import { MAX_TIMER_MS } from '../kernel/async.js';
import { nextDue } from './due-times.js';

/** Schedules that are looked at in one page. */
const PAGE = 100;

/** Failures after which a look ends: the store may be away. */
const MOST_FAILURES = 1_000;

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
  /** Schedules that are due and failed, those that were tried longest ago first: they keep no others waiting. */
  readonly #failed = new Set<string>();
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
    const { schedules } = this.#parts;
    for (let failures = 0; failures < MOST_FAILURES && !this.#isClosed; ) {
      const {
        now,
        due,
        nextAt = Number.POSITIVE_INFINITY,
      } = await schedules.dueSchedules(PAGE + this.#failed.size);
      const others = due.filter((schedule) => !this.#failed.has(timeOf(schedule)));
      if (others.length > 0) failures += await this.#enterAll(others.slice(0, PAGE), now);
      else {
        await this.#tryAgain(due, now);
        return nextAt > now ? nextAt - now : Number.POSITIVE_INFINITY;
      }
    }
    return Number.POSITIVE_INFINITY;
  }

  /** Enters a page of those that failed before; `due` are all of them that are still due. */
  async #tryAgain(due: readonly Schedule[], now: number): Promise<void> {
    const known = new Map(due.map((schedule) => [timeOf(schedule), schedule]));
    for (const time of this.#failed) if (!known.has(time)) this.#failed.delete(time);
    const page = [...this.#failed].slice(0, PAGE).flatMap((time) => known.get(time) ?? []);
    for (const schedule of page) this.#failed.delete(timeOf(schedule));
    await this.#enterAll(page, now);
  }

  /** How many of them failed. */
  async #enterAll(page: readonly Schedule[], now: number): Promise<number> {
    const entered = await Promise.all(page.map((schedule) => this.#enter(schedule, now)));
    const failed = page.filter((_, index) => !entered[index]);
    for (const schedule of failed) this.#failed.add(timeOf(schedule));
    return failed.length;
  }

  /** False where it failed; it is due until it did not. */
  async #enter(schedule: Schedule, now: number): Promise<boolean> {
    const { schedules, conversations, log } = this.#parts;
    const { id, conversationId, dueAt, owner, timing } = schedule;
    try {
      if (timing.kind === 'once' || !(await this.#isWaiting(schedule))) {
        const content = { kind: 'prompt' as const, content: promptOf(schedule) };
        const owned = owner === undefined ? content : { ...content, owner };
        await conversations.enter({ conversationId, key: timeOf(schedule), content: owned });
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

/** The key of a prompt: its schedule, and when it was due. */
function timeOf({ id, dueAt }: Pick<Schedule, 'id' | 'dueAt'>): string {
  return `${prefixOf(id)}${dueAt}`;
}

/** What the keys of a schedule's prompts begin with. */
function prefixOf(id: string): string {
  return `schedule ${id} `;
}

/** When a schedule was due whose prompt is the last of it to have entered a conversation; nothing where none has. */
export function enteredTime(id: string, kept: KeptConversation | undefined): number | undefined {
  const { messages = [], turn, inbox = [] } = kept ?? {};
  const keys = [
    ...messages.map((message) => message.turn?.key),
    turn?.entry.key,
    ...inbox.map(({ key }) => key),
  ];
  const last = keys.findLast((key) => key?.startsWith(prefixOf(id)));
  return last === undefined ? undefined : Number(last.slice(prefixOf(id).length));
}

/** What the model is told: it did not come from the user just now. */
function promptOf({ id, text, dueAt }: Schedule): string {
  return `[System: schedule:${id}, due ${new Date(dueAt).toISOString()}] ${text}`;
}
