import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  defineTool,
  type LLMProvider,
  parseToolRequest,
  runToolLoop,
  ToolCallParser,
  ToolRegistry,
  withTextTools,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { CALL_FORMATS, REASONING } from './text-call-formats.js';

const TOOLS = ['rm', 'ls'];

function registry(called: string[]): ToolRegistry {
  const tools = new ToolRegistry();
  for (const name of TOOLS)
    tools.register(
      defineTool({
        name,
        description: `Runs ${name}`,
        parameters: { type: 'object', properties: { path: { type: 'string' } } },
        execute: ({ path }: { path?: string }) => {
          called.push(`${name} ${path}`);
          return 'done';
        },
      }),
    );
  return tools;
}

/** A provider that streams the content in pieces of the given size. */
function streaming(content: string, size: number): LLMProvider {
  const response = { content, toolCalls: [], finishReason: 'stop' } as const;
  return {
    chat: async () => response,
    async *stream() {
      for (let at = 0; at < content.length; at += size)
        yield { type: 'text-delta', text: content.slice(at, at + size) } as const;
      yield { type: 'response', response } as const;
    },
  };
}

/** The calls found in a text as name and arguments: by the parser, by text tools, and by streamed text tools. */
async function callsIn(content: string, size: number): Promise<unknown[][]> {
  const plain = (calls: readonly { readonly name: string; readonly arguments: unknown }[]) =>
    calls.map(({ name, arguments: args }) => [name, args]);
  const request = {
    model: 'm',
    messages: [{ role: 'user', content: 'Hi' }] as const,
    tools: registry([]).getDefinitions(),
    options: {},
  };
  const provider = withTextTools(streaming(content, size));
  const whole = await provider.chat(request);
  let text = '';
  let streamed: unknown[] = [];
  for await (const part of provider.stream!(request)) {
    if (part.type === 'text-delta') text += part.text;
    if (part.type === 'response') streamed = plain(part.response.toolCalls ?? []);
  }
  expect(text).toBe(whole.content);
  return [
    plain(new ToolCallParser({ tools: TOOLS }).parse(content).toolCalls),
    plain(whole.toolCalls ?? []),
    streamed,
  ];
}

const format = fc.constantFrom(...Object.values(CALL_FORMATS));
const words = fc.constantFrom('', 'Could I ', 'no. ', 'So: {"a": 1}. ', '[x] ', '\n\n', 'it is 5 < 6, ');

test('ToolCallParser and withTextTools ignore calls inside reasoning, whole or streamed', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        marks: fc.constantFrom(...REASONING),
        thoughts: fc.array(fc.tuple(words, format), { minLength: 1, maxLength: 3 }),
        between: words,
        call: format,
        isOpenedInPrompt: fc.boolean(),
        isAgain: fc.boolean(),
        size: fc.constantFrom(1, 3, 7, 1000),
      }),
      async ({ marks: [open, close], thoughts, between, call, isOpenedInPrompt, isAgain, size }) => {
        const thought = thoughts.map(([before, write]) => before + write('rm', { path: '/' })).join('');
        // Plain-word marks do not occur in prompts and are not repeated.
        const isWords = open.startsWith('Here');
        const first = `${isOpenedInPrompt && !isWords ? '' : open}${thought}${between}${close}`;
        const second = isAgain && !isWords ? `Well. ${open}${thought}${close}` : '';
        const text = `${first}${second}\n${call('ls', { path: '.' })}`;
        const calls = [['ls', { path: '.' }]];
        expect(await callsIn(text, size)).toEqual([calls, calls, calls]);
      },
    ),
    { numRuns: 500 },
  );
});

test('ToolCallParser and withTextTools find no call in reasoning that is never closed', async () => {
  for (const [open] of REASONING)
    for (const write of Object.values(CALL_FORMATS))
      expect(await callsIn(`${open}Could ${write('rm', { path: '/' })}, or not`, 7)).toEqual([[], [], []]);
});

test.each([
  ['ends within a value', 'I: <tool_call>{"name": "rm", "arguments": {"path": "/x, no.</think>'],
  ['ends within a tag’s value', 'I: <tool_call><function=rm><parameter=path>/x, no.</think>'],
  ['ends within a parameter', 'I: <minimax:tool_call><invoke name="rm"><parameter name="path">/x</think>'],
  ['ends within a key', 'I: <tool_call>rm<arg_key>pa</think>'],
  ['ends within an argument', 'I: <tool_call>rm<arg_key>path</arg_key><arg_value>/x</think>'],
  [
    'mentions its own mark',
    '<think>I end with </think>, then rm <tool_call>{"name":"rm","arguments":{}}</tool_call></think>',
  ],
  [
    'contains another closing mark first',
    '<think>a</thinking><tool_call>{"name":"rm","arguments":{}}</tool_call></think>',
  ],
])('ToolCallParser finds at most the call after reasoning that %s', async (_, reasoning) => {
  for (const write of Object.values(CALL_FORMATS)) {
    const calls = await callsIn(`${reasoning} Well.\n${write('ls', { path: '.' })}`, 7);
    for (const found of calls) expect([[], [['ls', { path: '.' }]]]).toContainEqual(found);
  }
});

test.each([
  ['Hermes', 'I: <tool_call>{"name": "rm", "arguments": {"path": "/x, no.</think>'],
  ['Qwen3 Coder', 'I: <tool_call><function=rm><parameter=path>/x, no.</think>'],
  ['MiniMax M2', 'I: <minimax:tool_call><invoke name="rm"><parameter name="path">/x</think>'],
  ['GLM', 'I: <tool_call>rm<arg_key>path</arg_key><arg_value>/x</think>'],
])(
  'ToolCallParser finds the call after reasoning that ends inside an unfinished call: %s',
  async (name, reasoning) => {
    const ls = [['ls', { path: '.' }]];
    const text = `${reasoning} Well.\n${CALL_FORMATS[name]!('ls', { path: '.' })}`;
    expect(await callsIn(text, 7)).toEqual([ls, ls, ls]);
  },
);

test('ToolCallParser ignores a closing mark inside an argument', async () => {
  for (const [name, write] of Object.entries(CALL_FORMATS)) {
    const calls = [['ls', { path: 'a</think>b' }]];
    expect([name, ...(await callsIn(write('ls', { path: 'a</think>b' }), 7))]).toEqual([
      name,
      calls,
      calls,
      calls,
    ]);
  }
});

test('ToolCallParser returns reasoning unchanged in textBefore', () => {
  const thought = 'Could <tool_call>{"name":"rm","arguments":{}}</tool_call>, no.</think>\n';
  const { textBefore, toolCalls } = new ToolCallParser({ tools: TOOLS }).parse(
    `${thought}<tool_call>{"name":"ls","arguments":{}}</tool_call>`,
  );
  expect(textBefore).toBe(thought);
  expect(toolCalls.map(({ name }) => name)).toEqual(['ls']);
});

test('ToolCallParser finds a call to a function in the analysis channel of gpt-oss', () => {
  const text = '<|channel|>analysis to=functions.ls<|message|>{"path":"."}<|call|>';
  expect(new ToolCallParser({ tools: TOOLS }).parse(text).toolCalls).toHaveLength(1);
});

test('parseToolRequest finds no request beside or inside reasoning', () => {
  const request = '{"tool_request":{"name":"rm","arguments":{}}}';
  expect(parseToolRequest(request)).toEqual({ name: 'rm', arguments: {} });
  for (const [open, close] of REASONING)
    for (const text of [`${open}${request}${close}`, `${request}${close}`, `${open}a${close}${request}`])
      expect(parseToolRequest(text)).toBeUndefined();
});

test.each(['text tools', 'scan'])(
  'runToolLoop with %s does not run calls that are part of the reasoning',
  async (way) => {
    const called: string[] = [];
    const content =
      'Could <tool_call>{"name":"rm","arguments":{"path":"/"}}</tool_call>, no.</think><tool_call>{"name":"ls","arguments":{"path":"."}}</tool_call>';
    const scripted = new ScriptedProvider([{ content }, { content: 'Listed.' }]);
    const run = await runToolLoop(
      way === 'scan'
        ? { provider: scripted, model: 'm', tools: registry(called), detector: 'scan' }
        : { provider: withTextTools(scripted), model: 'm', tools: registry(called) },
      [{ role: 'user', content: 'List' }],
    );
    expect(run.status).toBe('completed');
    expect(called).toEqual(['ls .']);
  },
);
