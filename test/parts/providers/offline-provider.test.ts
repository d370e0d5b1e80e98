import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { AssistantMessage, Message } from 'toolwright';
import { OfflineProvider } from 'toolwright/offline';
import { ASSISTANT_TOOLS, ask, callsFor, offer } from './offline-tools.js';

const PROMPT = 'What is 12 * (3 + 4), and which of my notes mention invoices?';

/** The history after the calls of a prompt returned `contents`. */
async function answered(before: readonly Message[], contents: readonly string[]): Promise<Message[]> {
  const { toolCalls } = await ask(before);
  const tool_calls = toolCalls.map(({ id, name, arguments: args }) => ({
    id,
    type: 'function' as const,
    function: { name, arguments: JSON.stringify(args) },
  }));
  const assistant: AssistantMessage = { role: 'assistant', content: null, tool_calls };
  const results = contents.map((content, index) => {
    return { role: 'tool' as const, content, tool_call_id: toolCalls[index]?.id ?? '' };
  });
  return [...before, assistant, ...results];
}

describe('replies', () => {
  test('a matching request returns numbered calls with finish reason tool_calls', async () => {
    const reply = await ask(PROMPT);
    expect(reply.finishReason).toBe('tool_calls');
    expect(reply.content).toBe('');
    expect(reply.toolCalls.map(({ id }) => id)).toEqual(['call_1', 'call_2']);
  });

  test('results are quoted with the descriptions of their tools, and no tool is called again', async () => {
    const reply = await ask(await answered([{ role: 'user', content: PROMPT }], ['84', '2 notes']));
    expect(reply).toEqual({
      content: 'Evaluate an arithmetic expression: 84\nSearch the notes by words in title or text: 2 notes',
      toolCalls: [],
      finishReason: 'stop',
    });
  });

  test('an error result is quoted unchanged', async () => {
    const errors = ['tool not found: calculate', '["an error in a note"]'];
    const reply = await ask(await answered([{ role: 'user', content: PROMPT }], errors));
    expect(reply.content.split('\n')).toEqual([
      'Evaluate an arithmetic expression: tool not found: calculate',
      'Search the notes by words in title or text: ["an error in a note"]',
    ]);
  });

  test('the numbering of call ids continues from the history, not from ids quoted in results', async () => {
    const history = await answered([{ role: 'user', content: PROMPT }], ['84', '"id":"call_77"']);
    const reply = await ask([...history, { role: 'user', content: 'Which invoices are paid?' }]);
    expect(reply.toolCalls).toEqual([{ id: 'call_3', name: 'list_invoices', arguments: { status: 'paid' } }]);
  });

  test('a prompt that matches no tool returns a notice that lists the tools', async () => {
    const { content, finishReason } = await ask('Tell me a joke');
    expect(finishReason).toBe('stop');
    expect(content).toContain('offline stand-in, not a language model');
    expect(content).toContain('- Evaluate an arithmetic expression\n');
    expect(content).toContain('- List invoices, newest first');
  });

  test('a request without tools or without a user message returns a notice instead of failing', async () => {
    const bare = await new OfflineProvider().chat({ model: 'm', messages: [], options: {} });
    expect(bare).toMatchObject({ toolCalls: [], finishReason: 'stop' });
    expect(bare.content).toContain('nothing, without tools');
  });

  test('a tool without a description is listed by its name', async () => {
    expect((await ask('hello', [offer('ping', '')])).content).toContain('- ping');
  });

  test('the text parts of a message are read', async () => {
    const parts = [
      { type: 'text', text: 'What is 6 * 7?' },
      { type: 'image_url', image_url: { url: 'data:,' } },
    ];
    const { toolCalls } = await ask([{ role: 'user', content: parts }]);
    expect(toolCalls.map((call) => call.arguments)).toEqual([{ expression: '6 * 7' }]);
  });

  test('a report of earlier background work is repeated and calls no tool', async () => {
    const reply = await ask('[System: async:list_invoices] 3 invoices are open');
    expect(reply).toMatchObject({ content: '3 invoices are open', toolCalls: [] });
  });
});

describe('long messages', () => {
  const pieces = [
    'a, ',
    '1+1+',
    'AAAA',
    '1, ',
    'Ab, ',
    "'a, ",
    '" ',
    '(',
    '-',
    ' ',
    '1-',
    'a@',
    '/a',
    '[',
    'é',
  ];
  const bigger = ['notes about x. ', '3:30 pm ', '2024-01-02 ', 'not a ', 'J.', '1,111,', 'and ', '\n'];
  const fillTo = (length: number, start: string, piece: string) =>
    (start + piece.repeat(length)).slice(0, length);

  test.each([...pieces, ...bigger])(
    'a message of the maximum length full of %j is answered',
    async (piece) => {
      for (const start of ['', 'find notes ', '[System: async:'])
        expect((await ask(fillTo(4000, start, piece))).finishReason).toBeDefined();
    },
  );

  test.each([...pieces, ...bigger])(
    '100,000 characters of %j call no tool and return the length limit',
    async (piece) => {
      const { content, toolCalls } = await ask(fillTo(100_000, 'find notes ', piece));
      expect(toolCalls).toEqual([]);
      expect(content).toContain('can read at most 4000 characters');
    },
  );

  test('a value is passed complete up to the length limit, and never truncated', async () => {
    const add = (text: string) => callsFor(`Add a note titled "Log" with the text "${text}"`);
    const whole = 'x'.repeat(3900);
    expect(await add(whole)).toEqual([['add_note', { title: 'Log', text: whole }]]);
    expect(await add('x'.repeat(4000))).toEqual([]);
  });
});

describe('properties of all replies', () => {
  const words =
    'what is the open invoices of Acme and notes about 12 * 3 , ? ; "milk" 2024-01-02 Rome 5% I \' (';
  const texts = fc.oneof(
    fc.string(),
    fc.array(fc.constantFrom(...words.split(' '))).map((some) => some.join(' ')),
  );

  test('the same request returns the same reply', async () => {
    await fc.assert(
      fc.asyncProperty(texts, async (text) => expect(await ask(text)).toEqual(await ask(text))),
    );
  });

  test('every call has its required arguments and only arguments from the schema', async () => {
    const check = async (text: string) => {
      for (const { name, arguments: args } of (await ask(text)).toolCalls) {
        const { parameters } = ASSISTANT_TOOLS.find((tool) => tool.function.name === name)!.function;
        expect(Object.keys(args)).toEqual(expect.arrayContaining([...(parameters.required ?? [])]));
        expect(Object.keys(parameters.properties ?? {})).toEqual(expect.arrayContaining(Object.keys(args)));
      }
    };
    await fc.assert(fc.asyncProperty(texts, check));
  });

  test('no tool is called after the turn has a result', async () => {
    const result = { role: 'tool', content: 'done', tool_call_id: 'call_1' } as const;
    const check = async (text: string) => {
      expect((await ask([{ role: 'user', content: text }, result])).toolCalls).toEqual([]);
    };
    await fc.assert(fc.asyncProperty(texts, check));
  });
});
