import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  Conversations,
  type ConversationsOptions,
  defineTool,
  type LLMProvider,
  type Logger,
  type Schedule,
  ToolRegistry,
} from 'toolwright';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { Schedules, scheduleTools } from 'toolwright/toolbox/schedule';
import { killedPrograms } from './killed-programs.js';

const MINUTE = 60_000;
const NOW = Date.parse('2026-11-23T09:30:00Z');

function setUp(options: Partial<ConversationsOptions> = {}) {
  const clock = { now: NOW };
  const store = new MemoryRunStore({ now: () => clock.now });
  const config = { provider: new ScriptedProvider([]), model: 'm' };
  const conversations = new Conversations({ store, config, pollMs: 2, ...options });
  return { clock, store, conversations };
}

async function until(isSo: () => unknown): Promise<void> {
  for (let looks = 0; looks < 5000; looks += 1) {
    if (await isSo()) return;
    await pause(2);
  }
  throw new Error('It never came to that');
}

function scheduleAt(dueAt: number, more: Partial<Schedule> = {}): Schedule {
  const timing = { kind: 'once' as const };
  return { id: 's', conversationId: 'c', text: 'Look', timing, dueAt, createdAt: NOW, ...more };
}

async function turnsOf({ conversations }: MemoryRunStore, id: string): Promise<number | undefined> {
  return (await conversations.read(id))?.turns;
}

async function listed({ schedules }: Pick<MemoryRunStore, 'schedules'>): Promise<readonly Schedule[]> {
  return schedules.listSchedules();
}

const echo: LLMProvider = {
  chat: async ({ messages }) => ({
    content: `heard ${messages.at(-1)?.content}`,
    toolCalls: [],
    finishReason: 'stop',
  }),
};

describe('schedule_prompt', () => {
  test('submits its text as a turn of its owner when it is due', async () => {
    const clock = { now: NOW };
    const store = new MemoryRunStore({ now: () => clock.now });
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'schedule_prompt', arguments: { text: 'Look after the oven', inMinutes: 20 } }] },
      { content: 'I will.' },
      { toolCalls: [{ name: 'who', arguments: {} }] },
      { content: 'The cake is done.' },
    ]);
    const who = defineTool({
      name: 'who',
      description: 'Who am I?',
      execute: (_args, { owner }) => JSON.stringify(owner),
    });
    const config = { provider, model: 'm', tools: [...scheduleTools({ store }), who] };
    const conversations = new Conversations({ store, config, pollMs: 2 });
    await conversations.prompt('c', 'Remind me in 20 minutes', { owner: { user: 'u1' } });
    await conversations.idle('c');
    expect(store.schedules.listSchedules({ owner: { user: 'u1' } })).toMatchObject([
      { conversationId: 'c', text: 'Look after the oven', dueAt: NOW + 20 * MINUTE },
    ]);
    clock.now += 20 * MINUTE;
    await until(async () => (await turnsOf(store, 'c')) === 2);
    const view = await conversations.idle('c');
    const said = view?.messages.map(({ role, content }) => `${role}: ${content}`) ?? [];
    expect(said.slice(4).map((line) => line.replace(/sch_[\w-]{16}/, 'ID'))).toEqual([
      'user: [System: schedule:ID, due 2026-11-23T09:50:00.000Z] Look after the oven',
      'assistant: ',
      'tool: {"user":"u1"}',
      'assistant: The cake is done.',
    ]);
    expect(store.schedules.listSchedules()).toEqual([]);
    provider.assertUsedUp();
    await conversations.close();
  });
});

test.each([
  ['with inMinutes', { inMinutes: 1 }],
  ['with at', { at: '2026-11-23T09:31:00Z' }],
])(
  'schedule_prompt schedules nothing if its call is repeated after the prompt was submitted: %s',
  async (_, when) => {
    const { clock, store, conversations } = setUp({ config: { provider: echo, model: 'm' } });
    await conversations.prompt('c', 'Hi');
    await conversations.idle('c');
    const tools = new ToolRegistry().register(...scheduleTools({ store }));
    const call = () =>
      tools.executeWithContext(
        'schedule_prompt',
        { text: 'Look', ...when },
        { conversationId: 'c', callId: 'call_1' },
      );
    const first = await call();
    clock.now += MINUTE;
    await until(async () => (await turnsOf(store, 'c')) === 2);
    await conversations.idle('c');
    expect(await listed(store)).toEqual([]);
    const again = await call();
    expect([again.isError, again.forLLM.split('. ')[0]]).toEqual([false, first.forLLM.split('. ')[0]]);
    expect(await listed(store)).toEqual([]);
    // A custom key can be used again.
    const schedules = new Schedules({ store });
    const own = { conversationId: 'c', text: 'Look', inMinutes: 1, key: 'k' };
    await schedules.add(own);
    clock.now += MINUTE;
    await until(async () => (await turnsOf(store, 'c')) === 3);
    await until(async () => (await listed(store)).length === 0);
    expect(await schedules.add(own)).toMatchObject({ ok: true, schedule: { dueAt: clock.now + MINUTE } });
    expect(await listed(store)).toHaveLength(1);
    await conversations.close();
  },
);

describe('Conversations', () => {
  test('submits a missed time once, and continues with the next one', async () => {
    const { clock, store, conversations } = setUp({ config: { provider: echo, model: 'm' } });
    const timing = { kind: 'cron', cron: '0 9 * * MON-FRI', timeZone: 'Europe/Vienna' } as const;
    store.schedules.addSchedule(scheduleAt(Date.parse('2026-11-24T08:00:00Z'), { timing }));
    clock.now = Date.parse('2026-11-28T12:00:00Z');
    await until(async () => (await turnsOf(store, 'c')) === 1);
    await until(async () => (await listed(store))[0]?.dueAt !== Date.parse('2026-11-24T08:00:00Z'));
    expect(store.schedules.listSchedules()).toMatchObject([{ dueAt: Date.parse('2026-11-30T08:00:00Z') }]);
    const view = await conversations.idle('c');
    expect(view?.messages).toHaveLength(2);
    await conversations.close();
    expect(await turnsOf(store, 'c')).toBe(1);
  });

  test('submits no second prompt of a schedule while the previous one waits', async () => {
    const ask = defineTool({
      name: 'ask',
      description: 'Ask',
      execute: (_args, context) => context.ask({ message: 'Well?' }),
    });
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'ask', arguments: {} }] },
      { content: 'First' },
      { content: 'Second' },
    ]);
    const { clock, store, conversations } = setUp({ config: { provider, model: 'm', tools: [ask] } });
    const timing = { kind: 'every', everyMs: 10 * MINUTE } as const;
    store.schedules.addSchedule(scheduleAt(NOW + MINUTE, { timing }));
    for (let times = 1; times <= 5; times += 1) {
      clock.now += 10 * MINUTE;
      const isMoved = async () => ((await listed(store))[0]?.dueAt ?? 0) > clock.now;
      await until(isMoved);
      await until(async () => (await conversations.idle('c'))?.pending.length === 1);
    }
    const view = await conversations.snapshot('c');
    expect([view?.turns, view?.inbox.length]).toEqual([1, 1]);
    store.schedules.cancelSchedule('s');
    await conversations.answer('c', [{ id: view?.pending[0]?.id ?? '', value: 'yes' }]);
    expect((await conversations.idle('c'))?.messages.at(-1)?.content).toBe('Second');
    await conversations.close();
  });

  test('logs a prompt that it cannot submit, retries it, and submits the others', async () => {
    const errors: string[] = [];
    const logger: Logger = { debug() {}, info() {}, warn() {}, error: (text) => void errors.push(text) };
    const { clock, store, conversations } = setUp({ logger, config: { provider: echo, model: 'm' } });
    const enter = store.conversations.enter.bind(store.conversations);
    let isBroken = true;
    let failures = 0;
    Object.defineProperty(store.conversations, 'enter', {
      value: (entry: Parameters<typeof enter>[0]) => {
        if (!isBroken || entry.conversationId !== 'broken') return enter(entry);
        failures += 1;
        throw new Error('disk full');
      },
    });
    const many = Array.from({ length: 100 }, (_, index) => `b${index}`);
    for (const id of many) store.schedules.addSchedule(scheduleAt(NOW + 1, { id, conversationId: 'broken' }));
    clock.now += MINUTE;
    await until(() => failures >= 200);
    expect(errors).toEqual(['The prompt of a schedule could not be added to its conversation: disk full']);
    // Failing prompts do not delay the others, however many they are.
    store.schedules.addSchedule(scheduleAt(NOW + 2, { id: 'fine' }));
    await until(async () => (await turnsOf(store, 'c')) === 1);
    expect(await listed(store)).toHaveLength(100);
    isBroken = false;
    await until(async () => (await listed(store)).length === 0);
    await until(async () => (await turnsOf(store, 'broken')) === 100);
    await conversations.close();
  });

  test('submits other prompts even if more fail than it tries at a time', async () => {
    const { clock, store, conversations } = setUp({ config: { provider: echo, model: 'm' } });
    const enter = store.conversations.enter.bind(store.conversations);
    const failed = new Set<string>();
    Object.defineProperty(store.conversations, 'enter', {
      value: (entry: Parameters<typeof enter>[0]) => {
        if (entry.conversationId !== 'broken') return enter(entry);
        failed.add(entry.key);
        throw new Error('disk full');
      },
    });
    for (let index = 0; index < 1_100; index += 1)
      store.schedules.addSchedule(scheduleAt(NOW + 1, { id: `b${index}`, conversationId: 'broken' }));
    clock.now += MINUTE;
    await until(() => failed.size === 1_100);
    store.schedules.addSchedule(scheduleAt(NOW + 2, { id: 'fine' }));
    await until(async () => (await turnsOf(store, 'c')) === 1);
    await conversations.close();
  });

  test('ends a schedule that has no next time, and logs a warning', async () => {
    const warnings: string[] = [];
    const logger: Logger = { debug() {}, info() {}, warn: (text) => void warnings.push(text), error() {} };
    const { clock, store, conversations } = setUp({ logger, config: { provider: echo, model: 'm' } });
    const timing = { kind: 'cron', cron: 'what an older version took', timeZone: 'UTC' } as const;
    store.schedules.addSchedule(scheduleAt(NOW + 1, { timing }));
    clock.now += MINUTE;
    await until(async () => (await listed(store)).length === 0);
    expect(warnings).toEqual(["Schedule 's' ended: it has no further time"]);
    expect((await conversations.idle('c'))?.turns).toBe(1);
    await conversations.close();
  });

  test('submits nothing with takesTurns false or after close', async () => {
    const { clock, store, conversations } = setUp();
    const front = new Conversations({
      store,
      config: { provider: echo, model: 'm' },
      pollMs: 1,
      takesTurns: false,
    });
    await conversations.close();
    store.schedules.addSchedule(scheduleAt(NOW + 1));
    clock.now += MINUTE;
    await pause(20);
    expect(store.conversations.read('c')).toBeUndefined();
    await front.close();
  });
});

const { start, file } = killedPrograms('conversations', 'schedules.sqlite');

test('Conversations: two processes submit each due time once, even if they are killed at any moment', async () => {
  using store = new SqliteRunStore({ path: file() });
  const config = { provider: new ScriptedProvider([]), model: 'm' };
  const front = new Conversations({ store, config, takesTurns: false });
  const schedules = new Schedules({ store, maxSchedules: 100 });
  const keys: string[] = [];
  for (let index = 0; index < 60; index += 1) {
    const of = { conversationId: `c${index % 2}`, text: `do ${index}` };
    // Due within the two seconds during which processes are killed.
    const added = await schedules.add({ ...of, inMinutes: ((index + 1) * 35) / MINUTE });
    if (added.ok) keys.push(`schedule ${added.schedule.id} ${added.schedule.dueAt}`);
  }
  const steady = start();
  for (const pauseMs of fc.sample(fc.integer({ min: 0, max: 150 }), { numRuns: 6, seed: 18 })) {
    const worker = await start();
    await pause(pauseMs);
    await worker.kill();
  }
  await (await steady).kill();
  await start();
  await until(async () => (await listed(store)).length === 0);
  const views = await Promise.all(['c0', 'c1'].map((id) => front.idle(id)));
  const entered = views.flatMap((view) => view?.history.map(({ key }) => key) ?? []);
  expect(keys).toHaveLength(60);
  expect([...entered].sort()).toEqual([...keys].sort());
  await front.close();
});
