import type { RunStore } from '../../../core/contract/run-state.js';
import type { Schedule, StoreWithSchedules } from '../../../core/contract/schedule-store.js';
import { expectSame, expectThat } from '../conformance/expectations.js';
import { atOnce, MINUTE, ODD_TEXT, type OpenedCases, type OpenedStore } from './store-bench.js';

type Opened = OpenedStore<RunStore & StoreWithSchedules>;

const OWNER = { user: 'é', tenant: ODD_TEXT, roles: ['x'.repeat(5_000)] };
const SAME_OWNER = { tenant: ODD_TEXT, roles: ['x'.repeat(5_000)], user: 'é' };
const HOUR = 60 * MINUTE;

/** A schedule that is due after some milliseconds on the store's clock. */
async function sample(
  { store: { schedules } }: Opened,
  id: string,
  { inMs = HOUR, ...more }: Partial<Schedule> & { readonly inMs?: number } = {},
): Promise<Schedule> {
  const createdAt = Math.floor(await schedules.clock());
  const timing = { kind: 'once' as const };
  return { id, conversationId: 'c', text: ODD_TEXT, timing, dueAt: createdAt + inMs, createdAt, ...more };
}

async function add(
  opened: Opened,
  ...given: Parameters<typeof sample> extends [unknown, ...infer Rest] ? Rest : never
) {
  const schedule = await sample(opened, ...given);
  expectSame('adding', await opened.store.schedules.addSchedule(schedule), true);
  return schedule;
}

const idsOf = (schedules: readonly Schedule[]): readonly string[] => schedules.map(({ id }) => id);

/** Cases of `ScheduleStore`. */
export const SCHEDULE_CASES: OpenedCases<Opened> = {
  'schedules.listSchedules gives what was added as it was, the first to come first, also through another connection':
    async (opened) => {
      const { store, other = store } = opened;
      const timing = { kind: 'cron', cron: '0 9 * * *', timeZone: 'Europe/Vienna' } as const;
      const late = await add(opened, 'late', { inMs: 3 * HOUR, timing, owner: OWNER });
      const early = await add(opened, 'early', { inMs: HOUR });
      const middle = await add(opened, 'middle', {
        inMs: 2 * HOUR,
        conversationId: ODD_TEXT.replace(/[\0\ud83d]/g, ''),
      });
      expectSame('all', await other.schedules.listSchedules(), [early, middle, late]);
      expectSame('the first', await other.schedules.listSchedules({ limit: 1 }), [early]);
      const every = await other.schedules.listSchedules({ limit: Number.MAX_SAFE_INTEGER });
      expectSame('all, without a limit', idsOf(every), ['early', 'middle', 'late']);
      const listed = async (query: object) => idsOf(await other.schedules.listSchedules(query));
      expectSame('those of a conversation', await listed({ conversationId: 'c' }), ['early', 'late']);
      expectSame('those of an owner', await listed({ owner: SAME_OWNER }), ['late']);
      expectSame('those of both', await listed({ conversationId: 'c', owner: OWNER }), ['late']);
      expectSame('those of nobody', await listed({ owner: { user: 'e' } }), []);
      expectSame('those of no conversation', await listed({ conversationId: 'C' }), []);
    },
  'schedules.addSchedule changes nothing where one of the same id is kept': async (opened) => {
    const first = await add(opened, 'a', { inMs: HOUR });
    const again = await sample(opened, 'a', { inMs: 2 * HOUR, text: 'another' });
    expectSame('adding again', await opened.store.schedules.addSchedule(again), true);
    expectSame('adding again beyond the limit', await opened.store.schedules.addSchedule(again, 1), true);
    expectSame('what is stored', await opened.store.schedules.listSchedules(), [first]);
  },
  'schedules.addSchedule takes no more than there may be of one owner, or of a conversation without one':
    async (opened) => {
      const { schedules } = opened.store;
      const isTaken = async (id: string, more: Partial<Schedule>) =>
        schedules.addSchedule(await sample(opened, id, more), 2);
      const taken = [
        await isTaken('o1', { owner: OWNER }),
        await isTaken('o2', { owner: SAME_OWNER, conversationId: 'd' }),
        await isTaken('o3', { owner: OWNER, conversationId: 'e' }),
        await isTaken('p1', { owner: { user: 'other' } }),
        await isTaken('c1', {}),
        await isTaken('c2', {}),
        await isTaken('c3', {}),
        await isTaken('d1', { conversationId: 'd' }),
      ];
      expectSame('what was taken', taken, [true, true, false, true, true, true, false, true]);
      const unlimited = await sample(opened, 'o4', { owner: OWNER });
      expectSame('without a limit', await schedules.addSchedule(unlimited, Number.POSITIVE_INFINITY), true);
      for (const id of ['o1', 'o4']) await schedules.cancelSchedule(id);
      expectSame('after one has ended', await isTaken('o3', { owner: OWNER }), true);
    },
  'schedules.addSchedule takes no more than there may be, also where several are added at the same moment':
    async (opened) => {
      const { store, other = store } = opened;
      const given = await Promise.all(
        Array.from({ length: 12 }, (_, index) => sample(opened, `s${index}`, { owner: OWNER })),
      );
      const taken = await Promise.all(
        given.map((schedule, index) => (index % 2 ? store : other).schedules.addSchedule(schedule, 5)),
      );
      expectSame('how many were taken', taken.filter(Boolean).length, 5);
      expectSame('how many are kept', (await store.schedules.listSchedules()).length, 5);
    },
  'schedules.cancelSchedule ends one, once': async (opened) => {
    const { schedules } = opened.store;
    await add(opened, 'a', {});
    expectSame('cancelling what is not there', await schedules.cancelSchedule('A'), false);
    expectSame('cancelling', await schedules.cancelSchedule('a'), true);
    expectSame('cancelling again', await schedules.cancelSchedule('a'), false);
    expectSame('what is stored', await schedules.listSchedules(), []);
  },
  'schedules.dueSchedules gives those whose time has come, and when the next one is due': async (opened) => {
    const { schedules } = opened.store;
    const empty = await schedules.dueSchedules(10);
    expectSame('what is due of nothing', [empty.due, empty.nextAt], [[], undefined]);
    await add(opened, 'b', { inMs: 2 * HOUR });
    await add(opened, 'a', { inMs: HOUR });
    await add(opened, 'c', { inMs: 24 * HOUR });
    const before = await schedules.dueSchedules(10);
    expectSame('what is due before', before.due, []);
    expectThat((before.nextAt ?? 0) - before.now > HOUR - MINUTE, 'nextAt is not when the first is due');
    await opened.advance(3 * HOUR);
    const after = await schedules.dueSchedules(10);
    expectSame('what is due', idsOf(after.due), ['a', 'b']);
    const wait = (after.nextAt ?? 0) - after.now;
    expectThat(wait > 20 * HOUR && wait <= 21 * HOUR, 'nextAt is not when the next is due');
    const page = await schedules.dueSchedules(1);
    expectSame('the first of them', idsOf(page.due), ['a']);
    expectThat((page.nextAt ?? Number.NaN) <= page.now, 'nextAt does not tell that another one is due');
  },
  'schedules.moveSchedule moves one that is still due at that time, or ends it': async (opened) => {
    const { schedules } = opened.store;
    await add(opened, 'a', { inMs: HOUR });
    await add(opened, 'b', { inMs: HOUR });
    await opened.advance(2 * HOUR);
    const { due, now } = await schedules.dueSchedules(10);
    const dueAt = due[0]?.dueAt ?? 0;
    const next = Math.floor(now) + HOUR;
    expectSame(
      'moving from another time',
      await schedules.moveSchedule({ id: 'a', dueAt: dueAt - 1, next }),
      false,
    );
    expectSame('moving what is not there', await schedules.moveSchedule({ id: 'x', dueAt, next }), false);
    expectSame('moving', await schedules.moveSchedule({ id: 'a', dueAt, next }), true);
    expectSame('moving again', await schedules.moveSchedule({ id: 'a', dueAt, next: next + 1 }), false);
    expectSame(
      'ending from another time',
      await schedules.moveSchedule({ id: 'b', dueAt: (due[1]?.dueAt ?? 0) + 1 }),
      false,
    );
    expectSame('ending', await schedules.moveSchedule({ id: 'b', dueAt: due[1]?.dueAt ?? 0 }), true);
    const [left, second] = await schedules.listSchedules();
    expectSame('what is left', [left?.id, left?.dueAt, second], ['a', next, undefined]);
  },
  'schedules.moveSchedule lets one of several win that move the same one at the same moment': async (
    opened,
  ) => {
    const { store, other = store } = opened;
    const { dueAt } = await add(opened, 'a', {});
    const moved = await atOnce(10, [store, other], ({ schedules }, index) =>
      schedules.moveSchedule({ id: 'a', dueAt, next: dueAt + index + 1 }),
    );
    expectSame('how many moved it', moved.filter(Boolean).length, 1);
  },
};
