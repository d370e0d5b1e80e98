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

describe('runToolLoop', () => {
  test.each<[string, readonly unknown[], string]>([
    ['an answer to no call', [user, answer('c1')], "messages[1] answers 'c1', which no assistant message"],
    ['two answers to one call', [user, calling('c1'), answer('c1'), answer('c1')], 'messages[3]'],
    ['an answer that comes late', [user, calling('c1'), user, answer('c1')], 'messages[3]'],
    ['an answer without a call id', [calling('c1'), { role: 'tool', content: 'x' }], 'which call it answers'],
    ['an answer that is no text', [calling('c1'), { ...answer('c1'), content: { a: 1 } }], 'no text'],
    ['a role that nobody has', [{ role: 'bot', content: 'x' }], 'messages[0] has the role "bot"'],
    ['a message that is none', [user, 'Hello'], 'messages[1] is no message'],
    [
      'a content that is no text',
      [{ role: 'user', content: 7 }],
      'messages[0] has a content that is no text',
    ],
    [
      'calls beside a content that is no text',
      [{ ...calling('c1'), content: 7 }, answer('c1')],
      'messages[0] has a content that is no text',
    ],
    ['no content', [{ role: 'user' }], 'messages[0] has a content that is no text'],
    ['an assistant without a word', [{ role: 'assistant', content: null }], 'messages[0] has a content'],
    ['calls that are no array', [{ ...calling(), tool_calls: {}, content: '' }], 'calls that are no array'],
    ['a call without an id', [calling('')], 'a call that is none'],
    [
      'arguments that are no text',
      [
        {
          ...calling(),
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'x', arguments: {} } }],
        },
      ],
      'a call that is none',
    ],
    ['two calls of one id', [calling('c1', 'c1')], 'two calls of the same id'],
  ])('refuses a history with %s before anything is asked', async (_what, messages, problem) => {
    const { config, provider } = setup();
    const refused = { name: 'InvalidOptions', message: expect.stringContaining(problem) };
    await expect(runToolLoop(config, messages as Message[])).rejects.toMatchObject(refused);
    await expect(streamToolLoop(config, messages as Message[]).result).rejects.toMatchObject(refused);
    expect(() => new Conversation({ ...config, messages: messages as Message[] })).toThrow(problem);
    expect(provider.requests).toEqual([]);
  });

  test('refuses a history that is no list, and says what one is', async () => {
    const { config } = setup();
    const refused = runToolLoop(config, 'Hello' as never);
    await expect(refused).rejects.toThrow(/the history: they are no array.*messages: \[\{ role: 'user'/s);
  });

  test.each([null, undefined])('takes calls beside a content that is %p', async (content) => {
    const { config } = setup();
    const given = [user, { ...calling('c1'), content }, answer('c1')] as Message[];
    const run = await runToolLoop(config, given);
    expect(run.messages.slice(0, 3)).toEqual(given);
  });

  test('names all that is wrong with a history', async () => {
    const { config } = setup();
    const wrong = [answer('a'), user, 7, answer('b')] as unknown as Message[];
    const error = await runToolLoop(config, wrong).catch((thrown: unknown) => thrown);
    expect(ToolwrightError.is(error) && error.message).toMatch(
      /messages\[0\].*messages\[2\].*messages\[3\]/s,
    );
  });

  test('answers calls that nobody answered with an error, in call order, and says so in the log', async () => {
    const { config, provider, warned } = setup();
    const given = [user, calling('c1', 'c2', 'c3'), answer('c3'), answer('c1'), user] as Message[];
    const run = await runToolLoop(config, given);
    expect(run.messages.slice(2, 5)).toEqual([
      answer('c1'),
      {
        role: 'tool',
        content: expect.stringContaining("The call of 'look' was interrupted"),
        tool_call_id: 'c2',
      },
      answer('c3'),
    ]);
    expect(provider.requests[0]?.messages).toEqual(run.messages.slice(0, -1));
    expect(given).toHaveLength(5);
    expect(warned).toEqual([[expect.stringContaining('had no answers'), { tools: ['look'] }]]);
  });

  test('asks with a history that strict servers take, or refuses it', async () => {
    const ids = fc.constantFrom('a', 'b', 'c');
    const message: fc.Arbitrary<unknown> = fc.oneof(
      { weight: 4, arbitrary: fc.constant(user) },
      { weight: 4, arbitrary: fc.uniqueArray(ids).map((given) => ({ ...calling(...given), content: '' })) },
      { weight: 6, arbitrary: ids.map(answer) },
      { weight: 1, arbitrary: fc.jsonValue() },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(message, { maxLength: 6 }), async (messages) => {
        const { config, provider } = setup();
        try {
          await runToolLoop(config, messages as Message[]);
        } catch (error) {
          expect(error).toMatchObject({ name: 'InvalidOptions' });
        }
        for (const request of provider.requests) expect(historyFaults(request.messages)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});

test('Conversation has a valid history from the beginning', async () => {
  const { config } = setup();
  const conversation = new Conversation({ ...config, messages: [user, calling('c1')] as Message[] });
  expect(historyFaults(conversation.messages)).toEqual([]);
  expect(await conversation.prompt('And?')).toMatchObject({ status: 'completed' });
  expect(historyFaults(conversation.messages)).toEqual([]);
});
