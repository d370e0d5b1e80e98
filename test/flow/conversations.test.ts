import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import {
  answerStoredRun,
  Conversations,
  type ConversationsConfig,
  type ConversationsOptions,
  cancelJob,
  defineTool,
  type JobWorker,
  type LLMProvider,
  type LLMRequest,
  MemoryJobEngine,
  type NumberedEvent,
  resumeStoredRun,
  runToolLoop,
  type ToolCall,
  type WorkOptions,
} from 'toolwright';
import { PostgresRunStore } from 'toolwright/postgres';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { TestSchemas } from '../parts/postgres/test-schema.js';
import { describePostgres } from '../services/services.js';
import { historyFaults } from './strict-history.js';

/** Follows the last user message: `call NAME …` makes calls, everything else is repeated. */
function echoProvider(asked: LLMRequest[] = []): LLMProvider {
  let calls = 0;
  return {
    async chat(request) {
      asked.push(request);
      const last = request.messages.at(-1);
      const text = String(last?.content);
      if (last?.role !== 'user' || !text.startsWith('call '))
        return { content: `heard: ${text}`, toolCalls: [], finishReason: 'stop' };
      const toolCalls: ToolCall[] = text
        .slice(5)
        .split(' ')
        .map((name) => {
          calls += 1;
          return { id: `call_${calls}`, name, arguments: {} };
        });
      return { content: '', toolCalls, finishReason: 'tool_calls' };
    },
  };
}

const SAY = { description: 'Says it', parameters: { type: 'object', properties: {} } } as const;

const folder = mkdtempSync(join(tmpdir(), 'toolwright-fleet-'));
let files = 0;
const opened: Conversations[] = [];
const stores: (SqliteRunStore | PostgresRunStore)[] = [];

afterEach(async () => {
  for (const conversations of opened.splice(0)) await conversations.close();
  for (const store of stores.splice(0)) await store.close();
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Several processes with the same conversations, each with its own connection. */
interface Fleet {
  openStore(): MemoryRunStore | SqliteRunStore | PostgresRunStore;
  open(options?: Partial<ConversationsOptions>, config?: Partial<ConversationsConfig>): Conversations;
}

function inMemory(): Fleet {
  const store = new MemoryRunStore();
  return { openStore: () => store, open: (options, config) => open({ store, ...options }, config) };
}

function inFile(): Fleet {
  files += 1;
  const path = join(folder, `${files}.sqlite`);
  const openStore = () => {
    const store = new SqliteRunStore({ path });
    stores.push(store);
    return store;
  };
  return { openStore, open: (options, config) => open({ store: openStore(), ...options }, config) };
}

function open(
  options: Pick<ConversationsOptions, 'store'> & Partial<ConversationsOptions>,
  config: Partial<ConversationsConfig> = {},
): Conversations {
  const conversations = new Conversations({
    config: { provider: echoProvider(), model: 'm', ...config },
    pollMs: 20,
    ...options,
  });
  opened.push(conversations);
  return conversations;
}

/** Reads until an event matches. */
async function readUntil(
  conversations: Conversations,
  id: string,
  isLast: (event: NumberedEvent['event']) => boolean,
  after = 0,
): Promise<readonly NumberedEvent[]> {
  const read: NumberedEvent[] = [];
  for await (const event of conversations.events(id, { after })) {
    read.push(event);
    if (isLast(event.event)) return read;
  }
  return read;
}

describe('Conversations over MemoryRunStore', () => describeFleet(inMemory));

describe('Conversations over SqliteRunStore', () => describeFleet(inFile));

describePostgres('Conversations over PostgresRunStore', (service) => {
  const schemas = new TestSchemas(service);
  const connectionString = service.url;
  const schema = schemas.newSchema();
  beforeAll(async () => {
    await using store = new PostgresRunStore({ connectionString, schema });
    await store.migrate();
  });
  beforeEach(() => schemas.empty(schema));
  describeFleet(() => {
    const openStore = () => {
      const store = new PostgresRunStore({ connectionString, schema });
      stores.push(store);
      return store;
    };
    return { openStore, open: (options, config) => open({ store: openStore(), ...options }, config) };
  });
});

function describeFleet(fleet: () => Fleet): void {
  test('a prompt runs a turn, and the view has the messages', async () => {
    const conversations = fleet().open();
    expect(await conversations.snapshot('c1')).toBeUndefined();
    expect(await conversations.prompt('c1', 'Hi')).toEqual({ position: 1, isNew: true });
    const view = await conversations.idle('c1');
    expect(view).toMatchObject({ status: 'idle', turns: 1, pending: [], inbox: [] });
    expect(view?.messages).toEqual([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'heard: Hi' },
    ]);
  });

  test('prompts with the same key run once, from any process', async () => {
    const { open } = fleet();
    const [one, other] = [open(), open()];
    const sent = await Promise.all(
      [one, other, one, other].map((to) => to.prompt('c1', 'Hi', { key: 'k1' })),
    );
    expect(sent.filter(({ isNew }) => isNew)).toHaveLength(1);
    await one.idle('c1');
    expect(await other.prompt('c1', 'Hi', { key: 'k1' })).toEqual({ position: 1, isNew: false });
    expect(await other.idle('c1')).toMatchObject({ turns: 1, messages: { length: 2 } });
  });

  test('`replaces` removes the history from an earlier turn on, and the model does not receive it', async () => {
    const asked: LLMRequest[] = [];
    const { open } = fleet();
    const [one, other] = [open({}, { provider: echoProvider(asked) }), open({ takesTurns: false })];
    for (const [key, text] of [
      ['k1', 'One'],
      ['k2', 'Two'],
      ['k3', 'Three'],
    ] as const)
      await one.prompt('c1', text, { key });
    const before = await one.idle('c1');
    expect(before?.history).toMatchObject([
      { number: 1, key: 'k1', begins: 0, firstEvent: 1 },
      { number: 2, key: 'k2', begins: 2 },
      { number: 3, key: 'k3', begins: 4 },
    ]);
    const again = { key: 'k4', replaces: 'k2' };
    expect(await other.prompt('c1', 'Two again', again)).toMatchObject({ isNew: true });
    const view = await one.idle('c1');
    expect(view?.messages.map(({ content }) => content)).toEqual([
      'One',
      'heard: One',
      'Two again',
      'heard: Two again',
    ]);
    expect(view?.history.map(({ key }) => key)).toEqual(['k1', 'k4']);
    expect(asked.at(-1)?.messages.map((message) => Object.keys(message))).toEqual([
      ['role', 'content'],
      ['role', 'content'],
      ['role', 'content'],
    ]);
    // firstEvent is the number of the turn-start event.
    for (const { firstEvent = 0, number } of view?.history ?? [])
      for await (const { event } of one.events('c1', { after: firstEvent - 1, upTo: firstEvent }))
        expect(event).toMatchObject({ type: 'turn-start', turn: { number } });
    expect(await other.prompt('c1', 'Two again', again)).toMatchObject({ isNew: false });
    await expect(other.prompt('c1', 'No', { replaces: 'k3' })).rejects.toMatchObject({ code: 526 });
    await expect(other.prompt('c2', 'No', { replaces: 'k1' })).rejects.toMatchObject({ code: 526 });
  });

  test('a turn whose `replaces` names a turn that is gone fails, and nothing is lost', async () => {
    const { open } = fleet();
    const front = open({ takesTurns: false });
    const worker = open();
    await front.prompt('c1', 'One', { key: 'k1' });
    await front.idle('c1');
    await worker.close();
    await front.prompt('c1', 'This', { key: 'k2', replaces: 'k1' });
    await front.prompt('c1', 'That', { key: 'k3', replaces: 'k1' });
    const view = await open().idle('c1');
    expect(view?.messages.map(({ content }) => content)).toEqual(['This', 'heard: This']);
    const ends: unknown[] = [];
    for await (const { event } of front.events('c1', { upTo: view?.lastEvent ?? 0 }))
      if (event.type === 'turn-end') ends.push([event.status, (event.error as { code?: number })?.code]);
    expect(ends).toEqual([
      ['completed', undefined],
      ['completed', undefined],
      ['failed', 526],
    ]);
  });

  test('a conversation has the owner of its first prompt, and `onlyOwner` refuses others', async () => {
    const { open } = fleet();
    const front = open({ takesTurns: false });
    const owner = { tenant: 't1', user: 'u1' };
    await front.prompt('c1', 'Hi', { owner, onlyOwner: true });
    for (const other of [{}, { owner: { user: 'u2' } }])
      await expect(front.prompt('c1', 'No', { ...other, onlyOwner: true })).rejects.toMatchObject({
        code: 523,
      });
    await front.prompt('c1', 'Yes', { owner: { user: 'u1', tenant: 't1' }, onlyOwner: true });
    await front.prompt('c1', 'As before', { owner: { user: 'u2' } });
    const view = await front.snapshot('c1');
    expect(view?.owner).toEqual(owner);
    expect(view?.inbox.map(({ content }) => content)).toMatchObject([
      { content: 'Hi' },
      { content: 'Yes' },
      { content: 'As before' },
    ]);
  });

  test('an owner that is undefined or empty is rejected, and no conversation is created', async () => {
    const conversations = fleet().open({ takesTurns: false });
    const fault = { option: 'owner', problem: 'owner is undefined' };
    const refused = { code: 521, faults: [expect.objectContaining(fault)] };
    await expect(conversations.prompt('c1', 'Hi', { owner: undefined })).rejects.toMatchObject(refused);
    await expect(conversations.answer('c1', [], { owner: undefined })).rejects.toMatchObject(refused);
    for (const owner of [null, { user: null }, { user: '' }]) {
      await expect(conversations.prompt('c1', 'Hi', { owner })).rejects.toMatchObject({ code: 521 });
      await expect(conversations.answer('c1', [], { owner })).rejects.toMatchObject({ code: 521 });
    }
    expect(await conversations.snapshot('c1')).toBeUndefined();
  });

  test('a turn answered in the store continues, and cannot be resumed outside its conversation', async () => {
    const { openStore, open } = fleet();
    const paid: string[] = [];
    const pay = defineTool({
      ...SAY,
      name: 'pay',
      approval: true,
      execute: () => `paid ${paid.push('once')}`,
    });
    // The answering process may share the store object, or have another connection.
    for (const [id, isShared] of [
      ['c1', true],
      ['c2', false],
    ] as const) {
      const store = openStore();
      const conversations = open({ store }, { tools: [pay] });
      await conversations.prompt(id, 'call pay');
      const { pending = [] } = (await conversations.idle(id)) ?? {};
      const answers = pending.map((wait) => ({ id: wait.id, approved: true }));
      const run = { store: isShared ? store : openStore(), runId: `${id}.1` };
      const resumed = resumeStoredRun({ provider: echoProvider(), tools: [pay] }, run, answers);
      await expect(resumed).rejects.toMatchObject({ name: 'RunClaimed', code: 517 });
      expect(await answerStoredRun(run, answers)).toEqual([]);
      const view = await conversations.idle(id);
      expect(view).toMatchObject({ status: 'idle', turns: 1 });
      expect(view?.messages.at(-1)?.content).toContain('paid');
    }
    expect(paid).toHaveLength(2);
  });

  test('ids and keys of 512 bytes are stored, with everything derived from them', async () => {
    const random = () => randomBytes(384).toString('base64url');
    const [id, key] = [random(), random()];
    const { openStore, open } = fleet();
    const later = defineTool({
      ...SAY,
      name: 'later',
      execute: (_args, context) => context.background(() => 'Done'),
    });
    const conversations = open(
      {},
      { tools: [later, defineTool({ ...SAY, name: 'pay', approval: true, execute: () => 'paid' })] },
    );
    await conversations.prompt(id, 'call later', { key });
    let ends = 0;
    await readUntil(conversations, id, ({ type }) => type === 'turn-end' && ++ends === 2);
    await conversations.prompt(id, 'call pay', { key: random() });
    const [wait] = (await conversations.idle(id))?.pending ?? [];
    await answerStoredRun({ store: openStore(), runId: `${id}.3` }, [{ id: wait?.id ?? '', approved: true }]);
    expect((await conversations.snapshot(id))?.history[0]?.key).toBe(key);
    expect(await conversations.prompt('語'.repeat(170), 'Hi', { key: 'ö'.repeat(256) })).toMatchObject({
      isNew: true,
    });
  });

  test('longer or invalid ids and keys are rejected at once by every method', async () => {
    const conversations = fleet().open({ takesTurns: false });
    for (const id of ['a'.repeat(513), '語'.repeat(171), '', 'a\u0000', 'a\ud800']) {
      const isRefused = (about: Promise<unknown>, option: string) =>
        expect(about).rejects.toMatchObject({ code: 521, faults: [expect.objectContaining({ option })] });
      await isRefused(conversations.prompt(id, 'Hi'), 'conversationId');
      await isRefused(conversations.answer(id, []), 'conversationId');
      await isRefused(conversations.abort(id), 'conversationId');
      await isRefused(conversations.snapshot(id), 'conversationId');
      await isRefused(conversations.idle(id), 'conversationId');
      expect(() => conversations.events(id)).toThrow('conversationId');
      await isRefused(conversations.prompt('c1', 'Hi', { key: id }), 'key');
      await isRefused(conversations.prompt('c1', 'Hi', { replaces: id }), 'replaces');
      await isRefused(conversations.answer('c1', [], { key: id }), 'key');
    }
    await expect(conversations.prompt('a'.repeat(2700), 'Hi')).rejects.toThrow(
      'conversationId has 2700 bytes',
    );
  });

  test('a run of another owner with the id of a turn is not shown', async () => {
    const store = new MemoryRunStore();
    const config = { provider: echoProvider(), model: 'm' };
    const victim = { owner: { user: 'u1' } };
    await runToolLoop(
      { ...config, store, checkpoint: 'step', runId: 'order.1' },
      [{ role: 'user', content: 'secret' }],
      victim,
    );
    const conversations = open({ store });
    await conversations.prompt('order', 'Hi', { owner: { user: 'u2' } });
    expect(await conversations.idle('order')).toMatchObject({ status: 'idle', messages: [] });
  });

  test('a run of the same owner with the id of a turn fails that turn, and the next turn runs', async () => {
    const store = new MemoryRunStore();
    const config = { provider: echoProvider(), model: 'm' };
    const owner = { user: 'u1' };
    const kept = { ...config, store, checkpoint: 'step', runId: 'order.1' } as const;
    const { content: before } = await runToolLoop(kept, [{ role: 'user', content: 'before' }], { owner });
    const conversations = open({ store });
    await conversations.prompt('order', 'Hi', { owner });
    await conversations.prompt('order', 'Hello', { owner });
    const view = await conversations.idle('order');
    expect(view?.messages.map(({ content }) => content)).toEqual(['Hello', expect.stringContaining('Hello')]);
    expect(JSON.stringify(view)).not.toContain(before);
    const events = await store.conversations.events({ conversationId: 'order', after: 0, limit: 100 });
    expect(events.find(({ event }) => event.type === 'turn-end')?.event).toMatchObject({
      status: 'failed',
      error: {
        code: 523,
        message: expect.stringContaining("in the store, 'order.1' is a run that is not a turn."),
      },
    });
  });

  test('turns run one at a time and in order, in any process', async () => {
    const { open } = fleet();
    let running = 0;
    let most = 0;
    const provider = echoProvider();
    const slow: LLMProvider = {
      async chat(request) {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        return provider.chat(request);
      },
    };
    const takers = [open({}, { provider: slow }), open({}, { provider: slow }), open({}, { provider: slow })];
    const said = Array.from({ length: 9 }, (_, index) => `number ${index}`);
    for (const [index, text] of said.entries()) await takers[index % 3]?.prompt('c1', text);
    const view = await takers[0]?.idle('c1');
    expect(view?.messages.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual(said);
    expect(most).toBe(1);
  });

  test('a process with takesTurns false prompts and reads the events of another process', async () => {
    const { open } = fleet();
    const front = open({ takesTurns: false });
    await front.prompt('c1', 'Hi');
    expect(await front.snapshot('c1')).toMatchObject({ status: 'running', inbox: [{ position: 1 }] });
    const reading = readUntil(front, 'c1', ({ type }) => type === 'turn-end');
    open();
    const events = await reading;
    expect(events.map(({ number }) => number)).toEqual(events.map((_, index) => index + 1));
    const types = events.map(({ event }) => event.type);
    expect(types[0]).toBe('turn-start');
    expect(types.at(-1)).toBe('turn-end');
    expect(types).toContain('text-delta');
    expect(events.at(-1)?.event).toMatchObject({
      status: 'completed',
      content: 'heard: Hi',
      turn: { number: 1 },
    });
  });

  test('a reader continues after the last event that it received', async () => {
    const { open } = fleet();
    const conversations = open();
    await conversations.prompt('c1', 'Hi');
    await conversations.idle('c1');
    const all = await readUntil(conversations, 'c1', ({ type }) => type === 'turn-end');
    for (const after of [0, 1, all.length - 1]) {
      const rest = await readUntil(
        open({ takesTurns: false }),
        'c1',
        ({ type }) => type === 'turn-end',
        after,
      );
      expect(rest).toEqual(all.slice(after));
    }
  });

  test('a turn waits for an approval, and any process can answer it', async () => {
    const { open } = fleet();
    const placed: string[] = [];
    const tools = [
      defineTool({ name: 'place', ...SAY, approval: true, execute: () => `${placed.push('once')} placed` }),
    ];
    const worker = open({}, { tools });
    const front = open({ takesTurns: false });
    await front.prompt('c1', 'call place', { owner: { user: 'u1' } });
    await front.prompt('c1', 'and then', { owner: { user: 'u1' } });
    const waiting = await front.idle('c1');
    expect(waiting).toMatchObject({ status: 'suspended', pending: [{ kind: 'approval', tool: 'place' }] });
    expect(placed).toEqual([]);
    const answers = (waiting?.pending ?? []).map(({ id }) => ({ id, approved: true }));
    await expect(front.answer('c1', answers)).rejects.toMatchObject({ name: 'RunNotAllowed' });
    await expect(front.answer('c1', answers, { owner: { user: 'u2' } })).rejects.toMatchObject({ code: 523 });
    const unknown = [{ id: 'approval_x', approved: true }];
    const owner = { user: 'u1' };
    await expect(front.answer('c1', unknown, { owner })).rejects.toMatchObject({ name: 'InvalidAnswer' });
    await front.answer('c1', answers, { owner });
    const view = await worker.idle('c1');
    expect(view).toMatchObject({ status: 'idle', turns: 2 });
    expect(placed).toEqual(['once']);
    expect(historyFaults(view?.messages ?? [])).toEqual([]);
    expect(view?.messages.map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'tool', 'assistant'],
      ...['user', 'assistant'],
    ]);
    await expect(front.answer('c1', answers, { owner })).rejects.toMatchObject({ name: 'InvalidAnswer' });
  });

  test('a snapshot has the prompt of the suspended turn, and its position in the history', async () => {
    const { open } = fleet();
    const place = defineTool({ name: 'place', ...SAY, approval: true, execute: () => 'placed' });
    const worker = open({}, { tools: [place] });
    const front = open({ takesTurns: false });
    await front.prompt('c1', 'Hi', { key: 'k1' });
    await front.prompt('c1', 'call place', { key: 'k2' });
    const waiting = await front.idle('c1');
    expect(waiting).toMatchObject({ status: 'suspended', turn: { number: 2, begins: 2 } });
    expect(waiting?.messages.map(({ role, content }) => `${role}: ${content}`)).toEqual([
      ...['user: Hi', 'assistant: heard: Hi', 'user: call place'],
    ]);
    expect(waiting?.history).toMatchObject([{ number: 1, begins: 0 }]);
    await front.answer('c1', [{ id: waiting?.pending[0]?.id ?? '', approved: true }]);
    const ended = await worker.idle('c1');
    expect(ended?.history).toMatchObject([{ begins: 0 }, { begins: 2 }]);
    expect(ended?.messages.filter(({ role }) => role === 'user')).toHaveLength(2);
  });

  test('only the first of two answers is taken, and the second is reported as refused', async () => {
    const { open } = fleet();
    const placed: string[] = [];
    const tools = [
      defineTool({ name: 'place', ...SAY, approval: true, execute: () => `${placed.push('once')} placed` }),
    ];
    const front = open({ takesTurns: false });
    const first = open({}, { tools });
    await front.prompt('c1', 'call place');
    const { pending = [] } = (await front.idle('c1')) ?? {};
    await first.close();
    const answers = pending.map(({ id }) => ({ id, approved: true }));
    await front.answer('c1', answers, { key: 'one' });
    await front.answer('c1', answers, { key: 'other' });
    open({}, { tools });
    const events = await readUntil(front, 'c1', ({ type }) => type === 'answers-refused');
    expect(placed).toEqual(['once']);
    expect(events.at(-1)?.event).toMatchObject({ key: 'other', error: { name: 'InvalidAnswer' } });
    expect(await front.idle('c1')).toMatchObject({ status: 'idle', messages: { length: 4 } });
  });

  test('an abort from another process ends the turn, and the next one starts', async () => {
    const { open } = fleet();
    const provider = echoProvider();
    const begun = Promise.withResolvers<void>();
    const hanging: LLMProvider = {
      chat(request) {
        if (request.messages.at(-1)?.content !== 'hang') return provider.chat(request);
        begun.resolve();
        return new Promise((_, reject) =>
          request.signal?.addEventListener('abort', () => reject(request.signal?.reason)),
        );
      },
    };
    open({}, { provider: hanging });
    const front = open({ takesTurns: false });
    expect(await front.abort('c1')).toBe(false);
    await front.prompt('c1', 'hang');
    await front.prompt('c1', 'Hi');
    await begun.promise;
    expect(await front.abort('c1')).toBe(true);
    const view = await front.idle('c1');
    expect(view?.messages.map(({ content }) => content)).toEqual(['hang', 'Hi', 'heard: Hi']);
    const events = await readUntil(front, 'c1', ({ type, content }) => type === 'turn-end' && content !== '');
    const ends = events.filter(({ event }) => event.type === 'turn-end').map(({ event }) => event.status);
    expect(ends).toEqual(['aborted', 'completed']);
  });

  test('an abort ends a suspended turn', async () => {
    const { open } = fleet();
    const tools = [defineTool({ name: 'place', ...SAY, approval: true, execute: () => 'placed' })];
    const conversations = open({}, { tools });
    await conversations.prompt('c1', 'call place');
    expect(await conversations.idle('c1')).toMatchObject({ status: 'suspended' });
    expect(await conversations.abort('c1')).toBe(true);
    const view = await conversations.idle('c1');
    expect(view).toMatchObject({ status: 'idle', pending: [] });
    expect(historyFaults(view?.messages ?? [])).toEqual([]);
    expect(view?.messages.at(-1)).toMatchObject({ role: 'tool' });
  });

  test('background work of a turn adds its result in one new turn', async () => {
    const { open } = fleet();
    const work = Promise.withResolvers<string>();
    const tools = [
      defineTool({
        name: 'report',
        ...SAY,
        execute: (_args, context) => context.background(() => work.promise, 'Started'),
      }),
    ];
    const conversations = open({}, { tools });
    await conversations.prompt('c1', 'call report');
    expect(await conversations.idle('c1')).toMatchObject({ turns: 1 });
    work.resolve('the figures');
    await readUntil(conversations, 'c1', ({ type, turn }) => type === 'turn-end' && isTurn(turn, 2));
    const view = await conversations.idle('c1');
    expect(view?.turns).toBe(2);
    expect(view?.messages.at(-2)).toEqual({ role: 'user', content: '[System: async:report] the figures' });
  });

  test('a job runs in any process, and adds its result in one new turn', async () => {
    const { open } = fleet();
    const engine = new MemoryJobEngine();
    const done: string[] = [];
    const tools = [
      defineTool({
        name: 'report',
        ...SAY,
        background: true,
        execute: (_args, { conversationId, idempotencyKey }) => {
          done.push(idempotencyKey);
          return `the figures of ${conversationId}`;
        },
      }),
    ];
    const workers = [open({ engine }, { tools }), open({ engine }, { tools })];
    const front = open({ takesTurns: false });
    await front.prompt('c1', 'call report', { owner: { user: 'u1' } });
    const events = await readUntil(front, 'c1', ({ type, turn }) => type === 'turn-end' && isTurn(turn, 2));
    expect(events.filter(({ event }) => event.type === 'turn-start')).toHaveLength(2);
    const view = await front.idle('c1');
    expect(view?.turns).toBe(2);
    expect(view?.messages.at(-2)?.content).toBe('[System: async:report] the figures of c1');
    expect(done).toHaveLength(1);
    for (const worker of workers) await worker.close();
    await engine.close();
  });

  test('a cancelled job adds its end to the conversation, even if nothing waits for the job', async () => {
    const { open, openStore } = fleet();
    const engine = new MemoryJobEngine();
    const store = openStore();
    const conversations = open({}, {});
    await conversations.prompt('c1', 'Hi');
    await conversations.idle('c1');
    const id = 'task_1';
    const job = {
      id,
      tool: 'report',
      arguments: {},
      scope: { conversationId: 'c1' },
      fingerprint: 'f',
      idempotencyKey: '1',
    };
    await store.jobs.addJob({ ...job, callId: 'call_1', runId: 'c1.1' }, {});
    expect(await cancelJob(id, { engine, store, reason: 'the shop is closed' })).toBe(true);
    expect(await cancelJob(id, { engine, store })).toBe(false);
    await readUntil(conversations, 'c1', ({ type, turn }) => type === 'turn-end' && isTurn(turn, 2));
    const view = await conversations.idle('c1');
    expect(view?.turns).toBe(2);
    expect(view?.messages.at(-2)?.content).toContain('[System: async:report]');
    expect(view?.messages.at(-2)?.content).toContain('the shop is closed');
    await engine.close();
  });

  test('jobs run as soon as the engine can be reached', async () => {
    const { open } = fleet();
    const engine = new LateEngine(2);
    const tools = [defineTool({ name: 'report', ...SAY, background: true, execute: () => 'the figures' })];
    const conversations = open({ engine }, { tools });
    await conversations.prompt('c1', 'call report');
    await readUntil(conversations, 'c1', ({ type, turn }) => type === 'turn-end' && isTurn(turn, 2));
    expect(engine.refusals).toBe(0);
    await conversations.close();
    const closedBefore = open({ engine: new LateEngine(Number.POSITIVE_INFINITY) }, { tools });
    await closedBefore.close();
    await engine.close();
  });

  test('`close` waits for the running turn, and leaves the others to another process', async () => {
    const { open } = fleet();
    const provider = echoProvider();
    const begun = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const waiting: LLMProvider = {
      async chat(request) {
        begun.resolve();
        await gate.promise;
        return provider.chat(request);
      },
    };
    const first = open({}, { provider: waiting });
    await first.prompt('c1', 'one');
    await first.prompt('c1', 'two');
    await begun.promise;
    const closed = first.close();
    gate.resolve();
    await closed;
    const front = open({ takesTurns: false });
    expect(await front.snapshot('c1')).toMatchObject({
      status: 'running',
      turns: 1,
      inbox: [{ position: 2 }],
    });
    open();
    expect(await front.idle('c1')).toMatchObject({ turns: 2, messages: { length: 4 } });
  });

  test('a finished conversation is not due, even if its process was closed during the turn', async () => {
    const { open, openStore } = fleet();
    const provider = echoProvider();
    const begun = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const waiting: LLMProvider = {
      async chat(request) {
        begun.resolve();
        await gate.promise;
        return provider.chat(request);
      },
    };
    const conversations = open({}, { provider: waiting });
    await conversations.prompt('c1', 'one');
    await begun.promise;
    const closed = conversations.close();
    gate.resolve();
    await closed;
    expect(await openStore().conversations.due(10)).toEqual([]);
  });

  test('close ends the readers here, after the stored events, while the turn continues in another process', async () => {
    const { open } = fleet();
    const begun = Promise.withResolvers<void>();
    const stuck: LLMProvider = {
      chat: ({ signal }) => {
        begun.resolve();
        return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
      },
    };
    const worker = open({}, { provider: stuck });
    const front = open({ takesTurns: false });
    await front.prompt('c1', 'one');
    await begun.promise;
    const [read, readByWorker] = [front, worker].map((reader) => readUntil(reader, 'c1', () => false));
    const idle = front.idle('c1');
    idle.catch(() => {});
    await front.close();
    expect((await read)?.map(({ event }) => event.type)).toContain('turn-start');
    await expect(idle).rejects.toMatchObject({ name: 'RunClaimed' });
    expect((await readUntil(front, 'c1', () => false)).length).toBeGreaterThan(0);
    expect(await worker.snapshot('c1')).toMatchObject({ status: 'running' });
    await worker.close({ timeoutMs: 20 });
    expect((await readByWorker)?.map(({ event }) => event.type)).not.toContain('turn-end');
  });

  test('conversations run in parallel, up to maxConcurrency', async () => {
    const { open } = fleet();
    const provider = echoProvider();
    let running = 0;
    let most = 0;
    const full = Promise.withResolvers<void>();
    const counting: LLMProvider = {
      async chat(request) {
        running += 1;
        most = Math.max(most, running);
        if (running === 3) full.resolve();
        await full.promise;
        running -= 1;
        return provider.chat(request);
      },
    };
    const conversations = open({ maxConcurrency: 3 }, { provider: counting });
    const ids = Array.from({ length: 10 }, (_, index) => `c${index}`);
    for (const id of ids) await conversations.prompt(id, id);
    for (const id of ids) expect(await conversations.idle(id)).toMatchObject({ messages: { length: 2 } });
    expect(most).toBe(3);
  });

  test('a turn never runs in the AsyncLocalStorage of the request that triggered it', async () => {
    const requests = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const provider: LLMProvider = {
      async chat() {
        seen.push(requests.getStore());
        return { content: 'ok', toolCalls: [], finishReason: 'stop' };
      },
    };
    const conversations = fleet().open({ maxConcurrency: 1 }, { provider });
    const ids = ['alice', 'bob', 'alice'];
    for (const id of ids) await requests.run(id, () => conversations.prompt(id, 'Hi'));
    for (const id of ids) await conversations.idle(id);
    expect(seen).toEqual([undefined, undefined, undefined]);
  });

  test('`idle` does not read the conversation again for the streamed text of a turn', async () => {
    const { openStore } = fleet();
    const store = openStore();
    const read = jest.spyOn(store.conversations, 'read');
    const provider: LLMProvider = {
      ...echoProvider(),
      async *stream() {
        for (let part = 0; part < 100; part += 1) {
          yield { type: 'text-delta', text: `${part} ` };
          await pause(1);
        }
        yield { type: 'response', response: { content: 'ok', toolCalls: [], finishReason: 'stop' } };
      },
    };
    const conversations = open({ store }, { provider });
    await conversations.prompt('c1', 'Hi');
    expect(await conversations.idle('c1')).toMatchObject({ status: 'idle', turns: 1 });
    expect(read.mock.calls.length).toBeLessThan(20);
  });

  test('config and scope may depend on the conversation and its owner', async () => {
    const { open } = fleet();
    const asked: LLMRequest[] = [];
    const seen: unknown[] = [];
    const tools = [
      defineTool({
        name: 'who',
        ...SAY,
        execute: (_args, { data, conversationId }) => seen.push({ data, conversationId }),
      }),
    ];
    const conversations = open({
      config: ({ conversationId }) => ({
        provider: echoProvider(asked),
        model: 'm',
        tools,
        systemPrompt: `You serve ${conversationId}.`,
      }),
      scope: ({ owner }) => ({ data: { owner } }),
    });
    await conversations.prompt('c1', 'call who', { owner: { user: 'u1' } });
    const view = await conversations.idle('c1');
    expect(seen).toEqual([{ data: { owner: { user: 'u1' } }, conversationId: 'c1' }]);
    expect(asked[0]?.messages[0]).toEqual({ role: 'system', content: 'You serve c1.' });
    expect(view?.messages[0]).toEqual({ role: 'user', content: 'call who' });
  });
}

function isTurn(turn: unknown, number: number): boolean {
  return (turn as { readonly number?: unknown })?.number === number;
}

/** An engine that refuses the first connections. */
class LateEngine extends MemoryJobEngine {
  refusals: number;

  constructor(refusals: number) {
    super();
    this.refusals = refusals;
  }

  override async work(options: WorkOptions): Promise<JobWorker> {
    if (this.refusals === 0) return super.work(options);
    this.refusals -= 1;
    throw new Error('connect ECONNREFUSED');
  }
}
