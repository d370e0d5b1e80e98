import { describe, expect, test } from '@jest/globals';
import { type CallScope, discoverTools, ToolRegistry } from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { Schedules, type SchedulesOptions, ScheduleTools, scheduleTools } from 'toolwright/toolbox/schedule';

/** A Monday, 10:30 in Vienna. */
const NOW = Date.parse('2026-11-23T09:30:00Z');
const MINUTE = 60_000;

function setUp(options: Partial<SchedulesOptions> = {}) {
  const clock = { now: NOW };
  const store = new MemoryRunStore({ now: () => clock.now });
  for (const conversationId of ['c', 'd', 'e']) {
    const content = { kind: 'prompt', content: 'Hi' } as const;
    store.conversations.enter({ conversationId, key: 'k', content });
  }
  const tools = new ToolRegistry().register(
    ...scheduleTools({ store, timeZone: 'Europe/Vienna', ...options }),
  );
  const call = async (name: string, args: object, scope: CallScope = {}) => {
    const { forLLM, isError } = await tools.executeWithContext(name, args, { conversationId: 'c', ...scope });
    return { text: forLLM, isError };
  };
  const schedule = (when: object, scope?: CallScope) =>
    call('schedule_prompt', { text: 'Look', ...when }, scope);
  const dueAt = async () => new Date((await store.schedules.listSchedules())[0]?.dueAt ?? 0).toISOString();
  return { clock, store, tools, call, schedule, dueAt };
}

describe('schedule_prompt', () => {
  test.each([
    [{ at: '2026-11-24T09:00' }, '2026-11-24T08:00:00.000Z', 'Tue 2026-11-24 09:00 Europe/Vienna'],
    [{ at: '2026-11-24 09:00:30' }, '2026-11-24T08:00:30.000Z', 'Tue 2026-11-24 09:00 Europe/Vienna'],
    [{ at: '2026-11-24T09:00Z' }, '2026-11-24T09:00:00.000Z', 'Tue 2026-11-24 10:00 Europe/Vienna'],
    [{ at: '2026-11-24T09:00 Z' }, '2026-11-24T09:00:00.000Z', 'Tue 2026-11-24 10:00 Europe/Vienna'],
    [{ at: '2026-11-24T09:00:00.5-05:00' }, '2026-11-24T14:00:00.500Z', 'Tue 2026-11-24 15:00 Europe/Vienna'],
    [
      { at: '2026-11-24T09:00', timeZone: 'Asia/Tokyo' },
      '2026-11-24T00:00:00.000Z',
      'Tue 2026-11-24 09:00 Asia/Tokyo',
    ],
    [{ inMinutes: 20 }, '2026-11-23T09:50:00.000Z', 'Mon 2026-11-23 10:50 Europe/Vienna'],
    [
      { everyMinutes: 90 },
      '2026-11-23T11:00:00.000Z',
      'Mon 2026-11-23 12:00 Europe/Vienna, then every 90 minutes',
    ],
    [
      { cron: '0 9 * * MON-FRI' },
      '2026-11-24T08:00:00.000Z',
      'Tue 2026-11-24 09:00 Europe/Vienna, then by cron 0 9 * * MON-FRI',
    ],
    [
      { cron: '@daily', timeZone: 'UTC' },
      '2026-11-24T00:00:00.000Z',
      'Tue 2026-11-24 00:00 UTC, then by cron @daily',
    ],
  ])('%j is due at %s', async (when, due, told) => {
    const { schedule, dueAt } = setUp();
    const { text, isError } = await schedule(when);
    expect(isError).toBe(false);
    expect(text).toMatch(/^Scheduled as sch_[\w-]{16}: /);
    expect(text).toContain(`: ${told}. It is now Mon 2026-11-23 `);
    expect(await dueAt()).toBe(due);
  });

  test.each([
    [{ text: ' ', inMinutes: 5 }, 'its text is empty'],
    [{ at: ' ' }, "' ' is not a time"],
    [{ cron: '' }, "'' is not a cron expression"],
    [{ cron: '0 9 * * *', timeZone: ' ' }, "' ' is not a time zone"],
    [{}, 'give exactly one of at, inMinutes, everyMinutes and cron'],
    [{ at: '2026-11-24T09:00', cron: '@daily' }, 'give exactly one of'],
    [{ at: 'tomorrow' }, "'tomorrow' is not a time: write it as 2030-05-17T09:00"],
    [{ at: '2026-11-31T09:00' }, "'2026-11-31T09:00' is not a time"],
    [{ at: '2026-11-30T24:00' }, "'2026-11-30T24:00' is not a time"],
    [{ at: '2026-11-23T10:29' }, '2026-11-23T09:29:00.000Z is not in the future'],
    [
      { at: '2026-11-24T09:00', timeZone: 'Vienna' },
      "'Vienna' is not a time zone: write it as Europe/Vienna",
    ],
    [{ cron: '0 9 * * *', timeZone: '../x' }, "'../x' is not a time zone"],
    [{ cron: '0 9 * *' }, "'0 9 * *' is not a cron expression"],
    [{ cron: '0 25 * * *' }, 'Invalid value for hour: 25'],
    [{ cron: '* * * * * *' }, 'requires exactly 5 parts'],
    [{ cron: '@reboot' }, '@reboot is not supported'],
    [{ cron: '2026-12-01T09:00:00' }, "'2026-12-01T09:00:00' is a time, not a cron expression"],
    [{ cron: '0 0 31 2 *' }, "'0 0 31 2 *' never occurs"],
    [{ cron: '*/2 * * * *' }, "'*/2 * * * *' occurs too often: there must be 5 minutes"],
    [{ cron: '0,1 9 1 * *' }, 'occurs too often'],
    [{ everyMinutes: 4 }, 'every 4 minutes is too often: there must be 5 minutes between two times'],
  ])('%j is reported as an error, and nothing is stored', async (when, told) => {
    const { schedule, store } = setUp();
    const { text, isError } = await schedule(when);
    expect({ text, isError }).toEqual({ text: expect.stringContaining(told), isError: true });
    expect(text).toMatch(/^Nothing was scheduled: .*\.$/s);
    expect(store.schedules.listSchedules()).toEqual([]);
  });

  test('accepts null for options that are left out, as strict providers send it', async () => {
    const { schedule } = setUp();
    const when = { at: null, inMinutes: 20, everyMinutes: null, cron: null, timeZone: null };
    expect((await schedule(when)).isError).toBe(false);
  });

  test('the limits come from the options', async () => {
    const { schedule } = setUp({ maxSchedules: 2, minIntervalMs: MINUTE });
    expect((await schedule({ everyMinutes: 1 })).isError).toBe(false);
    expect((await schedule({ cron: '* * * * *' })).isError).toBe(false);
    expect(await schedule({ inMinutes: 1 })).toEqual({
      text: 'Nothing was scheduled: there are already 2 schedules, which is the limit: cancel one of them first.',
      isError: true,
    });
    const owner = { user: 'u1' };
    const told = [];
    for (const conversationId of ['c', 'd', 'e'])
      told.push((await schedule({ inMinutes: 1 }, { owner, conversationId })).isError);
    expect(told).toEqual([false, false, true]);
  });

  test('a repeated call schedules only once', async () => {
    const { schedule, store, clock } = setUp();
    await schedule({ inMinutes: 5 }, { callId: 'call_1' });
    clock.now += MINUTE;
    await schedule({ inMinutes: 5 }, { callId: 'call_1' });
    await schedule({ inMinutes: 5 }, { callId: 'call_1', conversationId: 'd' });
    const kept = await store.schedules.listSchedules();
    expect(kept.map(({ conversationId, dueAt }) => [conversationId, dueAt])).toEqual([
      ['c', NOW + 5 * MINUTE],
      ['d', NOW + 6 * MINUTE],
    ]);
  });

  test('nothing can be scheduled outside of a conversation', async () => {
    const { call } = setUp();
    for (const [name, args] of [
      ['schedule_prompt', { text: 'x', inMinutes: 1 }],
      ['list_schedules', {}],
      ['cancel_schedule', { id: 'x' }],
    ] as const) {
      const { text, isError } = await call(name, args, { conversationId: undefined });
      expect({ text, isError }).toEqual({
        text: 'This call does not belong to a conversation, so there are no schedules.',
        isError: true,
      });
    }
  });
});

test('schedule_prompt refuses a conversation that is not in the store', async () => {
  const { schedule, store } = setUp();
  expect(await schedule({ inMinutes: 5 }, { conversationId: 'of this process' })).toEqual({
    text: 'Nothing was scheduled: this conversation is not in the store of schedules, so no message could be delivered to it.',
    isError: true,
  });
  expect(store.schedules.listSchedules()).toEqual([]);
});

describe('list_schedules and cancel_schedule', () => {
  test('access only schedules of the same conversation and owner', async () => {
    const { schedule, call } = setUp();
    const owner = { user: 'u1' };
    await schedule({ cron: '0 9 * * *', timeZone: 'Asia/Tokyo' }, { owner });
    await schedule({ inMinutes: 30 }, { owner });
    await schedule({ inMinutes: 5 }, { owner: { user: 'u2' } });
    await schedule({ inMinutes: 5 }, { owner, conversationId: 'd' });
    await schedule({ inMinutes: 5 });
    const { text } = await call('list_schedules', {}, { owner });
    expect(text.replace(/sch_[\w-]{16}/g, 'ID').split('\n')).toEqual([
      'Scheduled:',
      '- ID: Mon 2026-11-23 11:00 Europe/Vienna, once: Look',
      '- ID: Tue 2026-11-24 09:00 Asia/Tokyo, by cron 0 9 * * *: Look',
    ]);
    const [id = ''] = /sch_[\w-]{16}/.exec(text) ?? [];
    for (const scope of [{}, { owner: { user: 'u2' } }, { owner, conversationId: 'd' }])
      expect((await call('cancel_schedule', { id }, scope)).isError).toBe(true);
    expect(await call('cancel_schedule', { id }, { owner })).toEqual({
      text: `${id} was cancelled.`,
      isError: false,
    });
    const again = await call('cancel_schedule', { id }, { owner });
    expect(again.isError).toBe(true);
    expect(again.text).toContain(`There is no schedule '${id}'`);
    expect(again.text).toContain('by cron 0 9 * * *: Look');
    expect((await call('list_schedules', {}, { conversationId: 'none' })).text).toBe('Nothing is scheduled.');
  });
});

describe('Schedules', () => {
  test('can be injected into ScheduleTools and called by the application', async () => {
    const { store } = setUp();
    const schedules = new Schedules({ store });
    const container = { resolve: <Instance>() => new ScheduleTools(schedules) as Instance };
    const tools = new ToolRegistry().register(...discoverTools({ toolsets: [ScheduleTools], container }));
    const of = { conversationId: 'c', owner: { user: 'u1' } };
    const added = await schedules.add({ ...of, text: 'Report', cron: '0 9 * * *', key: 'report' });
    expect(await schedules.add({ ...of, text: 'Report', cron: '0 9 * * *', key: 'report' })).toEqual(added);
    const changed = await schedules.add({ ...of, text: 'Other', cron: '0 10 * * *', key: 'report' });
    expect(changed).toEqual(added);
    const [kept] = await schedules.list(of);
    expect(added).toEqual({ ok: true, schedule: kept, now: NOW });
    const listed = await tools.executeWithContext('list_schedules', {}, of);
    expect(listed.forLLM).toBe(
      `Scheduled:\n- ${kept?.id}: Tue 2026-11-24 09:00 UTC, by cron 0 9 * * *: Report`,
    );
    expect(await schedules.cancel(kept?.id ?? '', { conversationId: 'c' })).toBe(false);
    expect(await schedules.cancel(kept?.id ?? '', of)).toBe(true);
  });

  test('throws for invalid options and arguments', async () => {
    const { store } = setUp();
    expect(() => new Schedules({} as never)).toThrow(expect.objectContaining({ code: 521 }));
    expect(() => new Schedules({ store: { schedules: {} } as never })).toThrow('supports schedules');
    expect(() => new Schedules({ store, timeZone: 'Vienna' })).toThrow("'Europe/Vienna', or 'UTC'");
    expect(() => new Schedules({ store, maxSchedules: 0 })).toThrow('maxSchedules');
    const schedules = new Schedules({ store });
    const nobodys = { conversationId: 'c', owner: undefined };
    await expect(schedules.list(nobodys)).rejects.toThrow('owner is undefined');
    await expect(schedules.cancel('s', nobodys)).rejects.toMatchObject({ code: 521 });
    const strangers = { conversationId: 'c', owner: { user: null }, text: 'Look', inMinutes: 5 };
    await expect(schedules.add(strangers)).rejects.toMatchObject({ faults: [{ option: 'owner' }] });
    const wrong = { conversationId: 'a\u0000', text: 5, in: 5 } as never;
    await expect(schedules.add(wrong)).rejects.toMatchObject({
      code: 521,
      faults: ['conversationId', 'text', 'in'].map((option) => ({ option })),
    });
  });
});
