import { expect, test } from '@jest/globals';
import { defineTool, type LLMProvider, ToolCallParser, ToolRegistry, withTextTools } from 'toolwright';
import { KNOWN_SECRETS } from '../../src/run/call/redact.js';
import { leastGrowth } from '../setup/least-growth.js';
import { isLong } from '../setup/runs.js';

const SIZES = isLong ? [1_900, 19_000, 190_000] : [900, 9_000, 90_000];
/** The allowed growth for ten times the text: a quadratic algorithm takes a hundred times as long. */
const MOST = 40;
/** Shorter measurements are noise. */
const NOISE_MS = 8;

const UNITS = {
  'line breaks': '\n',
  spaces: ' ',
  quotes: '"',
  apostrophes: "'",
  'curly quotes': '“',
  'quotes in words': '"a ',
  'apostrophes in words': "'a ",
  'quotes and line breaks': '"\n',
  'quotes and commas': '", ',
  'keys without an end': '"a, "b": ',
  backslashes: '\\',
  fences: '```\n',
  'opening braces': '{',
  'opening brackets': '[',
  'nested objects': '{"a":',
  'nested lists in objects': '{"a":[',
  'empty objects': '{}',
  commas: ',',
  colons: ':',
  dots: '...',
  words: 'a ',
  numbers: '1 ',
  comments: '/* ',
  'comment lines': '// x\n',
  'added texts': '"a"+',
  'open lists of calls': '[take(a=',
  'open turns': '>>>take\n{"a":',
  'unclosed tags': '<tool_call>',
  'unclosed calls': '<tool_call>{"name":"take","arguments":{"a":"',
  'unclosed parameters': '<function=take><parameter=a>',
  'unclosed invocations': '<invoke name="take"><parameter name="a">',
  'unclosed keys': '<tool_call>take<arg_key>',
  reasoning: '<think></think>',
  'ends of reasoning': '</think>',
  'ends of reasoning in values': '<function=take><parameter=a></think><function=',
  'calls and ends of reasoning': '<tool_call>{"name":"take","arguments":{}}</tool_call></think>',
} as const;

function registry(): ToolRegistry {
  const tools = new ToolRegistry();
  tools.register(
    defineTool({
      name: 'take',
      description: 'Takes anything',
      parameters: { type: 'object', additionalProperties: true },
      execute: () => 'taken',
    }),
  );
  return tools;
}

/** Fails if a text ten times as long repeatedly takes much more than ten times as long. */
async function expectLinear(work: (size: number) => unknown): Promise<void> {
  for (const [index, size] of SIZES.slice(1).entries()) {
    const shorter = SIZES[index]!;
    const growth = await leastGrowth({
      small: () => work(shorter),
      large: () => work(size),
      most: MOST,
      noiseMs: NOISE_MS,
    });
    expect(growth).toBeLessThan(MOST);
  }
}

const shapes = Object.entries(UNITS);

test.each(shapes)('ToolRegistry.execute reads arguments of %s in linear time', async (_, unit) => {
  const tools = registry();
  for (const [head, tail] of [
    ['', ''],
    ['{"a": ', '}'],
    ['{"a": "', '"}'],
    ["{'a': '", '\n```'],
    ['```json\n', ''],
  ])
    await expectLinear((size) => tools.execute('take', head + unit.repeat(size / unit.length) + tail));
});

test.each(shapes)('ToolCallParser reads a text of %s in linear time', async (_, unit) => {
  const parser = new ToolCallParser({ tools: ['take'] });
  for (const tail of ['', '</parameter></arg_key>"}]'])
    await expectLinear((size) => parser.parse(unit.repeat(size / unit.length) + tail));
});

test.each(shapes)('withTextTools streams a text of %s in linear time', async (_, unit) => {
  const tools = registry().getDefinitions();
  await expectLinear(async (size) => {
    const content = unit.repeat(size / unit.length);
    const provider: LLMProvider = {
      chat: async () => ({ content, toolCalls: [], finishReason: 'stop' }),
      async *stream() {
        for (let at = 0; at < content.length; at += 16)
          yield { type: 'text-delta', text: content.slice(at, at + 16) } as const;
        yield { type: 'response', response: { content, toolCalls: [], finishReason: 'stop' } } as const;
      },
    };
    const request = { model: 'm', messages: [], tools, options: {} };
    for await (const _part of withTextTools(provider).stream!(request));
  });
});

const SECRETIVE = [
  ...['token:', 'token: ', 'token=', '"token":"', '"token":{', '"token":[\\"', '\\"token\\":', 'token%3D'],
  ...['eyJ-', 'eyJabcdef.', 'Bearer ', '://a:', 'sk-', '-----BEGIN PRIVATE KEY-----', '%5B', 'a.', '{"'],
];

test.each([...SECRETIVE, ...Object.values(UNITS)])(
  'secrets are found in a text of %j in linear time',
  async (unit) => {
    for (const tail of ['', '"', '}', '@'])
      await expectLinear((size) => KNOWN_SECRETS.mask(unit.repeat(size / unit.length) + tail));
  },
);
