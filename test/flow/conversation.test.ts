import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test } from '@jest/globals';
import {
  asyncResult,
  Conversation,
  type ConversationConfig,
  type ConversationEvent,
  defineTool,
  InvalidOptionsError,
  type LLMProvider,
  type Message,
  type RegisteredTool,
  silentResult,
  TaskQueue,
  ToolDeclarationError,
  ToolResult,
  userResult,
} from 'toolwright';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';
import { historyFaults } from './strict-history.js';

function setup(
  tools: readonly RegisteredTool[],
  steps: readonly ScriptedStep[],
  more: Partial<ConversationConfig> = {},
) {
  const provider = new ScriptedProvider(steps);
  const conversation = new Conversation({ provider, model: 'm', tools, ...more });
  const events: ConversationEvent[] = [];
  conversation.subscribe((event) => events.push(event));
  return { provider, conversation, events };
}

function calling(...names: readonly string[]) {
  return { toolCalls: names.map((name, index) => ({ id: `c${index + 1}`, name })) };
}

function roles(messages: readonly Message[]): string {
  return messages.map(({ role }) => role).join(' ');
}

function contents(messages: readonly Message[]): readonly unknown[] {
  return messages.map(({ content }) => content);
}

function types(events: readonly ConversationEvent[]): readonly string[] {
  return events.map(({ type }) => type);
}

/** A tool whose work ends when the test resolves it. */
function mailer() {
  const work = Promise.withResolvers<unknown>();
  const tool = defineTool({
    name: 'mail',
    description: 'Mails',
    execute: (_args, context) => context.background(() => work.promise, 'Started.'),
  });
  return { tool, ...work };
}

const greet = defineTool({ name: 'greet', description: 'Greets', execute: () => userResult('Hello!') });
const whisper = defineTool({
  name: 'whisper',
  description: 'Whispers',
  execute: () => new ToolResult({ forLLM: 'psst', forUser: 'psst', silent: true }),
});
const pay = defineTool({ name: 'pay', description: 'Pays', approval: true, execute: () => 'paid' });
const locate = defineTool({ name: 'locate', description: 'Where the user is' });

describe('a prompt', () => {
  test('runs a turn with the system prompt and all tools in order, and extends the history', async () => {
    const { conversation, provider } = setup(
      [greet, pay],
      [calling('greet'), { content: 'Done.' }, { content: 'Again.' }],
      { systemPrompt: 'Be brief.' },
    );
    expect(await conversation.prompt('Hi')).toMatchObject({ status: 'completed', content: 'Done.' });
    expect(roles(conversation.messages)).toBe('user assistant tool assistant');
    const parts = [{ type: 'text', text: 'And again' }];
    await conversation.prompt(parts);
    const [first, , third] = provider.requests;
    expect(first?.messages).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ]);
    expect(first?.tools?.map((tool) => tool.function.name)).toEqual(['greet', 'pay']);
    expect(roles(third?.messages ?? [])).toBe('system user assistant tool assistant user');
    expect(third?.messages.at(-1)?.content).toEqual(parts);
    provider.assertUsedUp();
  });

  test('waits for earlier turns, in order', async () => {
    const { conversation, events } = setup([], [{ content: 'A' }, { content: 'B' }, { content: 'C' }]);
    const all = ['a', 'b', 'c'].map((text) => conversation.prompt(text));
    await conversation.idle();
    expect(contents(conversation.messages)).toEqual(['a', 'A', 'b', 'B', 'c', 'C']);
    expect((await Promise.all(all)).map(({ content }) => content)).toEqual(['A', 'B', 'C']);
    expect(types(events).filter((type) => type.startsWith('turn-'))).toEqual(
      Array(3).fill(['turn-start', 'turn-end']).flat(),
    );
  });

  test('rejects invalid content and changes nothing', async () => {
    const { conversation } = setup([], []);
    for (const wrong of [undefined, 7, {}, [], [{ type: 'text' }], [{ typ: 'text', text: 'a' }], ['a']])
      await expect(conversation.prompt(wrong as string)).rejects.toMatchObject({ name: 'InvalidOptions' });
    expect(conversation.messages).toEqual([]);
    await conversation.idle();
  });

  test('that fails leaves the conversation usable', async () => {
    const { conversation } = setup([], [new Error('down'), { content: 'Up.' }]);
    expect(await conversation.prompt('a')).toMatchObject({ status: 'failed' });
    expect(await conversation.prompt('b')).toMatchObject({ content: 'Up.' });
    expect(contents(conversation.messages)).toEqual(['a', 'b', 'Up.']);
  });

  test("rejects with `onLimit: 'throw'`, and the next prompt continues with the history", async () => {
    const { conversation, events } = setup([greet], [calling('greet'), { content: 'Up.' }], {
      onLimit: 'throw',
      maxIterations: 1,
    });
    await expect(conversation.prompt('a')).rejects.toMatchObject({ name: 'ToolLoopLimitReached' });
    expect(events.at(-1)).toMatchObject({ type: 'turn-end', error: { name: 'ToolLoopLimitReached' } });
    expect(await conversation.prompt('b')).toMatchObject({ content: 'Up.' });
    expect(roles(conversation.messages)).toBe('user assistant tool user assistant');
  });

  test('that is aborted while it waits is withdrawn at once', async () => {
    const stop = new AbortController();
    const hold = Promise.withResolvers<ScriptedStep & object>();
    const { conversation } = setup([], [() => hold.promise as never, { content: 'C' }]);
    const [a, b, c] = ['a', 'b', 'c'].map((text) =>
      conversation.prompt(text, text === 'b' ? { signal: stop.signal } : {}),
    );
    stop.abort();
    expect(await b).toMatchObject({ status: 'aborted', iterations: 0 });
    hold.resolve({ content: 'A' });
    await Promise.all([a, c]);
    expect(contents(conversation.messages)).toEqual(['a', 'A', 'c', 'C']);
    expect(await conversation.prompt('d', { signal: AbortSignal.abort() })).toMatchObject({
      status: 'aborted',
    });
    expect(contents(conversation.messages)).toEqual(['a', 'A', 'c', 'C']);
  });

  test('runs its turn in the async context of its caller', async () => {
    const user = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const who = defineTool({ name: 'who', description: 'Who', execute: () => seen.push(user.getStore()) });
    const { conversation } = setup(
      [who],
      [calling('who'), { content: 'Done.' }, calling('who'), { content: 'Done.' }],
    );
    await Promise.all(['ada', 'bob'].map((name) => user.run(name, () => conversation.prompt(name))));
    expect(seen).toEqual(['ada', 'bob']);
  });

  test('gives its tools the scopes of the conversation and of the prompt, and the conversation id', async () => {
    const seen: unknown[] = [];
    const look = defineTool({
      name: 'look',
      description: 'Looks',
      execute: (_args, { channel, chatId, conversationId, data }) =>
        seen.push([channel, chatId, conversationId, data.user]),
    });
    const { conversation } = setup(
      [look],
      [calling('look'), { content: 'Done.' }, calling('look'), { content: 'Done.' }],
      {
        id: 'conv_1',
        scope: { channel: 'web', chatId: '7', data: { user: 'ada' }, conversationId: 'other' },
      },
    );
    await conversation.prompt('a');
    await conversation.prompt('b', { scope: { data: { user: 'bob' } } });
    expect(seen).toEqual([
      ['web', '7', 'conv_1', 'ada'],
      ['web', '7', 'conv_1', 'bob'],
    ]);
  });

  test('returns a result that later turns do not change', async () => {
    const { conversation } = setup([], [{ content: 'A' }, { content: 'B' }], { systemPrompt: 'Be brief.' });
    const first = await conversation.prompt('a');
    const second = await conversation.prompt('b');
    expect(contents(first.messages)).toEqual(['Be brief.', 'a', 'A']);
    expect(contents(second.messages)).toEqual(['Be brief.', 'a', 'A', 'b', 'B']);
    (first.messages as Message[]).length = 0;
    expect(contents(conversation.messages)).toEqual(['a', 'A', 'b', 'B']);
  });

  test('does not read earlier messages of the history again', async () => {
    let looks = 0;
    const messages = Array.from({ length: 100 }, (_, index) => ({
      get role() {
        looks += 1;
        return index % 2 === 0 ? ('user' as const) : ('assistant' as const);
      },
      content: `${index}`,
    }));
    const response = { content: 'Hi', toolCalls: [], finishReason: 'stop' } as const;
    const conversation = new Conversation({
      provider: { chat: async () => response },
      model: 'm',
      messages: messages as readonly Message[],
    });
    await conversation.prompt('a');
    looks = 0;
    await conversation.prompt('b');
    expect(looks).toBe(0);
  });

  test('is not possible if the constructor throws for a missing provider or invalid tools', () => {
    expect(() => new Conversation({ model: 'm' } as never)).toThrow(InvalidOptionsError);
    const provider = new ScriptedProvider([]);
    expect(() => new Conversation({ provider, model: 'm', tools: [{}] as never })).toThrow(
      ToolDeclarationError,
    );
  });
});

describe('events', () => {
  test('report everything in order, including user messages of tools', async () => {
    const { conversation, events } = setup(
      [greet, whisper],
      [calling('whisper', 'greet'), { content: 'Done.' }],
    );
    await conversation.prompt('Hi');
    expect(types(events)).toEqual(
      `turn-start run-start step-start reply-end call-start call-start call-end call-end user-message step-end
       step-start text-delta reply-end step-end run-end turn-end`.split(/\s+/),
    );
    expect(events.find(({ type }) => type === 'user-message')).toEqual({
      type: 'user-message',
      text: 'Hello!',
      tool: 'greet',
      callId: 'c2',
    });
    const turn = { number: 1, origin: { kind: 'prompt', content: 'Hi' } };
    expect(events[0]).toEqual({ type: 'turn-start', turn });
    expect(events.at(-1)).toMatchObject({ type: 'turn-end', turn, result: { content: 'Done.' } });
  });

  test('always see a history that a strict provider accepts', async () => {
    const { conversation } = setup(
      [greet, pay],
      [calling('greet', 'greet'), calling('greet', 'pay'), { content: 'Done.' }],
    );
    const faults: unknown[] = [];
    const lengths = new Set<number>();
    conversation.subscribe(() => {
      faults.push(...historyFaults(conversation.messages));
      lengths.add(conversation.messages.length);
    });
    await conversation.prompt('Hi');
    const [{ id } = { id: '' }] = conversation.pending;
    await conversation.answer([{ id, approved: true }]);
    expect(faults).toEqual([]);
    expect([...lengths]).toEqual([1, 4, 7, 8]);
    expect(Object.isFrozen(conversation.messages)).toBe(true);
  });

  test('a listener that throws, rejects, subscribes, unsubscribes or prompts disturbs nothing', async () => {
    const { conversation, events } = setup([], [{ content: 'A' }, { content: 'B' }]);
    const seen: string[] = [];
    let again = false;
    const leave = conversation.subscribe(async ({ type }) => {
      seen.push(type);
      if (type !== 'turn-end') throw new Error('no');
      leave();
      leave();
      if (!again) void conversation.prompt('b');
      again = true;
      throw new Error('rejected');
    });
    await conversation.prompt('a');
    await conversation.idle();
    expect(contents(conversation.messages)).toEqual(['a', 'A', 'b', 'B']);
    expect(types(events).join(' ')).toMatch(/^turn-start .* turn-end turn-start .* turn-end$/);
    expect(types(events).slice(0, seen.length)).toEqual(seen);
    expect(seen.at(-1)).toBe('turn-end');
  });

  test('text is streamed only if there is a listener', async () => {
    const asked: string[] = [];
    const response = { content: 'Hi', toolCalls: [], finishReason: 'stop' } as const;
    const provider: LLMProvider = {
      async chat() {
        asked.push('chat');
        return response;
      },
      async *stream() {
        asked.push('stream');
        yield { type: 'text-delta', text: 'Hi' };
        yield { type: 'response', response };
      },
    };
    const conversation = new Conversation({ provider, model: 'm' });
    await conversation.prompt('a');
    const leave = conversation.subscribe(() => {});
    await conversation.prompt('b');
    leave();
    await conversation.prompt('c');
    expect(asked).toEqual(['chat', 'stream', 'chat']);
  });
});

describe('background work', () => {
  test('sends its user message when it completes, and adds its result in a new turn', async () => {
    const mail = mailer();
    const { conversation, events, provider } = setup(
      [mail.tool],
      [calling('mail'), { content: 'Under way.' }, { content: 'It is there.' }],
    );
    await conversation.prompt('Mail it');
    const [task] = conversation.tasks;
    expect(task).toMatchObject({ tool: 'mail', callId: 'c1', status: 'running' });
    await conversation.idle();
    mail.resolve(new ToolResult({ forLLM: 'mailed 7', forUser: 'Mailed.' }));
    await conversation.idle({ tasks: true });
    expect(contents(conversation.messages)).toEqual([
      'Mail it',
      '',
      'Started.',
      'Under way.',
      '[System: async:mail] mailed 7',
      'It is there.',
    ]);
    expect(conversation.tasks).toEqual([]);
    const told = events.filter(({ type }) => /^(user-message|task|turn)/.test(type));
    expect(types(told)).toEqual(
      'turn-start task-start turn-end user-message task-end turn-start turn-end'.split(' '),
    );
    const of = { tool: 'mail', callId: 'c1', taskId: task?.id };
    expect(told[3]).toEqual({ type: 'user-message', text: 'Mailed.', ...of });
    expect(told[5]).toMatchObject({ turn: { number: 2, origin: { kind: 'completion', ...of } } });
    provider.assertUsedUp();
  });

  test.each([
    ['a silent result', silentResult('done'), 'done'],
    [
      'an error without a text',
      new ToolResult({ forLLM: '', isError: true }).withError(new Error('no')),
      'no',
    ],
    ['a picture', { content: [{ type: 'image', data: 'AA', mimeType: 'image/png' }] }, '[image: image/png]'],
  ])(
    'that completes with %s adds its result for the model, and sends nothing to the user',
    async (_what, result, text) => {
      const mail = mailer();
      const { conversation, events } = setup(
        [mail.tool],
        [calling('mail'), { content: 'Done.' }, { content: 'Done.' }],
      );
      await conversation.prompt('Mail it');
      mail.resolve(result);
      await conversation.idle({ tasks: true });
      expect(conversation.messages.at(-2)?.content).toBe(`[System: async:mail] ${text}`);
      expect(types(events)).not.toContain('user-message');
    },
  );

  test('of a tool with a callback is added the same way, and also reported to onAsyncResult', async () => {
    let complete = (_context: undefined, _result: ToolResult): void => {};
    const spawn = {
      name: 'spawn',
      description: 'Spawns',
      parameters: { type: 'object', properties: {} },
      setCallback: (callback: typeof complete) => {
        complete = callback;
      },
      execute: () => asyncResult('Spawned.'),
    };
    const heard: unknown[] = [];
    const { conversation } = setup([spawn], [calling('spawn'), { content: 'Done.' }, { content: 'Good.' }], {
      onAsyncResult: (context, { forLLM }) => heard.push([context?.toolName, forLLM]),
    });
    await conversation.prompt('Go');
    complete(undefined, userResult('hatched'));
    complete(undefined, userResult('again'));
    await conversation.idle({ tasks: true });
    expect(contents(conversation.messages).slice(2)).toEqual([
      'Spawned.',
      'Done.',
      '[System: async:spawn] hatched',
      'Good.',
    ]);
    expect(heard).toEqual([['spawn', 'hatched']]);
  });

  test('completes after earlier prompts, in the scope of its own turn', async () => {
    const mail = mailer();
    const seen: unknown[] = [];
    const look = defineTool({
      name: 'look',
      description: 'Looks',
      execute: (_args, { data }) => seen.push(data.user),
    });
    const hold = Promise.withResolvers<object>();
    const { conversation } = setup(
      [mail.tool, look],
      [
        calling('mail'),
        { content: 'Done.' },
        () => hold.promise as never,
        calling('look'),
        { content: 'Done.' },
        { content: 'Done.' },
      ],
    );
    await conversation.prompt('Mail it', { scope: { data: { user: 'ada' } } });
    const b = conversation.prompt('b', { scope: { data: { user: 'bob' } } });
    mail.resolve('sent');
    await new Promise(setImmediate);
    const c = conversation.prompt('c');
    hold.resolve({ content: 'Done.' });
    await Promise.all([b, c]);
    const said = conversation.messages.flatMap(({ role, content }) => (role === 'user' ? [content] : []));
    expect(said).toEqual(['Mail it', 'b', '[System: async:mail] sent', 'c']);
    expect(seen).toEqual(['ada']);
  });

  test('survives an abort after its turn has ended, and can be cancelled', async () => {
    const mail = mailer();
    const stop = new AbortController();
    const { conversation, events } = setup(
      [mail.tool],
      [calling('mail'), { content: 'Done.' }, { content: 'Done.' }],
    );
    await conversation.prompt('Mail it', { signal: stop.signal });
    stop.abort();
    conversation.abort();
    const [task] = conversation.tasks;
    expect(conversation.tasks).toHaveLength(1);
    expect(conversation.cancel('task_of_nobody')).toBe(false);
    expect(conversation.cancel(task?.id ?? '', 'too late')).toBe(true);
    await conversation.idle({ tasks: true });
    expect(conversation.messages.at(-2)?.content).toMatch(/^\[System: async:mail\] .*too late/);
    expect(events.find(({ type }) => type === 'task-end')).toMatchObject({
      result: { error: { name: 'TaskCancelled' } },
    });
  });

  test('of another conversation in the same queue is not visible', async () => {
    const tasks = new TaskQueue();
    const [one, other] = [mailer(), mailer()];
    const mine = setup([one.tool], [calling('mail'), { content: 'Done.' }, { content: 'Done.' }], { tasks });
    const theirs = setup([other.tool], [calling('mail'), { content: 'Done.' }, { content: 'Done.' }], {
      tasks,
    });
    await mine.conversation.prompt('a');
    await theirs.conversation.prompt('b');
    expect(tasks.tasks).toHaveLength(2);
    expect(mine.conversation.tasks).toHaveLength(1);
    expect(mine.conversation.cancel(theirs.conversation.tasks[0]?.id ?? '')).toBe(false);
    other.resolve('x');
    await theirs.conversation.idle({ tasks: true });
    expect(types(mine.events)).not.toContain('task-end');
    one.resolve('y');
    await mine.conversation.idle({ tasks: true });
    expect(types(mine.events)).toContain('task-end');
  });

  test('reports its progress as task-progress events, and to the scope', async () => {
    const updates: unknown[] = [];
    const go = Promise.withResolvers<void>();
    const load = defineTool({
      name: 'load',
      description: 'Loads',
      execute: (_args, context) => {
        context.progress('begun');
        return context.background(async () => {
          await go.promise;
          context.progress('half');
        });
      },
    });
    const { conversation, events } = setup(
      [load],
      [calling('load'), { content: 'Done.' }, { content: 'Done.' }],
      {
        scope: { onUpdate: (update) => updates.push(update) },
      },
    );
    await conversation.prompt('Load it');
    go.resolve();
    await conversation.idle({ tasks: true });
    expect(events.filter(({ type }) => type.endsWith('-progress'))).toEqual([
      { type: 'call-progress', callId: 'c1', tool: 'load', arguments: {}, update: 'begun' },
      { type: 'task-progress', task: expect.objectContaining({ tool: 'load' }), update: 'half' },
    ]);
    expect(updates).toEqual(['begun', 'half']);
  });

  test('that completes while the run is suspended waits for the answer', async () => {
    const mail = mailer();
    const { conversation, events } = setup(
      [mail.tool, pay],
      [calling('mail', 'pay'), { content: 'Paid.' }, { content: 'Done.' }],
    );
    await conversation.prompt('Both');
    mail.resolve(userResult('Mailed.'));
    await conversation.idle({ tasks: true });
    expect(types(events).slice(-2)).toEqual(['user-message', 'task-end']);
    expect(contents(conversation.messages)).toEqual(['Both']);
    const [{ id } = { id: '' }] = conversation.pending;
    await conversation.answer([{ id, approved: true }]);
    await conversation.idle();
    expect(contents(conversation.messages).slice(2)).toEqual([
      'Started.',
      'paid',
      'Paid.',
      '[System: async:mail] Mailed.',
      'Done.',
    ]);
  });
});

describe('a suspended run', () => {
  test('accepts answers in any order, while prompts wait', async () => {
    const { conversation } = setup(
      [pay, locate],
      [calling('pay', 'locate'), { content: 'Paid.' }, { content: 'Next.' }],
    );
    expect(await conversation.prompt('Pay')).toMatchObject({ status: 'suspended' });
    const second = conversation.prompt('And then?');
    await conversation.idle();
    expect(conversation.pending.map(({ kind }) => kind)).toEqual(['approval', 'client']);
    const [a = '', b = ''] = conversation.pending.map(({ id }) => id);
    expect(await conversation.answer([{ id: b, result: 'Oslo' }])).toMatchObject({ status: 'suspended' });
    expect(await conversation.answer([{ id: a, approved: true }])).toMatchObject({ content: 'Paid.' });
    expect(await second).toMatchObject({ content: 'Next.' });
    expect(contents(conversation.messages)).toEqual([
      'Pay',
      '',
      'paid',
      'Oslo',
      'Paid.',
      'And then?',
      'Next.',
    ]);
  });

  test('is not idle from the call of `answer` until its turn has ended', async () => {
    const { conversation } = setup([pay], [calling('pay'), { content: 'Paid.' }]);
    await conversation.prompt('Pay');
    const [{ id } = { id: '' }] = conversation.pending;
    const answered = conversation.answer([{ id, approved: true }]);
    await conversation.idle();
    expect(contents(conversation.messages)).toEqual(['Pay', '', 'paid', 'Paid.']);
    await answered;
  });

  test('is idle again when a wrong answer has been refused', async () => {
    const amount = { type: 'object', properties: { amount: { type: 'integer' } } } as const;
    const { conversation } = setup([{ ...pay, parameters: amount }], [calling('pay')]);
    await conversation.prompt('Pay');
    const [{ id } = { id: '' }] = conversation.pending;
    const answered = conversation.answer([{ id, approved: true, arguments: { amount: 'much' } }]);
    await Promise.all([conversation.idle(), expect(answered).rejects.toMatchObject({ code: 514 })]);
    expect(conversation.pending).toHaveLength(1);
  });

  test('does not change if an answer is invalid, and rejects a second answer', async () => {
    const { conversation } = setup([pay], [calling('pay'), { content: 'Done.' }]);
    await expect(conversation.answer([])).rejects.toMatchObject({ name: 'InvalidAnswer' });
    await conversation.prompt('Pay');
    const before = conversation.toJSON();
    const [{ id } = { id: '' }] = conversation.pending;
    for (const wrong of [[{ id: 'x', approved: true }], [{ id }], 'yes'])
      await expect(conversation.answer(wrong as never)).rejects.toMatchObject({ name: 'InvalidAnswer' });
    expect(conversation.toJSON()).toEqual(before);
    const answer = [{ id, approved: true }];
    const twice = await Promise.allSettled([conversation.answer(answer), conversation.answer(answer)]);
    expect(twice.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(conversation.pending).toEqual([]);
  });

  test('can be aborted: its calls are answered, and the next prompt runs', async () => {
    const { conversation, events } = setup([greet, pay], [calling('greet', 'pay'), { content: 'Next.' }]);
    await conversation.prompt('Pay');
    const next = conversation.prompt('And then?');
    conversation.abort();
    expect(conversation.pending).toEqual([]);
    expect(await next).toMatchObject({ content: 'Next.' });
    expect(roles(conversation.messages)).toBe('user assistant tool tool user assistant');
    expect(contents(conversation.messages)[2]).toBe('Hello!');
    expect(historyFaults(conversation.messages)).toEqual([]);
    const ends = events.flatMap((event) => (event.type === 'turn-end' ? [event] : []));
    expect(ends.map(({ turn, result }) => [turn.number, turn.resumedBy, result?.status])).toEqual([
      [1, undefined, 'suspended'],
      [1, 'abort', 'aborted'],
      [2, undefined, 'completed'],
    ]);
  });

  test('resumes in the scope of its turn, overridden by the scope of the answer', async () => {
    const seen: unknown[] = [];
    const order = defineTool({
      name: 'order',
      description: 'Orders',
      approval: true,
      execute: (_args, { channel, data }) => seen.push([channel, data.user]),
    });
    const { conversation } = setup([order], [calling('order'), { content: 'Done.' }]);
    await conversation.prompt('a', { scope: { channel: 'web', data: { user: 'ada' } } });
    const [{ id } = { id: '' }] = conversation.pending;
    await conversation.answer([{ id, approved: true }], { scope: { data: { user: 'boss' } } });
    expect(seen).toEqual([['web', 'boss']]);
  });
});

describe('an aborted turn', () => {
  test('answers its open calls, ends its background work, and lets the next turn start', async () => {
    const mail = mailer();
    const begun = Promise.withResolvers<void>();
    const hang = defineTool({
      name: 'hang',
      description: 'Hangs',
      execute: () => {
        begun.resolve();
        return new Promise(() => {});
      },
    });
    const { conversation } = setup(
      [mail.tool, hang],
      [calling('mail', 'hang'), { content: 'B' }, { content: 'Done.' }],
    );
    const a = conversation.prompt('a');
    const b = conversation.prompt('b');
    await begun.promise;
    conversation.abort();
    expect(await a).toMatchObject({ status: 'aborted' });
    expect(await b).toMatchObject({ content: 'B' });
    await conversation.idle({ tasks: true });
    expect(historyFaults(conversation.messages)).toEqual([]);
    expect(conversation.messages.at(-2)?.content).toMatch(/^\[System: async:mail\] /);
    conversation.abort();
    await conversation.idle();
  });
});
