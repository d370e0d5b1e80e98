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

/** Restores a conversation from its JSON, as another process would. */
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
/** A tool `pay` that never ends, and a promise that resolves when it has started. */
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
  test('is plain JSON that shares nothing with the conversation, and taking one has no effect', async () => {
    const conversation = begin([echo], [calling('echo'), { content: 'A' }, { content: 'B' }]);
    const snapshots: ConversationSnapshot[] = [];
    conversation.subscribe(() => snapshots.push(conversation.toJSON()));
    await conversation.prompt([{ type: 'text', text: 'a' }]);
    for (const snapshot of snapshots) expect(JSON.parse(JSON.stringify(snapshot))).toEqual(snapshot);
    (snapshots[0]?.messages as unknown[]).length = 0;
    expect((await conversation.prompt('b')).content).toBe('B');
    expect(contents(conversation)).toEqual([[{ type: 'text', text: 'a' }], '', 'echo', 'A', 'b', 'B']);
  });

  test('contains a suspended run before its turn has ended', async () => {
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
    ['undefined', () => undefined],
    ['an object without a snapshot', () => ({ version: 1 })],
    ['another version', (good: ConversationSnapshot) => ({ ...good, version: 99 })],
    ['invalid messages', (good: ConversationSnapshot) => ({ ...good, messages: ['hello'] })],
    [
      'an unknown status of the turn',
      (good: ConversationSnapshot) => ({ ...good, turn: { ...good.turn, standing: {} } }),
    ],
    [
      'another amount in a suspended call',
      (good: ConversationSnapshot) => JSON.parse(JSON.stringify(good).replaceAll('"sum":5', '"sum":500')),
    ],
    [
      'a history that differs from that of its suspended run',
      (good: ConversationSnapshot) => ({ ...good, messages: [...good.messages, ...good.messages] }),
    ],
  ])('is rejected: %s', async (_what, change) => {
    const conversation = begin([pay], [{ toolCalls: [{ id: 'c1', name: 'pay', arguments: { sum: 5 } }] }]);
    await conversation.prompt('Pay');
    const config = { provider: new ScriptedProvider([]), model: 'm' };
    const changed = change(conversation.toJSON()) as ConversationSnapshot;
    const refused = expect.objectContaining({ name: 'InvalidState', code: 515 });
    expect(() => Conversation.restore(config, changed)).toThrow(refused as never);
  });

  test('with a secret, is rejected if it is changed or not signed', async () => {
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
  test('has the same id, history and turn number, and uses the new config and system prompt', async () => {
    const old = begin([], [{ content: 'A' }], { systemPrompt: 'Old.' });
    await old.prompt('a');
    const { conversation, provider, events } = goOn(old, [], [{ content: 'B' }], { systemPrompt: 'New.' });
    expect([conversation.id, conversation.messages]).toEqual([old.id, old.messages]);
    await conversation.prompt('b');
    expect(provider.requests[0]?.messages.map(({ content }) => content)).toEqual(['New.', 'a', 'A', 'b']);
    expect(events[0]).toMatchObject({ type: 'turn-start', turn: { number: 2 } });
  });

  test('continues a turn after its last complete step with its usage, and then runs waiting prompts', async () => {
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

  test('completes running work once, as interrupted', async () => {
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

  test('accepts answers with the same ids, and the run keeps its system prompt', async () => {
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

  test('ends a turn whose abort was not finished', async () => {
    const old = begin([], [silence]);
    void old.prompt('a');
    old.abort();
    const { conversation, provider, events } = goOn(old, [], []);
    await conversation.idle();
    expect(events.at(-1)).toMatchObject({ type: 'turn-end', result: { status: 'aborted' } });
    expect(provider.requests).toEqual([]);
  });

  test('can be aborted, closed and restored again before its first turn starts', async () => {
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

describe('a closed conversation', () => {
  test('aborts the running turn and drops waiting prompts, which stay in its snapshot', async () => {
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

describe('with a run store', () => {
  test('only one of two processes that answer the same run resumes it', async () => {
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

  test('stores a run that is suspended again, and deletes an aborted one', async () => {
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

  test('the conversation keeps the suspended run itself if the store fails', async () => {
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

  test('a run whose resume was lost can be answered again after the claim has expired', async () => {
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

  test('a run that was resumed when its conversation was closed continues from the snapshot', async () => {
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
