import type { StoreWithResults } from '../../../core/contract/result-store.js';
import type { RunStore } from '../../../core/contract/run-state.js';
import type { Schedule, StoreWithSchedules } from '../../../core/contract/schedule-store.js';
import type { StandingApproval, StoreWithApprovals } from '../../../core/contract/standing-approvals.js';
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
  'schedules.listSchedules returns schedules unchanged, the next due first, also through another connection':
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
      expectSame('the schedules of a conversation', await listed({ conversationId: 'c' }), ['early', 'late']);
      expectSame('the schedules of an owner', await listed({ owner: SAME_OWNER }), ['late']);
      expectSame('the schedules of both', await listed({ conversationId: 'c', owner: OWNER }), ['late']);
      expectSame('the schedules of another owner', await listed({ owner: { user: 'e' } }), []);
      expectSame('the schedules of another conversation', await listed({ conversationId: 'C' }), []);
    },
  'schedules.addSchedule changes nothing if the id is already stored': async (opened) => {
    const first = await add(opened, 'a', { inMs: HOUR });
    const again = await sample(opened, 'a', { inMs: 2 * HOUR, text: 'another' });
    expectSame('adding again', await opened.store.schedules.addSchedule(again), true);
    expectSame('adding again beyond the limit', await opened.store.schedules.addSchedule(again, 1), true);
    expectSame('the stored schedules', await opened.store.schedules.listSchedules(), [first]);
  },
  'schedules.addSchedule accepts schedules up to the limit of an owner, or of a conversation without an owner':
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
      expectSame('the accepted schedules', taken, [true, true, false, true, true, true, false, true]);
      const unlimited = await sample(opened, 'o4', { owner: OWNER });
      expectSame('without a limit', await schedules.addSchedule(unlimited, Number.POSITIVE_INFINITY), true);
      for (const id of ['o1', 'o4']) await schedules.cancelSchedule(id);
      expectSame('after the end of a schedule', await isTaken('o3', { owner: OWNER }), true);
    },
  'schedules.addSchedule respects the limit with several simultaneous callers': async (opened) => {
    const { store, other = store } = opened;
    const given = await Promise.all(
      Array.from({ length: 12 }, (_, index) => sample(opened, `s${index}`, { owner: OWNER })),
    );
    const taken = await Promise.all(
      given.map((schedule, index) => (index % 2 ? store : other).schedules.addSchedule(schedule, 5)),
    );
    expectSame('the number of accepted schedules', taken.filter(Boolean).length, 5);
    expectSame('the number of stored schedules', (await store.schedules.listSchedules()).length, 5);
  },
  'schedules.cancelSchedule cancels a schedule once': async (opened) => {
    const { schedules } = opened.store;
    await add(opened, 'a', {});
    expectSame('cancelling an unknown schedule', await schedules.cancelSchedule('A'), false);
    expectSame('cancelling', await schedules.cancelSchedule('a'), true);
    expectSame('cancelling again', await schedules.cancelSchedule('a'), false);
    expectSame('the stored schedules', await schedules.listSchedules(), []);
  },
  'schedules.dueSchedules returns the due schedules, and the time of the next': async (opened) => {
    const { schedules } = opened.store;
    const empty = await schedules.dueSchedules(10);
    expectSame('an empty store', [empty.due, empty.nextAt], [[], undefined]);
    await add(opened, 'b', { inMs: 2 * HOUR });
    await add(opened, 'a', { inMs: HOUR });
    await add(opened, 'c', { inMs: 24 * HOUR });
    const before = await schedules.dueSchedules(10);
    expectSame('the due schedules before their time', before.due, []);
    expectThat(
      (before.nextAt ?? 0) - before.now > HOUR - MINUTE,
      'nextAt is not the time of the first schedule',
    );
    await opened.advance(3 * HOUR);
    const after = await schedules.dueSchedules(10);
    expectSame('the due schedules', idsOf(after.due), ['a', 'b']);
    const wait = (after.nextAt ?? 0) - after.now;
    expectThat(wait > 20 * HOUR && wait <= 21 * HOUR, 'nextAt is not the time of the next schedule');
    const page = await schedules.dueSchedules(1);
    expectSame('the first page', idsOf(page.due), ['a']);
    expectThat(
      (page.nextAt ?? Number.NaN) <= page.now,
      'nextAt does not report that another schedule is due',
    );
  },
  'schedules.moveSchedule moves or ends a schedule that is still due at the given time': async (opened) => {
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
    expectSame('moving an unknown schedule', await schedules.moveSchedule({ id: 'x', dueAt, next }), false);
    expectSame('moving', await schedules.moveSchedule({ id: 'a', dueAt, next }), true);
    expectSame('moving again', await schedules.moveSchedule({ id: 'a', dueAt, next: next + 1 }), false);
    expectSame(
      'ending from another time',
      await schedules.moveSchedule({ id: 'b', dueAt: (due[1]?.dueAt ?? 0) + 1 }),
      false,
    );
    expectSame('ending', await schedules.moveSchedule({ id: 'b', dueAt: due[1]?.dueAt ?? 0 }), true);
    const [left, second] = await schedules.listSchedules();
    expectSame('the remaining schedules', [left?.id, left?.dueAt, second], ['a', next, undefined]);
  },
  'schedules.moveSchedule succeeds for one of several simultaneous callers': async (opened) => {
    const { store, other = store } = opened;
    const { dueAt } = await add(opened, 'a', {});
    const moved = await atOnce(10, [store, other], ({ schedules }, index) =>
      schedules.moveSchedule({ id: 'a', dueAt, next: dueAt + index + 1 }),
    );
    expectSame('the number of successful moves', moved.filter(Boolean).length, 1);
  },
};

function approval(id: string, more: Partial<StandingApproval> = {}): StandingApproval {
  const pattern = [['customer', '\u0000"\'; DROP TABLE approvals; --']];
  return { id, tool: 'pay', pattern, scope: 'user', owner: { user: 'é' }, createdAt: 5, ...more };
}

/** Cases of `ApprovalStore`. */
export const APPROVAL_CASES: OpenedCases<{ readonly store: StoreWithApprovals }> = {
  'approvals.findApproval returns the first valid approval of the ids, unchanged': async ({
    store: { approvals },
  }) => {
    const one = approval('one', { answeredBy: { clerk: 7 }, subject: 'r1' });
    await approvals.addApproval(one);
    await approvals.addApproval(approval('two'));
    expectSame('the first', await approvals.findApproval(['none', 'two', 'one']), approval('two'));
    expectSame('the other', await approvals.findApproval(['one']), one);
    expectSame('the approval without ids', await approvals.findApproval([]), undefined);
    expectSame('the approval of other ids', await approvals.findApproval(['ONE', 'one ', '']), undefined);
  },
  'approvals.addApproval replaces an approval with the same id, and listApprovals returns the newest first':
    async ({ store: { approvals } }) => {
      for (const id of ['a', 'b', 'c']) await approvals.addApproval(approval(id));
      const again = approval('a', { answeredBy: 'again' });
      await approvals.addApproval(again);
      const listed = await approvals.listApprovals();
      const ids = listed.map(({ id }) => id);
      expectSame('the ids', ids, ['a', 'c', 'b']);
      expectSame('the first', listed[0], again);
      expectSame('the length of a page', (await approvals.listApprovals(2)).length, 2);
    },
  'approvals.revokeApproval revokes an approval once': async ({ store: { approvals } }) => {
    await approvals.addApproval(approval('a'));
    expectSame('revoking an unknown approval', await approvals.revokeApproval('b'), false);
    expectSame('revoking', await approvals.revokeApproval('a'), true);
    expectSame('revoking again', await approvals.revokeApproval('a'), false);
    expectSame('the found approval', await approvals.findApproval(['a']), undefined);
  },
  'approvals that have expired are neither found, listed nor revoked': async ({ store: { approvals } }) => {
    const stays = approval('stays', { expiresAt: Number.MAX_SAFE_INTEGER });
    await approvals.addApproval(approval('past', { expiresAt: 0 }));
    await approvals.addApproval(stays);
    expectSame('the found approval', await approvals.findApproval(['past', 'stays']), stays);
    const ids = (await approvals.listApprovals()).map(({ id }) => id);
    expectSame('the ids', ids, ['stays']);
    expectSame('revoking an expired approval', await approvals.revokeApproval('past'), false);
  },
};

const KEY = { handle: 'h', runId: 'r' };
const OWNED = { ...KEY, owner: '{"user":"u1"}' };
const ODD = `${ODD_TEXT} ${'long '.repeat(20_000)}`;

/** Cases about large results. */
export const RESULT_CASES: OpenedCases<OpenedStore<RunStore & StoreWithResults>> = {
  'results.readResult returns a result unchanged, also through another connection': async ({
    store,
    other = store,
  }) => {
    await store.results.keepResult({ ...OWNED, text: ODD, lifeMs: MINUTE });
    await store.results.keepResult({ ...KEY, handle: 'e', text: '', lifeMs: MINUTE });
    expectSame('the text', await other.results.readResult(OWNED), ODD);
    expectSame('an empty text', await other.results.readResult({ ...KEY, handle: 'e' }), '');
  },
  'results.readResult returns undefined for another run, owner or handle': async ({ store: { results } }) => {
    await results.keepResult({ ...OWNED, text: 'owned', lifeMs: MINUTE });
    await results.keepResult({ ...KEY, handle: 'f', text: 'free', lifeMs: MINUTE });
    const foreign = [
      { ...OWNED, runId: 'other' },
      { ...KEY, owner: '{"user":"u2"}' },
      KEY,
      { ...OWNED, handle: 'f' },
      { ...OWNED, handle: 'H' },
    ];
    for (const key of foreign) expectSame(JSON.stringify(key), await results.readResult(key), undefined);
    await results.keepResult({ ...KEY, runId: 'other', text: 'theirs', lifeMs: MINUTE });
    expectSame('the first', await results.readResult(OWNED), 'owned');
  },
  'results.keepResult replaces the earlier text of the same run and handle': async ({
    store: { results },
  }) => {
    await results.keepResult({ ...KEY, text: 'one', lifeMs: MINUTE });
    await results.keepResult({ ...KEY, text: 'two', lifeMs: MINUTE });
    expectSame('the text', await results.readResult(KEY), 'two');
  },
  'results.keepResult with `replaces` replaces only that text, for one of simultaneous callers': async ({
    store,
    other = store,
  }) => {
    const keep = ({ results }: StoreWithResults, text: string, replaces: string | null) =>
      results.keepResult({ ...KEY, text, replaces, lifeMs: MINUTE });
    expectSame('the first text', await keep(store, 'one', null), true);
    expectSame('a second first text', await keep(store, 'other', null), false);
    expectSame('a text in place of another', await keep(store, 'other', 'two'), false);
    const both = await Promise.all([keep(store, 'left', 'one'), keep(other, 'right', 'one')]);
    expectSame('the number of successful replacements', both.filter(Boolean).length, 1);
    const text = await store.results.readResult(KEY);
    expectSame('the text', text, both[0] ? 'left' : 'right');
  },
  'results.removeExpiredResults removes expired results, which are not found before that either': async ({
    store: { results },
    advance,
  }) => {
    await results.keepResult({ ...KEY, handle: 'long', text: 'long', lifeMs: 60 * MINUTE });
    await results.keepResult({ ...KEY, handle: 'short', text: 'short', lifeMs: MINUTE });
    await advance(10 * MINUTE);
    expectSame('the expired result', await results.readResult({ ...KEY, handle: 'short' }), undefined);
    expectSame('the other result', await results.readResult({ ...KEY, handle: 'long' }), 'long');
    expectSame('the number of removed results', await results.removeExpiredResults(), 1);
    expectSame('the number of removed results in the second call', await results.removeExpiredResults(), 0);
    expectSame('the other result afterwards', await results.readResult({ ...KEY, handle: 'long' }), 'long');
  },
};
