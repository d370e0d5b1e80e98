import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import {
  Conversations,
  cancelRun,
  defineTool,
  type JsonObject,
  type LLMProvider,
  type LLMResponse,
} from 'toolwright';
import { createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { seenBy } from './dying-store.js';

const LEASE = 60;

/** Writes text before its calls, asks for an approval in its second reply, and ends in its third. */
const provider: LLMProvider = {
  async chat({ messages }): Promise<LLMResponse> {
    const results = messages.filter(({ role }) => role === 'tool').length;
    const call = (id: string, name: string) => ({ id, name, arguments: {} });
    if (results === 0)
      return reply('First I look.', [call('call_1', 'look'), call('call_2', 'listen')], 'It is early.');
    if (results === 2) return reply('Then I pay.', [call('call_1', 'pay'), call('call_2', 'look')]);
    return reply('All is done.', []);
  },
};

function reply(content: string, toolCalls: LLMResponse['toolCalls'], reasoning?: string): LLMResponse {
  const finishReason = toolCalls.length > 0 ? 'tool_calls' : 'stop';
  return { content, toolCalls, finishReason, ...(reasoning === undefined ? {} : { reasoning }) };
}

function tool(name: string, approval = false) {
  return defineTool({
    name,
    description: name,
    annotations: { idempotent: true },
    ...(approval ? { approval } : {}),
    execute: () => `${name}: seen`,
  });
}

const config = { provider, model: 'm', tools: [tool('look'), tool('listen'), tool('pay', true)] };

/** When a process dies, by its calls of the store. */
interface Fate {
  /** Dies after this many calls. */
  readonly life?: number;
  readonly isDeadly?: (asked: string) => boolean;
  /** These calls never return. */
  readonly isStuck?: (asked: string) => boolean;
}

/** One turn, run by one process after another. */
class Turn {
  #now = 1_700_000_000_000;
  readonly store = new MemoryRunStore({ now: () => this.#now });
  readonly front = this.#open(this.store, { takesTurns: false });
  #last = this.front;

  /** Runs the turn with processes that die after this many calls. Returns whether the turn ended before that. */
  async take(lives: readonly number[]): Promise<boolean> {
    await this.front.prompt('c1', 'Do it', { key: 'message m1', owner: 'u1' });
    const over = Promise.all([this.answer(), this.end()]).then(() => 'over' as const);
    for (const life of lives) if ((await Promise.race([this.start({ life }), over])) === 'over') return true;
    void this.start();
    await over;
    return false;
  }

  /** Starts a process. Resolves when it is dead. */
  start({ life = Number.POSITIVE_INFINITY, isDeadly, isStuck }: Fate = {}): Promise<'dead'> {
    const { promise: death, resolve } = Promise.withResolvers<'dead'>();
    let asked = 0;
    let isDead = false;
    const isAlive = (...what: unknown[]): boolean => {
      asked += 1;
      const text = JSON.stringify(what);
      if (!isDead && (asked > life || isDeadly?.(text))) {
        isDead = true;
        this.#now += LEASE;
        resolve('dead');
      }
      return !isDead && !isStuck?.(text);
    };
    this.#last = this.#open(seenBy(this.store, isAlive), {});
    return death;
  }

  async end(): Promise<void> {
    while (!(await this.events()).some(({ type }) => type === 'turn-end')) await pause(1);
  }

  async events(): Promise<readonly JsonObject[]> {
    const kept = await this.store.conversations.events({ conversationId: 'c1', after: 0, limit: 1000 });
    return kept.map(({ event }) => event);
  }

  /** The delivered ends of calls, in order. */
  async ends(): Promise<readonly unknown[]> {
    const events = await this.events();
    return events.flatMap(({ type, callId, tool, status, result }) =>
      type === 'call-end' ? [{ callId, tool, status, result }] : [],
    );
  }

  /** Removes all events delivered so far. */
  async forget(): Promise<void> {
    this.#now += 1;
    await this.store.conversations.removeEventsOlderThan(1);
  }

  /** The messages of a newly loaded page in both protocols, without ids of texts. */
  async page(): Promise<readonly unknown[]> {
    const chat = { conversations: this.front, authenticate: () => 'u1' };
    const loaded = createChatHandler(chat).fetch(new Request('http://localhost/c1/messages'));
    const agUi = createChatHandler({ ...chat, protocol: 'ag-ui' });
    const connected = await agUi.fetch(new Request('http://localhost/?id=c1'));
    const [, snapshot = '[]'] = /"messages":(.*)\}\n/.exec(await connected.text()) ?? [];
    const withoutIds = snapshot.replaceAll(/"id":"(?!turn-1\.\d+\.)[^"]*",/g, '');
    const messages = [...((await (await loaded).json()) as object[]), ...JSON.parse(withoutIds)];
    return messages.map(({ parts = [], ...message }: { readonly parts?: readonly JsonObject[] }) => [
      message,
      ...parts.map(({ id: _, ...part }) => part),
    ]);
  }

  async close(): Promise<void> {
    await this.front.close();
    await this.#last.close();
  }

  /** Approves as soon as a call is pending. */
  async answer(): Promise<void> {
    for (;;) {
      const view = await this.front.snapshot('c1');
      const [pending] = view?.pending ?? [];
      if (pending !== undefined) {
        await this.front.answer('c1', [{ id: pending.id, approved: true }], { owner: 'u1' });
        return;
      }
      await pause(1);
    }
  }

  #open(store: MemoryRunStore, options: { readonly takesTurns?: boolean }): Conversations {
    return new Conversations({ store, config, leaseMs: LEASE, pollMs: 3, ...options });
  }
}

/** The outcome of the turn with processes that die this soon, and whether it ended before they did. */
async function seenWith(lives: readonly number[]) {
  const turn = new Turn();
  const isOver = await turn.take(lives);
  const seen = { page: await turn.page(), ends: sorted(await turn.ends()) };
  await turn.close();
  return { isOver, seen };
}

/** Concurrent calls may end in any order. */
function sorted(ends: readonly unknown[]): readonly string[] {
  return ends.map((end) => JSON.stringify(end)).sort();
}

test.each([
  ['a process dies', (_life: number): readonly number[] => []],
  ['two processes die', (life: number): readonly number[] => [1 + ((life * 7) % 23)]],
])(
  'Conversations: wherever %s, readers get the result of each call once, and chats show the same',
  async (_, others) => {
    const { seen: calm } = await seenWith([]);
    expect(calm.ends).toHaveLength(4);
    for (let life = 1; ; life += 1) {
      const { isOver, seen } = await seenWith([life, ...others(life)]);
      expect({ life, ...seen }).toEqual({ life, ...calm });
      if (isOver) break;
    }
  },
);

test('Conversations: results that a dead process stored are delivered even if the run was cancelled', async () => {
  const turn = new Turn();
  const { front, store } = turn;
  await front.prompt('c1', 'Do it', { key: 'message m1', owner: 'u1' });
  await turn.start({ isDeadly: (asked) => asked.includes('"call-end"') });
  await cancelRun({ store, runId: 'c1.1' });
  void turn.start();
  await turn.end();
  const result = (forLLM: string) => expect.objectContaining({ forLLM });
  expect(await turn.ends()).toEqual([
    { callId: 'call_1', tool: 'look', status: 'success', result: result('look: seen') },
    { callId: 'call_2', tool: 'listen', status: 'success', result: result('listen: seen') },
  ]);
  const parts = JSON.stringify((await turn.page())[1]);
  expect(parts.match(/"output-available"/g)).toHaveLength(2);
  expect(parts).not.toContain('input-available');
  await turn.close();
});

test('Conversations: events that the store has removed are not delivered again after a resume', async () => {
  const turn = new Turn();
  await turn.front.prompt('c1', 'Do it', { key: 'message m1', owner: 'u1' });
  const death = turn.start({ isDeadly: (asked) => /"call-end".*pay: seen/.test(asked) });
  while ((await turn.front.snapshot('c1'))?.status !== 'suspended') await pause(1);
  while (!(await turn.events()).some(({ type }) => type === 'turn-suspended')) await pause(1);
  await turn.forget();
  await turn.answer();
  await death;
  void turn.start();
  await turn.end();
  expect(await turn.ends()).toEqual([expect.objectContaining({ callId: 'call_1', tool: 'pay' })]);
  await turn.close();
});

test('Conversations: steps that a dead process stored but did not deliver are delivered by the next', async () => {
  const { seen: calm } = await seenWith([]);
  const turn = new Turn();
  const { front, store } = turn;
  await front.prompt('c1', 'Do it', { key: 'message m1', owner: 'u1' });
  const isStuck = (asked: string): boolean => asked.startsWith('["tell"');
  const isDeadly = (): boolean => store.read('c1.1')?.status === 'suspended';
  await turn.start({ isStuck, isDeadly });
  expect((await turn.events()).map(({ type }) => type)).toEqual(['turn-start']);
  void turn.start();
  await turn.answer();
  await turn.end();
  expect({ page: await turn.page(), ends: sorted(await turn.ends()) }).toEqual(calm);
  await turn.close();
});
