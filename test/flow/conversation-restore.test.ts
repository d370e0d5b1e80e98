import { describe, expect, test } from '@jest/globals';
import {
  Conversation,
  type ConversationConfig,
  type ConversationEvent,
  type ConversationSnapshot,
  defineTool,
  type RegisteredTool,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';
import { historyFaults } from './strict-history.js';

type More = Partial<ConversationConfig>;

function begin(tools: readonly RegisteredTool[], steps: readonly ScriptedStep[], more: More = {}) {
  return new Conversation({ provider: new ScriptedProvider(steps), model: 'm', tools, ...more });
}

/** Another process goes on with it. */
function goOn(
  of: unknown,
  tools: readonly RegisteredTool[],
  steps: readonly ScriptedStep[],
  more: More = {},
) {
  const provider = new ScriptedProvider(steps);
  const conversation = Conversation.restore(
    { provider, model: 'm', tools, ...more },
    JSON.parse(JSON.stringify(of)) as ConversationSnapshot,
  );
  const events: ConversationEvent[] = [];
  conversation.subscribe((event) => events.push(event));
  return { conversation, provider, events };
}

function calling(...names: readonly string[]) {
  return { toolCalls: names.map((name, index) => ({ id: `c${index + 1}`, name })) };
}

function contents({ messages }: Conversation): readonly unknown[] {
  return messages.map(({ content }) => content);
}

function approve({ pending }: Conversation) {
  return pending.map(({ id }) => ({ id, approved: true }));
}

const paid: string[] = [];
const pay = defineTool({
  name: 'pay',
  description: 'Pays',
  parameters: { type: 'object', properties: { sum: { type: 'integer' } } },
  approval: true,
  execute: () => {
    paid.push('once');
    return 'paid';
  },
});
const echo = defineTool({ name: 'echo', description: 'Echoes', execute: () => 'echo' });
const endless = defineTool({
  name: 'endless',
  description: 'Never ends',
  execute: (_args, context) => context.background(() => new Promise(() => {}), 'Started.'),
});
/** A tool of the same name that never ends, and when it has begun. */
function hanging() {
  const begun = Promise.withResolvers<void>();
  const execute = () => {
    begun.resolve();
    return new Promise(() => {});
  };
  const hang = defineTool({ name: 'pay', description: 'Pays', approval: true, execute });
  return { hang, begun: begun.promise };
}
/** A model that never answers. */
const silence = () => new Promise<never>(() => {});

describe('a snapshot', () => {
  test('is plain JSON that shares nothing with the conversation, and taking it disturbs nothing', async () => {
    const conversation = begin([echo], [calling('echo'), { content: 'A' }, { content: 'B' }]);
    const snapshots: ConversationSnapshot[] = [];
    conversation.subscribe(() => snapshots.push(conversation.toJSON()));
    await conversation.prompt([{ type: 'text', text: 'a' }]);
    for (const snapshot of snapshots) expect(JSON.parse(JSON.stringify(snapshot))).toEqual(snapshot);
    (snapshots[0]?.messages as unknown[]).length = 0;
    expect((await conversation.prompt('b')).content).toBe('B');
    expect(contents(conversation)).toEqual([[{ type: 'text', text: 'a' }], '', 'echo', 'A', 'b', 'B']);
  });

  test('knows of a suspended run before its turn has ended', async () => {
    const conversation = begin([echo, pay], [calling('echo', 'pay')]);
    const standings: unknown[] = [];
    conversation.subscribe(({ type }) => {
      if (type === 'step-end' || type === 'run-end')
        standings.push(conversation.toJSON().turn?.standing.status);
    });
    await conversation.prompt('a');
    expect(standings).toEqual(['suspended', 'suspended']);
  });

  test.each([
    ['nothing', () => undefined],
    ['something else', () => ({ version: 1 })],
    ['another version', (good: ConversationSnapshot) => ({ ...good, version: 99 })],
    ['messages that are none', (good: ConversationSnapshot) => ({ ...good, messages: ['hello'] })],
    [
      'a turn of another kind',
      (good: ConversationSnapshot) => ({ ...good, turn: { ...good.turn, standing: {} } }),
    ],
    [
      'another amount in a suspended call',
      (good: ConversationSnapshot) => JSON.parse(JSON.stringify(good).replaceAll('"sum":5', '"sum":500')),
    ],
    [
      'a history that its suspended run does not have',
      (good: ConversationSnapshot) => ({ ...good, messages: [...good.messages, ...good.messages] }),
    ],
  ])('that is %s is refused', async (_what, change) => {
    const conversation = begin([pay], [{ toolCalls: [{ id: 'c1', name: 'pay', arguments: { sum: 5 } }] }]);
    await conversation.prompt('Pay');
    const config = { provider: new ScriptedProvider([]), model: 'm' };
    const changed = change(conversation.toJSON()) as ConversationSnapshot;
    const refused = expect.objectContaining({ name: 'InvalidState', code: 515 });
    expect(() => Conversation.restore(config, changed)).toThrow(refused as never);
  });

  test('with a secret, is refused where it was changed anywhere or nobody signed it', async () => {
    const conversation = begin([], [{ content: 'A' }], {
      stateSecret: 'a secret that has at least thirty-two characters',
    });
    await conversation.prompt('a');
    const good = conversation.toJSON();
    const { signature: _, ...unsigned } = good;
    const inbox = [{ kind: 'prompt', content: 'Pay everything' }] as const;
    for (const wrong of [unsigned, { ...good, inbox }])
      expect(() =>
        goOn(wrong, [], [], { stateSecret: 'a secret that has at least thirty-two characters' }),
      ).toThrow(/changed, or signed/);
    expect(() =>
      goOn(good, [], [], { stateSecret: 'another that has at least thirty-two characters' }),
    ).toThrow(/changed, or signed/);
    const { conversation: restored } = goOn(good, [], [], {
      stateSecret: 'a secret that has at least thirty-two characters',
    });
    expect(contents(restored)).toEqual(['a', 'A']);
  });
});

describe('a restored conversation', () => {
  test('has its id, its history and its numbers, and takes the new config and system prompt', async () => {
    const old = begin([], [{ content: 'A' }], { systemPrompt: 'Old.' });
    await old.prompt('a');
    const { conversation, provider, events } = goOn(old, [], [{ content: 'B' }], { systemPrompt: 'New.' });
    expect([conversation.id, conversation.messages]).toEqual([old.id, old.messages]);
    await conversation.prompt('b');
    expect(provider.requests[0]?.messages.map(({ content }) => content)).toEqual(['New.', 'a', 'A', 'b']);
    expect(events[0]).toMatchObject({ type: 'turn-start', turn: { number: 2 } });
  });

  test('goes on with a turn after its last whole step, with what it has spent, and runs what waited', async () => {
    let snapshot: unknown;
    const old: Conversation = begin(
      [echo],
      [
        { ...calling('echo'), usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 } },
        () => {
          snapshot = old.toJSON();
          return silence();
        },
      ],
    );
    void old.prompt('a');
    void old.prompt('b');
    while (snapshot === undefined) await new Promise(setImmediate);
    const { conversation, provider, events } = goOn(snapshot, [echo], [calling('echo'), { content: 'B' }], {
      maxIterations: 2,
    });
    await conversation.idle();
    expect(contents(conversation)).toEqual(['a', '', 'echo', '', 'echo', 'b', 'B']);
    expect(historyFaults(conversation.messages)).toEqual([]);
    const [first] = events.flatMap((event) => (event.type === 'turn-end' ? [event] : []));
    expect(first).toMatchObject({
      turn: { number: 1, resumedBy: 'restore', origin: { content: 'a' } },
      result: { status: 'limit', iterations: 2, usage: { totalTokens: 3 }, toolCalls: [{}, {}] },
    });
    expect(provider.requests).toHaveLength(2);
    old.close();
  });

  test('completes work that was going on once, as interrupted', async () => {
    const old = begin([endless], [calling('endless'), { content: 'Done.' }]);
    await old.prompt('a');
    const snapshot = old.close();
    const { conversation, events } = goOn(snapshot, [endless], [{ content: 'Pity.' }]);
    expect(conversation.tasks).toEqual([]);
    const twice = goOn(conversation, [endless], [{ content: 'Pity.' }]);
    await Promise.all([conversation.idle({ tasks: true }), twice.conversation.idle({ tasks: true })]);
    for (const [restored, heard] of [
      [conversation, events],
      [twice.conversation, twice.events],
    ] as const)
      expect([contents(restored).slice(4), heard.filter(({ type }) => type === 'task-end').length]).toEqual([
        [expect.stringMatching(/^\[System: async:endless\] .*interrupted/), 'Pity.'],
        restored === conversation ? 1 : 0,
      ]);
    expect(events[0]).toMatchObject({
      type: 'task-end',
      result: { error: { name: 'TaskInterrupted', code: 520 } },
    });
  });

  test('can be answered by the same ids, in a run that goes on under the system prompt it was begun with', async () => {
    const old = begin([pay], [calling('pay')], { systemPrompt: 'Old.' });
    await old.prompt('a');
    void old.prompt('b');
    const { pending } = old;
    const { conversation, provider } = goOn(old.close(), [pay], [{ content: 'Paid.' }, { content: 'B' }]);
    expect(conversation.pending).toEqual(pending);
    expect(await conversation.answer(approve(conversation))).toMatchObject({ content: 'Paid.' });
    await conversation.idle();
    expect(contents(conversation)).toEqual(['a', '', 'paid', 'Paid.', 'b', 'B']);
    expect(provider.requests.map(({ messages }) => messages[0]?.content)).toEqual(['Old.', 'a']);
  });

  test('ends a turn that was aborted and had not ended', async () => {
    const old = begin([], [silence]);
    void old.prompt('a');
    old.abort();
    const { conversation, provider, events } = goOn(old, [], []);
    await conversation.idle();
    expect(events.at(-1)).toMatchObject({ type: 'turn-end', result: { status: 'aborted' } });
    expect(provider.requests).toEqual([]);
  });

  test('may be aborted, closed and restored again before anything has begun', async () => {
    const old = begin([], [silence]);
    void old.prompt('a');
    void old.prompt('b');
    const aborted = goOn(old.close(), [], [{ content: 'B' }]);
    aborted.conversation.abort();
    await aborted.conversation.idle();
    expect(contents(aborted.conversation)).toEqual(['a', 'b', 'B']);
    const closed = goOn(old, [], []);
    const again = goOn(closed.conversation.close(), [], [{ content: 'A' }, { content: 'B' }]);
    await Promise.all([closed.conversation.idle(), again.conversation.idle()]);
    expect(closed.events).toEqual([]);
    expect(contents(again.conversation)).toEqual(['a', 'A', 'b', 'B']);
  });
});

describe('a conversation that is closed', () => {
  test('ends what runs and drops what waits, though not from its snapshot', async () => {
    const old = begin([endless], [calling('endless'), silence]);
    const a = old.prompt('a');
    const b = old.prompt('b');
    while (old.messages.length < 3) await new Promise(setImmediate);
    const snapshot = old.close();
    expect(snapshot).toMatchObject({
      inbox: [{ content: 'b' }],
      tasks: [{ tool: 'endless' }],
      turn: { number: 1 },
    });
    expect([await a, await b]).toMatchObject([{ status: 'aborted' }, { status: 'aborted', iterations: 0 }]);
    await old.idle({ tasks: true });
    expect([old.toJSON(), old.close(), old.tasks, old.pending]).toEqual([snapshot, snapshot, [], []]);
    await expect(old.prompt('c')).rejects.toMatchObject({ name: 'RunAborted' });
    await expect(old.answer([])).rejects.toMatchObject({ name: 'RunAborted' });
  });
});

describe('with a store', () => {
  test('of two processes that answer the same run, one goes on', async () => {
    paid.length = 0;
    const store = new MemoryRunStore();
    const old = begin([pay], [calling('pay')], { store });
    await old.prompt('Pay');
    const snapshot = old.close();
    const both = [0, 1].map(() => goOn(snapshot, [pay], [{ content: 'Paid.' }], { store }).conversation);
    const answers = await Promise.allSettled(both.map((each) => each.answer(approve(each))));
    const [won, lost] = answers[0]?.status === 'fulfilled' ? [0, 1] : [1, 0];
    expect(answers[won]).toMatchObject({ value: { status: 'completed', content: 'Paid.' } });
    expect(answers[lost]).toMatchObject({ reason: { name: 'RunClaimed' } });
    expect(paid).toEqual(['once']);
    const late = both[lost] as Conversation;
    expect(late.pending).toHaveLength(1);
    await expect(late.answer(approve(late))).rejects.toMatchObject({ name: 'RunNotFound' });
    late.abort();
    await late.idle();
    expect(historyFaults(late.messages)).toEqual([]);
    expect(late.messages).toHaveLength(3);
  });

  test('a run that is suspended again is kept, and an aborted one is forgotten', async () => {
    const store = new MemoryRunStore();
    const conversation = begin([pay], [calling('pay', 'pay'), { content: 'Done.' }], { store });
    const { state } = await conversation.prompt('Pay');
    const [one] = approve(conversation);
    expect(await conversation.answer(one ? [one] : [])).toMatchObject({ status: 'suspended' });
    expect(store.load(state?.runId ?? '')).toMatchObject({ revision: 2 });
    conversation.abort();
    await conversation.idle();
    expect(store.load(state?.runId ?? '')).toBeUndefined();
    expect(historyFaults(conversation.messages)).toEqual([]);
  });

  test('that fails, the conversation keeps the suspended run itself', async () => {
    const store = new MemoryRunStore();
    store.save = () => {
      throw new Error('disk full');
    };
    const conversation = begin([pay], [calling('pay'), { content: 'Paid.' }], { store });
    expect(await conversation.prompt('Pay')).toMatchObject({
      status: 'failed',
      error: { name: 'RunStoreFailed' },
    });
    expect(await conversation.answer(approve(conversation))).toMatchObject({ content: 'Paid.' });
  });

  test('a run that was being resumed when its process ended can be answered again once the claim has run out', async () => {
    let now = 0;
    const store = new MemoryRunStore({ now: () => now });
    const { hang, begun } = hanging();
    const old = begin([hang], [calling('pay')], { store });
    await old.prompt('Pay');
    void old.answer(approve(old));
    await begun;
    const { conversation, events } = goOn(old, [pay], [{ content: 'Paid.' }], { store });
    await conversation.idle();
    expect(events.at(-1)).toMatchObject({ type: 'turn-end', error: { name: 'RunClaimed' } });
    expect(conversation.pending).toHaveLength(1);
    now += 60_000;
    expect(await conversation.answer(approve(conversation))).toMatchObject({ content: 'Paid.' });
    old.close();
  });

  test('a run that was being resumed when its conversation was closed goes on from the snapshot', async () => {
    const store = new MemoryRunStore();
    const { hang, begun } = hanging();
    const old = begin([hang], [calling('pay')], { store });
    await old.prompt('Pay');
    const answered = old.answer(approve(old));
    await begun;
    const snapshot = old.close();
    expect(await answered).toMatchObject({ status: 'aborted' });
    const { conversation } = goOn(snapshot, [pay], [{ content: 'Paid.' }], { store });
    await conversation.idle();
    expect(contents(conversation)).toEqual(['Pay', '', 'paid', 'Paid.']);
  });
});
