import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Conversation, type Message, runToolLoop, streamToolLoop, ToolwrightError } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { historyFaults } from './strict-history.js';

const user = { role: 'user', content: 'Hello' };
const calling = (...ids: string[]) => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })),
});
const answer = (id: string) => ({ role: 'tool', content: `of ${id}`, tool_call_id: id });

function setup() {
  const warned: unknown[] = [];
  const log = (...entry: unknown[]) => void warned.push(entry);
  const provider = new ScriptedProvider([{ content: 'Done.' }, { content: 'Done.' }]);
  const logger = { debug: log, info: log, warn: log, error: log };
  return { provider, warned, config: { provider, model: 'm', logger } };
}

interface Refusal {
  readonly history: 'repair' | 'refuse' | undefined;
  readonly problem: string;
}

async function expectRefused(messages: readonly Message[], { history, problem }: Refusal) {
  const { provider, config } = setup();
  const caring = { ...config, history };
  const refused = { name: 'InvalidOptions', message: expect.stringContaining(problem) };
  await expect(runToolLoop(caring, messages)).rejects.toMatchObject(refused);
  await expect(streamToolLoop(caring, messages).result).rejects.toMatchObject(refused);
  expect(() => new Conversation({ ...caring, messages })).toThrow(problem);
  expect(provider.requests).toEqual([]);
}

describe('runToolLoop', () => {
  test.each<[string, readonly unknown[], string]>([
    ['an answer without a call id', [calling('c1'), { role: 'tool', content: 'x' }], 'has no `tool_call_id`'],
    ['an answer that is not text', [calling('c1'), { ...answer('c1'), content: { a: 1 } }], 'not a string'],
    ['an unknown role', [{ role: 'bot', content: 'x' }], 'messages[0] has the role "bot"'],
    ['an invalid message', [user, 'Hello'], 'messages[1] is not a message'],
    [
      'a content that is not text',
      [{ role: 'user', content: 7 }],
      'messages[0] has a content that is not a string',
    ],
    [
      'calls and a content that is not text',
      [{ ...calling('c1'), content: 7 }, answer('c1')],
      'messages[0] has a content that is not a string',
    ],
    ['no content', [{ role: 'user' }], 'messages[0] has a content that is not a string'],
    [
      'an assistant message without content',
      [{ role: 'assistant', content: null }],
      'messages[0] has a content',
    ],
    [
      'calls that are not an array',
      [{ ...calling(), tool_calls: {}, content: '' }],
      'calls that are not an array',
    ],
    ['a call without an id', [calling('')], 'an invalid call'],
    [
      'arguments that are not text',
      [
        {
          ...calling(),
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'x', arguments: {} } }],
        },
      ],
      'an invalid call',
    ],
    [
      'a misspelt key',
      [{ role: 'assistant', content: 'x', toolCalls: [] }],
      "messages[0] has the key 'toolCalls'",
    ],
  ])('rejects a history with %s before any request', async (_what, messages, problem) => {
    for (const history of ['repair', 'refuse', undefined] as const)
      await expectRefused(messages as Message[], { history, problem });
  });

  test.each<[string, readonly unknown[], string]>([
    ['an answer to no call', [user, answer('c1')], "messages[1] answers 'c1', which no assistant message"],
    ['two answers to one call', [user, calling('c1'), answer('c1'), answer('c1')], 'messages[3]'],
    ['an answer that comes late', [user, calling('c1'), user, answer('c1')], 'messages[3]'],
    ['a call without an answer', [user, calling('c1'), user], "messages[1] calls 'c1', which no message"],
    ['a call without an answer at its end', [user, calling('c1')], "messages[1] calls 'c1'"],
    [
      'answers in another order',
      [calling('c1', 'c2'), answer('c2'), answer('c1')],
      'messages[0] has its answers in another order',
    ],
    ['two calls of one id', [calling('c1', 'c1'), answer('c1')], 'messages[0] has two calls of the same id'],
  ])(
    "with history: 'refuse' rejects a history with %s before any request",
    async (_what, messages, problem) => {
      await expectRefused(messages as Message[], { history: 'refuse', problem });
    },
  );

  test('rejects a history that is not an array, with an example', async () => {
    const { config } = setup();
    const refused = runToolLoop(config, 'Hello' as never);
    await expect(refused).rejects.toThrow(
      /the history: messages is not an array.*messages: \[\{ role: 'user'/s,
    );
  });

  test.each([null, undefined])('accepts calls in a message whose content is %p', async (content) => {
    const { config } = setup();
    const given = [user, { ...calling('c1'), content }, answer('c1')] as Message[];
    const run = await runToolLoop(config, given);
    expect(run.messages.slice(0, 3)).toEqual(given);
  });

  test('reports all faults of a history', async () => {
    const { config } = setup();
    const wrong = [answer('a'), user, 7, answer('b')] as unknown as Message[];
    const refusing = { ...config, history: 'refuse' } as const;
    const error = await runToolLoop(refusing, wrong).catch((thrown: unknown) => thrown);
    expect(ToolwrightError.is(error) && error.message).toMatch(
      /messages\[0\].*messages\[2\].*messages\[3\]/s,
    );
  });

  test('adds error answers to unanswered calls, in call order, and logs the repair', async () => {
    const { config, provider, warned } = setup();
    const given = [user, calling('c1', 'c2', 'c3'), answer('c3'), answer('c1'), user] as Message[];
    const run = await runToolLoop(config, given);
    expect(run.messages.slice(2, 5)).toEqual([
      answer('c1'),
      {
        role: 'tool',
        content: expect.stringContaining("The call of 'look' was interrupted"),
        tool_call_id: 'c2',
        isError: true,
      },
      answer('c3'),
    ]);
    expect(provider.requests[0]?.messages).toEqual(run.messages.slice(0, -1));
    expect(given).toHaveLength(5);
    expect(warned).toEqual([
      [
        'The given history was repaired',
        {
          repairs: [
            "messages[3]: the answer to 'c1' was moved to its place after messages[1]",
            "messages[1]: the call 'c2' of 'look' had no answer, so one was added",
          ],
        },
      ],
    ]);
  });

  test.each<[string, readonly unknown[], readonly unknown[], string]>([
    [
      'leaves out an answer to no call',
      [answer('c1'), user],
      [user],
      "messages[0]: an answer to 'c1' was left out, which no message before it calls",
    ],
    [
      'leaves out a second answer',
      [calling('c1'), answer('c1'), { ...answer('c1'), content: 'other' }, user],
      [calling('c1'), answer('c1'), user],
      "messages[2]: an answer to 'c1' was left out, which is already answered",
    ],
    [
      'moves a late answer to its call',
      [calling('c1'), user, answer('c1')],
      [calling('c1'), answer('c1'), user],
      "messages[2]: the answer to 'c1' was moved to its place after messages[0]",
    ],
    [
      'renames the second of two calls with the same id and its answer',
      [calling('c1', 'c1'), answer('c1'), { ...answer('c1'), content: 'second' }],
      [calling('c1', 'c1_2'), answer('c1'), { ...answer('c1_2'), content: 'second' }],
      "messages[0]: the second call 'c1' was renamed to 'c1_2'",
    ],
  ])('repairs a history: %s, and logs it once', async (_what, given, repaired, note) => {
    const { config, provider, warned } = setup();
    const run = await runToolLoop(config, given as Message[]);
    expect(provider.requests[0]?.messages).toEqual(repaired);
    expect(run.messages.slice(0, -1)).toEqual(repaired);
    expect(warned).toEqual([['The given history was repaired', { repairs: [note] }]]);
  });

  test('gives a late answer to the latest unanswered call with its id', async () => {
    const { config, provider } = setup();
    const given = [calling('c1'), user, calling('c1'), answer('c1'), user, answer('c1')] as Message[];
    await runToolLoop(config, given);
    expect(provider.requests[0]?.messages[1]?.content).toContain('was interrupted');
    expect(provider.requests[0]?.messages).toHaveLength(6);
  });

  test.each(['repair', 'refuse'] as const)(
    'with history: %p accepts a valid history unchanged',
    async (history) => {
      const { config, provider, warned } = setup();
      const given = [
        user,
        calling('c2', 'c1'),
        answer('c2'),
        answer('c1'),
        calling('c1'),
        answer('c1'),
      ] as Message[];
      const run = await runToolLoop({ ...config, history }, given);
      expect(run.messages.slice(0, -1)).toEqual(given);
      expect(provider.requests[0]?.messages).toEqual(given);
      expect(warned).toEqual([]);
    },
  );

  test.each([
    ['repair', 0],
    ['refuse', 1],
  ] as const)(
    'with history: %p sends a history that strict servers accept, or rejects it',
    async (history, least) => {
      let refused = 0;
      const ids = fc.constantFrom('a', 'b', 'c');
      const message: fc.Arbitrary<unknown> = fc.oneof(
        { weight: 4, arbitrary: fc.constant(user) },
        {
          weight: 4,
          arbitrary: fc.array(ids, { maxLength: 3 }).map((given) => ({ ...calling(...given), content: '' })),
        },
        { weight: 6, arbitrary: ids.map(answer) },
      );
      await fc.assert(
        fc.asyncProperty(fc.array(message, { maxLength: 6 }), async (messages) => {
          const { config, provider } = setup();
          try {
            await runToolLoop({ ...config, history }, messages as Message[]);
          } catch (error) {
            expect(error).toMatchObject({ name: 'InvalidOptions' });
            refused += 1;
          }
          for (const request of provider.requests) expect(historyFaults(request.messages)).toEqual([]);
        }),
        { numRuns: 300 },
      );
      expect(Math.min(refused, 1)).toBe(least);
    },
  );
});

test('Conversation repairs its initial history, and logs it once', async () => {
  const { config, warned } = setup();
  const conversation = new Conversation({ ...config, messages: [user, calling('c1')] as Message[] });
  expect(historyFaults(conversation.messages)).toEqual([]);
  expect(warned).toHaveLength(1);
  expect(await conversation.prompt('And?')).toMatchObject({ status: 'completed' });
  expect(historyFaults(conversation.messages)).toEqual([]);
  expect(warned).toHaveLength(1);
});
