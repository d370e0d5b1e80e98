import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import {
  Conversations,
  type ConversationsOptions,
  type ConversationView,
  cancelRun,
  defineTool,
  type LLMProvider,
  type ToolAnnotations,
  type ToolContext,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { seenBy } from './dying-store.js';
import { historyFaults } from './strict-history.js';

const LEASE = 60;
const NEVER = new Promise<never>(() => {});

/** Calls `pay` for a prompt, and repeats tool results and completions. */
const provider: LLMProvider = {
  async chat({ messages }) {
    const last = messages.at(-1);
    if (last?.role === 'tool' || String(last?.content).startsWith('[System'))
      return { content: `heard: ${last?.content}`, toolCalls: [], finishReason: 'stop' };
    return {
      content: '',
      toolCalls: [{ id: 'call_1', name: 'pay', arguments: {} }],
      finishReason: 'tool_calls',
    };
  },
};

/** The options of one process. */
interface Start extends Partial<Pick<ConversationsOptions, 'onUnknown' | 'config' | 'store'>> {
  readonly annotations?: ToolAnnotations;
  /** The method of the store before which the process dies. */
  readonly diesBefore?: string;
}

/** Processes with one store that die, or hang until another one takes over. */
class Fleet {
  now = 1_700_000_000_000;
  readonly store = new MemoryRunStore({ now: () => this.now });
  readonly payments: ToolContext[] = [];
  completions = 0;
  readonly front = this.#conversations(this.store, { takesTurns: false });

  /** Starts a process whose payments return the result of `pay`. */
  start(pay: (context: ToolContext) => unknown, { annotations = {}, diesBefore, ...options }: Start = {}) {
    let isAlive = true;
    const tool = defineTool({
      name: 'pay',
      description: 'Pays',
      annotations,
      execute: (_args, context) => {
        this.payments.push(context);
        return pay(context);
      },
    });
    const die = (): void => {
      isAlive = false;
      this.now += LEASE;
    };
    const own = seenBy(this.store, () => isAlive);
    const store = diesBefore === undefined ? own : before(own, diesBefore, die);
    const conversations = this.#conversations(store, {
      config: {
        ...{ provider, model: 'm', tools: [tool], toolTimeoutMs: Number.POSITIVE_INFINITY },
        onAsyncResult: () => {
          this.completions += 1;
        },
      },
      ...options,
    });
    return { conversations, die };
  }

  paid(times: number): Promise<unknown> {
    return insist(() => this.payments.length >= times || undefined);
  }

  /** The pending outcome of a payment, once it differs from the one before. */
  asked(before?: string): Promise<ConversationView['pending'][number]> {
    return insist(async () => {
      const [pending] = (await this.front.snapshot('c1'))?.pending ?? [];
      return pending?.id === before ? undefined : pending;
    });
  }

  async events(): Promise<readonly unknown[]> {
    const events = await this.store.conversations.events({ conversationId: 'c1', after: 0, limit: 1000 });
    return events.map(({ event }) => event.type);
  }

  #conversations(store: MemoryRunStore, options: Partial<ConversationsOptions>): Conversations {
    const config = { provider, model: 'm' };
    return new Conversations({ store, config, leaseMs: LEASE, pollMs: 5, ...options });
  }
}

/** A store that runs a function right before a method is called. */
function before(store: MemoryRunStore, method: string, happens: () => void): MemoryRunStore {
  const watched = <Target extends object>(target: Target): Target =>
    new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value === 'object' && value !== null) return watched(value);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if (name === method) happens();
          return value.apply(target, args);
        };
      },
    });
  return watched(store);
}

/** Polls until a value is found. */
async function insist<Found>(look: () => Found | undefined | Promise<Found | undefined>): Promise<Found> {
  for (let looks = 0; looks < 5000; looks += 1) {
    const found = await look();
    if (found !== undefined) return found;
    await pause(2);
  }
  throw new Error('It never came to that');
}

test('Conversations repeat a call once per not-done answer, even if the process dies again', async () => {
  const fleet = new Fleet();
  const { front, payments } = fleet;
  await front.prompt('c1', 'Pay');
  const first = fleet.start(() => NEVER);
  await fleet.paid(1);
  first.die();
  const second = fleet.start(() => NEVER);
  const { id } = await fleet.asked();
  await front.answer('c1', [{ id, outcome: 'not-done' }]);
  await fleet.paid(2);
  second.die();
  const third = fleet.start(() => 'paid');
  const again = await fleet.asked(id);
  expect(payments).toHaveLength(2);
  await expect(front.answer('c1', [{ id, outcome: 'not-done' }])).rejects.toMatchObject({ code: 514 });
  await front.answer('c1', [{ id: again.id, outcome: 'not-done' }]);
  const view = await front.idle('c1');
  expect(view?.messages.at(-1)).toMatchObject({ content: 'heard: paid' });
  expect(new Set(payments.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
  expect(payments).toHaveLength(3);
  const told = (await fleet.events()).filter((type) => String(type).startsWith('answers-'));
  expect(told).toEqual(['answers-taken', 'answers-taken']);
  await third.conversations.close();
});

test('Conversations do not report used answers as refused after another process took over', async () => {
  const fleet = new Fleet();
  const { front, store } = fleet;
  await front.prompt('c1', 'Pay');
  const first = fleet.start(() => NEVER);
  await fleet.paid(1);
  first.die();
  const second = fleet.start(() => NEVER);
  const { id } = await fleet.asked();
  await front.answer('c1', [{ id, outcome: 'not-done' }]);
  await fleet.paid(2);
  second.die();
  // It dies when the run is suspended again, before the conversation is updated.
  fleet.start(() => NEVER, { diesBefore: 'commit' });
  await fleet.asked(id);
  await insist(async () => ((await store.conversations.read('c1'))?.isHeld ? undefined : true));
  const fourth = fleet.start(() => 'paid');
  const told = async () => (await fleet.events()).filter((type) => String(type).startsWith('answers-'));
  await insist(async () => ((await store.conversations.read('c1'))?.inbox.length === 0 ? true : undefined));
  expect(await told()).toEqual(['answers-taken']);
  await fourth.conversations.close();
});

test('Conversations continue a lost turn in another process, and do not report it as aborted', async () => {
  const fleet = new Fleet();
  const { front, store } = fleet;
  await front.prompt('c1', 'Pay');
  const hanging = fleet.start(
    ({ signal }) => new Promise((resolve) => signal?.addEventListener('abort', resolve)),
    {
      annotations: { idempotent: true },
    },
  );
  await fleet.paid(1);
  fleet.now += LEASE;
  const other = { conversationId: 'c1', claim: 'somebody else', leaseMs: LEASE };
  expect(store.conversations.hold(other)).toMatchObject({ status: 'held' });
  await hanging.conversations.close();
  expect(store.read('c1.1')?.status).toBe('running');
  fleet.now += LEASE;
  const next = fleet.start(() => 'paid', { annotations: { idempotent: true } });
  const view = await front.idle('c1');
  expect(view?.messages.at(-1)).toMatchObject({ content: 'heard: paid' });
  expect(historyFaults(view?.messages ?? [])).toEqual([]);
  expect((await fleet.events()).filter((type) => type === 'turn-end')).toHaveLength(1);
  await next.conversations.close();
});

/** Prompts for a payment; the process dies during the request. */
async function dieInRequest(fleet: Fleet): Promise<void> {
  await fleet.front.prompt('c1', 'Pay');
  const hanging = fleet.start(() => NEVER, { config: { provider: { chat: () => NEVER }, model: 'm' } });
  await insist(() => fleet.store.read('c1.1'));
  hanging.die();
}

/** Ends the run of the payment with an answer, as a process that holds its claim does. */
function endRun(store: MemoryRunStore): void {
  const run = { runId: 'c1.1', claim: 'the one before' };
  store.seize({ ...run, leaseMs: LEASE, from: 'anybody' });
  const said = { content: 'heard: Pay', usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } };
  const messages = [{ role: 'assistant' as const, content: said.content }];
  store.end(run, [{ type: 'end', messages, status: 'completed', iterations: 1, ...said }]);
}

test('Conversations take the result of a run that ends just before the takeover, without a new request', async () => {
  const fleet = new Fleet();
  const { front, store } = fleet;
  await dieInRequest(fleet);
  const endNow = (): void => {
    if (store.read('c1.1')?.status === 'running') endRun(store);
  };
  const next = fleet.start(() => 'paid', { store: before(store, 'seize', endNow) });
  const view = await front.idle('c1');
  expect(view?.messages).toEqual([
    { role: 'user', content: 'Pay' },
    { role: 'assistant', content: 'heard: Pay' },
  ]);
  expect(fleet.payments).toEqual([]);
  expect((await fleet.events()).filter((type) => type === 'turn-end')).toHaveLength(1);
  await next.conversations.close();
});

test('Conversations report the rest of a text, even if a part of it in the log has no text', async () => {
  const fleet = new Fleet();
  const { front, store } = fleet;
  await dieInRequest(fleet);
  const hold = { conversationId: 'c1', claim: 'the one before' };
  const { conversations: log } = store;
  await insist(async () =>
    (await log.hold({ ...hold, leaseMs: LEASE })).status === 'held' ? true : undefined,
  );
  const parts = [{ type: 'text-delta', text: 'heard' }, { type: 'text-delta' }];
  await log.tell(hold, [{ type: 'step-start', iteration: 1 }, ...parts]);
  endRun(store);
  await log.letGo(hold, -1);
  const next = fleet.start(() => 'paid');
  await front.idle('c1');
  const events = await log.events({ conversationId: 'c1', after: 0, limit: 1000 });
  const texts = events.flatMap(({ event }) => (event.type === 'text-delta' ? [event.text ?? ''] : []));
  expect(texts.join('')).toBe('heard: Pay');
  await next.conversations.close();
});

test('Conversations deliver work once, even if two processes complete it', async () => {
  const fleet = new Fleet();
  const { front, store, payments } = fleet;
  const annotations = { idempotent: true };
  await front.prompt('c1', 'Pay');
  const lost = { claim: 'somebody else', leaseMs: LEASE };
  const slow = fleet.start(
    (context) => {
      // The new owner of the run has the call, but not its answer.
      fleet.now += LEASE;
      store.conversations.hold({ ...lost, conversationId: 'c1' });
      store.seize({ ...lost, runId: 'c1.1', from: 'anybody' });
      return context.background(() => 'paid');
    },
    { annotations },
  );
  await insist(() => fleet.completions === 1 || undefined);
  fleet.now += LEASE;
  const next = fleet.start((context) => context.background(() => 'paid'), { annotations });
  await insist(() => fleet.completions === 2 || undefined);
  const view = await front.idle('c1');
  expect(payments).toHaveLength(2);
  expect(view?.messages.filter(({ content }) => content === '[System: async:pay] paid')).toHaveLength(1);
  expect(view?.turns).toBe(2);
  await Promise.all([slow.conversations.close(), next.conversations.close()]);
});

test.each([
  ['error', 1, "heard: The call of 'pay' was interrupted"],
  ['rerun', 2, 'heard: paid'],
] as const)(
  'Conversations with `onUnknown: %s` do not ask for the outcome of an interrupted call',
  async (onUnknown, times, said) => {
    const fleet = new Fleet();
    const { front, payments } = fleet;
    await front.prompt('c1', 'Pay');
    const first = fleet.start(() => NEVER);
    await fleet.paid(1);
    first.die();
    const second = fleet.start(() => 'paid', { onUnknown });
    const view = await front.idle('c1');
    expect(view?.status).toBe('idle');
    expect(view?.messages.at(-1)?.content).toContain(said);
    expect(payments).toHaveLength(times);
    await second.conversations.close();
  },
);

test.each(['a\u0000b', '\ud800', ' '])(
  'Conversations reject an id that a store cannot hold: %j',
  async (id) => {
    const { front } = new Fleet();
    await expect(front.prompt(id, 'Hi')).rejects.toMatchObject({ code: 521 });
    await expect(front.prompt('c1', 'Hi', { key: id })).rejects.toMatchObject({ code: 521 });
    expect(await front.snapshot('c1')).toBeUndefined();
  },
);

test('Conversations.close leaves a turn longer than `timeoutMs` to another process, without an event', async () => {
  const fleet = new Fleet();
  const { front, payments } = fleet;
  await front.prompt('c1', 'Pay');
  const first = fleet.start(() => NEVER, { annotations: { idempotent: true } });
  await fleet.paid(1);
  await first.conversations.close({ timeoutMs: 10 });
  expect(payments[0]?.signal.aborted).toBe(true);
  const before = await fleet.events();
  expect(await front.snapshot('c1')).toMatchObject({ status: 'running', turn: { runId: 'c1.1' } });
  fleet.now += LEASE;
  const second = fleet.start(() => 'paid', { annotations: { idempotent: true } });
  const view = await front.idle('c1');
  expect(view?.messages.at(-1)).toMatchObject({ content: 'heard: paid' });
  const after = await fleet.events();
  expect(after.slice(0, before.length)).toEqual(before);
  expect(after.filter((type) => type === 'run-end' || type === 'turn-end')).toEqual(['run-end', 'turn-end']);
  expect(new Set(payments.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
  await second.conversations.close();
});

test('Conversations.close with `timeoutMs` waits only until the running turns have ended', async () => {
  const fleet = new Fleet();
  const { front } = fleet;
  await front.prompt('c1', 'Pay');
  const pay = Promise.withResolvers<string>();
  const process = fleet.start(() => pay.promise);
  await fleet.paid(1);
  const closed = process.conversations.close({ timeoutMs: 600_000 });
  pay.resolve('paid');
  await closed;
  expect((await front.snapshot('c1'))?.messages.at(-1)).toMatchObject({ content: 'heard: paid' });
  const wrong = { timeoutMs: -1 };
  await expect(front.close(wrong)).rejects.toMatchObject({ code: 521 });
});

const away = async () => {
  throw new Error('the database is away');
};

test.each<[string, (fleet: Fleet) => Promise<unknown>, Start]>([
  ['an abort', ({ front }) => front.abort('c1'), {}],
  ['an abort without a config', ({ front }) => front.abort('c1'), { config: away }],
  ['cancelRun', ({ store }) => cancelRun({ store, runId: 'c1.1' }), {}],
])('a done answer given before %s is in the history, and reported as taken', async (_, end, start) => {
  const fleet = new Fleet();
  const { front, payments } = fleet;
  await front.prompt('c1', 'Pay');
  const first = fleet.start(() => NEVER);
  await fleet.paid(1);
  first.die();
  const second = fleet.start(() => 'paid');
  const [wait] = (await front.idle('c1'))?.pending ?? [];
  await second.conversations.close();
  await front.answer('c1', [{ id: wait?.id ?? '', outcome: 'done', result: 'paid at noon' }], {
    key: 'a1',
  });
  await end(fleet);
  const third = fleet.start(() => 'paid', start);
  const view = await front.idle('c1');
  expect(view?.messages.at(-1)).toMatchObject({ role: 'tool', content: 'paid at noon' });
  expect(historyFaults(view?.messages ?? [])).toEqual([]);
  const events = await fleet.events();
  expect(events.filter((type) => /answers-|turn-end/.test(String(type)))).toEqual([
    'answers-taken',
    'turn-end',
  ]);
  expect(payments).toHaveLength(1);
  await third.conversations.close();
});

test('a log whose beginning was removed has the result of the open call, even if its id is reused', async () => {
  let now = 1_700_000_000_000;
  const store = new MemoryRunStore({ now: () => now });
  const { conversations: log } = store;
  const logged = async () =>
    (await log.events({ conversationId: 'c1', after: 0, limit: 99 })).map(({ event }) => event);
  let calls = 0;
  const pay = defineTool({
    name: 'pay',
    description: 'Pays',
    execute: async () => {
      calls += 1;
      if (calls > 1) return 'paid the second time';
      // Makes the earlier events older than those from here on.
      await insist(async () => (await logged()).length > 3 || undefined);
      now += LEASE / 2;
      return 'paid the first time';
    },
  });
  const twice: LLMProvider = {
    chat: async ({ messages }) =>
      messages.filter(({ role }) => role === 'tool').length < 2
        ? {
            content: '',
            toolCalls: [{ id: 'call_1', name: 'pay', arguments: {} }],
            finishReason: 'tool_calls',
          }
        : { content: 'Done.', toolCalls: [], finishReason: 'stop' },
  };
  const take = (seen: MemoryRunStore) => {
    const config = { provider: twice, model: 'm', tools: [pay] };
    return new Conversations({ store: seen, config, leaseMs: LEASE, pollMs: 5 });
  };
  let isAlive = true;
  const dying = seenBy(store, (method, args) => {
    if (method === 'tell' && JSON.stringify(args).includes('the second time')) isAlive = false;
    return isAlive;
  });
  await take(dying).prompt('c1', 'Pay twice');
  await insist(() => (isAlive ? undefined : true));
  now += LEASE;
  log.removeEventsOlderThan(1.25 * LEASE);
  const other = take(store);
  await other.idle('c1');
  await other.close();
  const events = await logged();
  expect(events[0]).toMatchObject({ type: 'call-end' });
  expect(events.flatMap(({ type, result }) => (type === 'call-end' ? [result] : []))).toMatchObject([
    { forLLM: 'paid the first time' },
    { forLLM: 'paid the second time' },
  ]);
});
