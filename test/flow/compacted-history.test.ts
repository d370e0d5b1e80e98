import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Conversation, defineTool, keepRecent, type Message, runToolLoop } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { historyFaults } from './strict-history.js';

const user = (content: string): Message => ({ role: 'user', content });
const said = (content: string): Message => ({ role: 'assistant', content });
const calling = (...ids: string[]): Message => ({
  role: 'assistant',
  content: '',
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })),
});
const answer = (id: string, content = `of ${id}`): Message => ({ role: 'tool', content, tool_call_id: id });
const look = defineTool({ name: 'look', description: 'Looks', parameters: {}, execute: () => 'seen' });

function setup(replies: readonly object[] = [{ content: 'Done.' }]) {
  const warned: unknown[] = [];
  const log = (...entry: unknown[]) => void warned.push(entry);
  const logger = { debug() {}, info() {}, warn: log, error: log };
  const provider = new ScriptedProvider(replies as never);
  return { provider, warned, config: { provider, model: 'm', logger, tools: [look] } };
}

const CALLS = { toolCalls: [{ id: 'c1', name: 'look', arguments: {} }] };

describe('compactHistory', () => {
  test('selects the messages of each request, and the history of the run stays complete', async () => {
    const { provider, config, warned } = setup([CALLS, { content: 'Done.' }]);
    const seen: unknown[] = [];
    const run = await runToolLoop(
      {
        ...config,
        compactHistory: async (messages, { step, usage, model, signal }) => {
          seen.push([step, messages.length, usage.totalTokens, model, signal]);
          return messages.slice(2);
        },
      },
      [user('a'), said('b'), user('c')],
    );
    expect(seen).toEqual([
      [1, 3, 0, 'm', undefined],
      [2, 5, 0, 'm', undefined],
    ]);
    expect(provider.requests.map(({ messages }) => messages.map(({ role }) => role))).toEqual([
      ['user'],
      ['user', 'assistant', 'tool'],
    ]);
    expect(run.messages).toHaveLength(6);
    expect(warned).toEqual([]);
  });

  test('never separates a call from its answer, and the repair is logged once', async () => {
    const { provider, config, warned } = setup([CALLS, { content: 'Done.' }]);
    const history = [user('a'), calling('c1', 'c2'), answer('c1'), answer('c2'), user('b')];
    await runToolLoop(
      {
        ...config,
        compactHistory: (messages) => [
          answer('c7'),
          calling('c9'),
          ...messages.filter((message) => message.role !== 'tool' || message.tool_call_id !== 'c2'),
        ],
      },
      history,
    );
    expect(provider.requests[0]?.messages).toEqual(history);
    expect(provider.requests[1]?.messages.slice(0, 5)).toEqual(history);
    expect(warned).toEqual([
      [
        'The history that compactHistory returned was repaired',
        {
          repairs: [
            "messages[0]: an answer to 'c7' was left out, which no message before it calls",
            "messages[1]: the call 'c9' of 'look' was left out, because it has no answer",
            "messages[3]: the call 'c2' of 'look' had no answer, so one was added",
          ],
        },
      ],
    ]);
  });

  test('a copied call gets the answer with its id', async () => {
    const { provider, config } = setup();
    const history = [user('a'), calling('c1'), answer('c1'), user('b')];
    const compactHistory = () => [structuredClone(history[1] as Message), user('b')];
    await runToolLoop({ ...config, compactHistory }, history);
    expect(provider.requests[0]?.messages).toEqual(history.slice(1));
  });

  test('messages of prepareStep take precedence', async () => {
    const { provider, config } = setup();
    const compactHistory = () => {
      throw new Error('not asked');
    };
    const prepareStep = () => ({ messages: [user('only this')] });
    await runToolLoop({ ...config, compactHistory, prepareStep }, [user('a')]);
    expect(provider.requests[0]?.messages).toEqual([user('only this')]);
  });

  test('fails the run with the fault if it returns an invalid history', async () => {
    const { provider, config } = setup();
    const compactHistory = () => [{ role: 'bot' }] as never;
    const run = await runToolLoop({ ...config, compactHistory }, [user('a')]);
    expect(run).toMatchObject({ status: 'failed', error: { name: 'RequestRefused' } });
    expect(run.error?.message).toMatch(/what compactHistory returns: messages\[0\] has the role "bot"/);
    expect(provider.requests).toEqual([]);
  });

  test.each(['compactHistory', 'prepareStep'])('an abort ends a run whose %s never returns', async (name) => {
    const { provider, config } = setup();
    const aborting = new AbortController();
    const never = () => {
      queueMicrotask(() => aborting.abort());
      return new Promise<never>(() => {});
    };
    const run = await runToolLoop({ ...config, [name]: never, signal: aborting.signal }, [user('a')]);
    expect(run.status).toBe('aborted');
    expect(provider.requests).toEqual([]);
  });

  test('that throws because the run is aborted leaves the run aborted', async () => {
    const { config } = setup();
    const stop = new AbortController();
    const compactHistory = async () => {
      stop.abort();
      throw stop.signal.reason;
    };
    const run = await runToolLoop({ ...config, compactHistory, signal: stop.signal }, [user('a')]);
    expect(run).toMatchObject({ status: 'aborted', iterations: 0 });
  });

  test('receives the system prompt in a Conversation, which stores all messages', async () => {
    const { provider, config } = setup([{ content: '1' }, { content: '2' }]);
    const conversation = new Conversation({
      ...config,
      systemPrompt: 'Be brief.',
      compactHistory: keepRecent({ turns: 1 }),
    });
    await conversation.prompt('a');
    await conversation.prompt('b');
    expect(provider.requests[1]?.messages).toEqual([{ role: 'system', content: 'Be brief.' }, user('b')]);
    expect(conversation.messages).toHaveLength(4);
  });
});

describe('keepRecent', () => {
  const system: Message = { role: 'system', content: 'Be brief.' };

  test('keeps the system messages and the last turns', () => {
    const history = [
      system,
      said('hello'),
      user('1'),
      said('a'),
      user('2'),
      calling('c'),
      answer('c'),
      user('3'),
    ];
    expect(keepRecent({ turns: 2 })(history)).toEqual([system, ...history.slice(4)]);
    expect(keepRecent({ turns: 3 })(history)).toEqual(history);
    expect(keepRecent({ turns: 1 })(history)).toEqual([system, user('3')]);
  });

  test('truncates long results of earlier turns, and marks them', () => {
    const long = 'x'.repeat(500);
    const history = [user('1'), calling('c'), answer('c', long), user('2'), calling('d'), answer('d', long)];
    const kept = keepRecent({ maxResultChars: 100 })(history);
    expect(kept[2]).toEqual(
      answer('c', `${'x'.repeat(100)}\n[400 more characters of this old result were left out]`),
    );
    expect(kept.toSpliced(2, 1)).toEqual(history.toSpliced(2, 1));
  });

  test('removes images of earlier turns, and marks them', () => {
    const parts = [{ type: 'image' as const, data: 'AAAA', mimeType: 'image/png' }];
    const seen = { ...answer('c', 'A picture'), parts } as Message;
    const history = [user('1'), calling('c'), seen, user('2')];
    expect(keepRecent({ turns: 2 })(history)[2]).toEqual(answer('c', 'A picture\n[image left out]'));
    expect(keepRecent({ turns: 2, maxResultChars: Infinity })(history)).toEqual(history);
  });

  test('with tokens truncates results first, then drops the oldest turns, then steps of the last turn', () => {
    const long = 'x'.repeat(2_000);
    const turn = (id: string) => [user(id), calling(id), answer(id, long)];
    const two = [...turn('a'), ...turn('b')];
    const cut = keepRecent({ tokens: 800, maxResultChars: 100 })(two);
    expect(cut.map(({ role }) => role)).toEqual(two.map(({ role }) => role));
    expect(cut[2]?.content).toContain('left out');
    expect(cut.at(-1)).toEqual(two.at(-1));
    expect(keepRecent({ tokens: 800, maxResultChars: Infinity })(two)).toEqual(turn('b'));
    const one = [user('a'), calling('1'), answer('1', long), calling('2'), answer('2', long)];
    expect(keepRecent({ tokens: 800, maxResultChars: Infinity })(one)).toEqual([one[0], one[3], one[4]]);
    expect(keepRecent({ tokens: 1 })([system, ...one])).toEqual([system, one[0], one[3], one[4]]);
  });

  test('with tokens keeps the beginning of a growing history until it is too large again', () => {
    const keep = keepRecent({ tokens: 1_000 });
    let before: readonly Message[] = [];
    let changes = 0;
    const history: Message[] = [];
    for (let turn = 0; turn < 100; turn += 1) {
      for (const message of [user('x'.repeat(100)), said('y'.repeat(60))]) {
        history.push(message);
        const kept = keep(history);
        const isLonger = before.every((earlier, index) => kept[index] === earlier);
        if (!isLonger) changes += 1;
        before = kept;
      }
    }
    // 48 tokens a turn: 20 turns fit, and 15 remain after each cut.
    expect(changes).toBeGreaterThan(10);
    expect(changes).toBeLessThan(22);
  });

  test.each([{}, { turns: undefined }, { turns: 0 }, { tokens: '9' }, { turn: 1 }, undefined])(
    'refuses %p',
    (options) => {
      expect(() => keepRecent(options as never)).toThrow(expect.objectContaining({ name: 'InvalidOptions' }));
    },
  );

  const text = fc.nat({ max: 400 }).map((length) => 'x'.repeat(length));
  const block = fc.oneof(
    text.map((content) => [user(content)]),
    text.map((content) => [said(`a${content}`)]),
    text.map((content): Message[] => [{ role: 'system', content }]),
    fc
      .uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1 })
      .chain((ids) =>
        fc
          .tuple(...ids.map((id) => text.map((content) => answer(id, content))))
          .map((answers) => [calling(...ids), ...answers]),
      ),
  );
  const options = fc
    .record(
      {
        turns: fc.integer({ min: 1, max: 4 }),
        tokens: fc.integer({ min: 1, max: 600 }),
        maxResultChars: fc.nat({ max: 200 }),
      },
      { requiredKeys: [] },
    )
    .filter((given) => Object.keys(given).length > 0);

  test('returns a valid history, never longer, with all system messages and the last user message', () => {
    fc.assert(
      fc.property(fc.array(block, { maxLength: 14 }), options, (blocks, given) => {
        const history = blocks.flat();
        const kept = keepRecent(given)(history);
        expect(historyFaults(kept)).toEqual([]);
        expect(kept.at(-1)).toBe(history.at(-1));
        expect(kept.length).toBeLessThanOrEqual(history.length);
        expect(JSON.stringify(kept).length).toBeLessThanOrEqual(JSON.stringify(history).length);
        const systems = (messages: readonly Message[]) => messages.filter(({ role }) => role === 'system');
        expect(systems(kept)).toEqual(systems(history));
        const lastUser = history.findLast(({ role }) => role === 'user');
        if (lastUser !== undefined) expect(kept).toContain(lastUser);
        expect(keepRecent(given)(history)).toEqual(kept);
      }),
      { numRuns: 300 },
    );
  });

  test('with tokens keeps a history that fits completely', () => {
    fc.assert(
      fc.property(fc.array(block, { maxLength: 14 }), (blocks) => {
        const history = blocks.flat();
        expect(keepRecent({ tokens: 100_000 })(history)).toEqual(history);
        const least = keepRecent({ tokens: 1, maxResultChars: 0 })(history);
        const kept = keepRecent({ tokens: 300 })(history);
        expect(kept.length).toBeGreaterThanOrEqual(least.length);
      }),
    );
  });

  test('never produces a request that a strict server refuses', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(block, { maxLength: 8 }), options, async (blocks, given) => {
        const { provider, config, warned } = setup([CALLS, CALLS, { content: 'Done.' }]);
        await runToolLoop({ ...config, compactHistory: keepRecent(given) }, [...blocks.flat(), user('go')]);
        for (const { messages } of provider.requests) expect(historyFaults(messages)).toEqual([]);
        expect(warned).toEqual([]);
      }),
      { numRuns: 50 },
    );
  });
});
