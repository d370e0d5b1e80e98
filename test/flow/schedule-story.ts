import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { Conversations, type LLMProvider, type Schedule, type ScheduleTiming } from 'toolwright';
import type { PostgresRunStore } from 'toolwright/postgres';
import type { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';

type Store = MemoryRunStore | SqliteRunStore | PostgresRunStore;

/** A store, and optionally a second connection to it. */
export interface Opened {
  readonly store: Store;
  readonly other?: Store;
  close(): void | Promise<void>;
}

export interface Clock {
  now: number;
}

/** A process dies after this many writes; `isWritten` is whether the last write is still carried out. */
interface Death {
  readonly writes: number;
  readonly isWritten: boolean;
}

export type StoryStep =
  | { readonly kind: 'add'; readonly timing: ScheduleTiming; readonly inMs: number; readonly to: number }
  | { readonly kind: 'cancel'; readonly which: number }
  | { readonly kind: 'start'; readonly death: Death | undefined }
  | { readonly kind: 'wait'; readonly ms: number };

const SECOND = 1000;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const LEASE = 60;

/** Whole seconds, so that advancing the clock by one lease makes nothing due. */
function seconds(max: number): fc.Arbitrary<number> {
  return fc.integer({ min: 1, max: max / SECOND }).map((count) => count * SECOND);
}

const timing: fc.Arbitrary<ScheduleTiming> = fc.oneof(
  fc.constant({ kind: 'once' as const }),
  fc.integer({ min: 1, max: 100 }).map((minutes) => ({ kind: 'every' as const, everyMs: minutes * MINUTE })),
  fc
    .integer({ min: 0, max: 59 })
    .map((minute) => ({ kind: 'cron' as const, cron: `${minute} * * * *`, timeZone: 'Europe/Vienna' })),
);

const step: fc.Arbitrary<StoryStep> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('add'), timing, inMs: seconds(HOUR), to: fc.nat(1) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel'), which: fc.nat(9) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('start'),
      death: fc.option(fc.record({ writes: fc.nat(6), isWritten: fc.boolean() }), { nil: undefined }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('wait'), ms: seconds(4 * HOUR) }),
  },
) as fc.Arbitrary<StoryStep>;

export const storySteps = fc.array(step, { minLength: 4, maxLength: 14 });

const provider: LLMProvider = {
  chat: async () => ({ content: 'done', toolCalls: [], finishReason: 'stop' }),
};

const NEVER = new Promise<never>(() => {});

/** The operations of due schedules; a process may die at each of them. */
const WRITES: readonly PropertyKey[] = ['dueSchedules', 'enter', 'moveSchedule'];

interface Life {
  isOver: boolean;
  left: number;
}

/** Schedules and processes that submit their prompts, with the expected turns. */
export class ScheduleStory {
  readonly #opened: Opened;
  readonly #clock: Clock;
  readonly #front: Conversations;
  readonly #lives: Life[] = [];
  readonly #closing: Conversations[] = [];
  readonly #expected = new Map<string, string[]>([
    ['c0', []],
    ['c1', []],
  ]);
  #schedules: Schedule[] = [];
  #added = 0;

  constructor(opened: Opened, clock: Clock) {
    this.#opened = opened;
    this.#clock = clock;
    this.#front = this.#open(opened.store, { takesTurns: false });
  }

  async take(taken: StoryStep): Promise<void> {
    if (taken.kind === 'add') return this.#add(taken);
    if (taken.kind === 'start') return this.#start(taken.death);
    if (taken.kind === 'cancel') return this.#cancel(taken.which);
    this.#clock.now += taken.ms;
    this.#expectDue();
    // All due prompts must be submitted now. If all processes are dead, a new one is started.
    await this.#settle();
  }

  async end(): Promise<void> {
    await this.take({ kind: 'wait', ms: HOUR });
  }

  /** The keys of the prompts whose turns have ended, by conversation. */
  async entered(): Promise<unknown> {
    const ids = [...this.#expected.keys()];
    const views = await Promise.all(ids.map((id) => this.#front.snapshot(id)));
    return views.map((view) => (view?.history ?? []).map(({ key }) => key).sort());
  }

  expected(): unknown {
    return [...this.#expected.values()].map((keys) => [...keys].sort());
  }

  async kept(): Promise<unknown> {
    return (await this.#opened.store.schedules.listSchedules()).map(({ id, dueAt }) => [id, dueAt]).sort();
  }

  left(): unknown {
    return this.#schedules.map(({ id, dueAt }) => [id, dueAt]).sort();
  }

  async close(): Promise<void> {
    const living = this.#closing.filter((_, index) => this.#lives[index]?.isOver === false);
    for (const life of this.#lives) life.left = Number.POSITIVE_INFINITY;
    await Promise.all([this.#front, ...living].map((conversations) => conversations.close()));
    for (const life of this.#lives) life.isOver = true;
  }

  async #add({ timing: added, inMs, to }: Extract<StoryStep, { kind: 'add' }>): Promise<void> {
    this.#added += 1;
    const { now } = this.#clock;
    const of = { id: `s${this.#added}`, conversationId: `c${to}`, text: 'Look', createdAt: now };
    const schedule = { ...of, timing: added, dueAt: now + inMs };
    this.#schedules.push(schedule);
    await this.#opened.store.schedules.addSchedule(schedule);
  }

  async #cancel(which: number): Promise<void> {
    const [cancelled] = this.#schedules.splice(which, 1);
    if (cancelled !== undefined) await this.#opened.store.schedules.cancelSchedule(cancelled.id);
  }

  #start(death: Death | undefined): void {
    const { store, other = store } = this.#opened;
    const life: Life = { isOver: false, left: death?.writes ?? Number.POSITIVE_INFINITY };
    const seen = mortal(this.#lives.length % 2 === 0 ? store : other, life, death?.isWritten ?? false);
    this.#lives.push(life);
    this.#closing.push(this.#open(seen, {}));
  }

  #open(store: Store, options: object): Conversations {
    const config = { provider, model: 'm' };
    return new Conversations({ store, config, leaseMs: LEASE, pollMs: 2, ...options });
  }

  #expectDue(): void {
    const { now } = this.#clock;
    const due = this.#schedules.filter(({ dueAt }) => dueAt <= now);
    for (const { id, conversationId, dueAt } of due)
      this.#expected.get(conversationId)?.push(`schedule ${id} ${dueAt}`);
    this.#schedules = this.#schedules.flatMap((schedule) => {
      if (!due.includes(schedule)) return [schedule];
      const dueAt = nextOf(schedule, now);
      return dueAt === undefined ? [] : [{ ...schedule, dueAt }];
    });
  }

  /** Waits until nothing is due and all conversations are idle. */
  async #settle(): Promise<void> {
    const { store } = this.#opened;
    for (let looks = 0; looks < 5000; looks += 1) {
      const { due } = await store.schedules.dueSchedules(1);
      const views = await Promise.all([...this.#expected.keys()].map((id) => this.#front.snapshot(id)));
      if (due.length === 0 && views.every((view) => view === undefined || view.status === 'idle')) return;
      if (this.#lives.every(({ isOver }) => isOver)) this.#start(undefined);
      await pause(2);
      // Lets the leases of dead processes expire, then resets the clock.
      if (looks % 50 === 49) await this.#outwaitLeases();
    }
    throw new Error('It never came to an end');
  }

  async #outwaitLeases(): Promise<void> {
    const { now } = this.#clock;
    this.#clock.now += LEASE;
    await pause(10);
    this.#clock.now = now;
  }
}

/** The next due time that is in the future. */
function nextOf({ timing: of, dueAt }: Schedule, now: number): number | undefined {
  if (of.kind === 'once') return undefined;
  const [first, every] =
    of.kind === 'every' ? [dueAt, of.everyMs] : [Number.parseInt(of.cron, 10) * MINUTE, HOUR];
  return first + (Math.floor((now - first) / every) + 1) * every;
}

/** The store of a process that dies during a write. From then on, calls have no effect and never return. */
function mortal<Target extends object>(target: Target, life: Life, isWritten: boolean): Target {
  return new Proxy(target, {
    get: (_, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value === 'object' && value !== null) return mortal(value, life, isWritten);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        if (life.isOver) return NEVER;
        if (WRITES.includes(name)) life.left -= 1;
        if (life.left >= 0) return value.apply(target, args);
        life.isOver = true;
        if (isWritten) Promise.resolve(value.apply(target, args)).catch(() => {});
        return NEVER;
      };
    },
  });
}

/** The same store with another clock for due schedules. */
export function withClock(store: PostgresRunStore, clock: Clock): PostgresRunStore {
  const dueSchedules = async (limit: number) => {
    const all = await store.schedules.listSchedules({ limit: 1000 });
    const due = all.filter(({ dueAt }) => dueAt <= clock.now);
    const nextAt = all[due.length]?.dueAt;
    return { now: clock.now, due: due.slice(0, limit), ...(nextAt === undefined ? {} : { nextAt }) };
  };
  const schedules = new Proxy(store.schedules, {
    get: (target, name) => {
      if (name === 'dueSchedules') return dueSchedules;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'schedules') return schedules;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
