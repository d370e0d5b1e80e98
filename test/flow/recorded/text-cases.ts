import {
  parseToolRequest,
  runToolLoop,
  ToolCallParser,
  type ToolLoopConfig,
  ToolRegistry,
  withTextTools,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { CALL_FORMATS, REASONING } from '../text-call-formats.js';
import { answeredTools } from './answered-tools.js';
import type { RecordedCase } from './case.js';
import { runOf } from './loop-cases.js';
import { Seeded } from './seeded.js';

const USER = { role: 'user', content: 'Go' } as const;

const GIVEN: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['echo', { say: 'hello' }],
  ['echo', { say: 'it\'s {"odd"} <b>, [x]' }],
  ['picky', { name: 'ab' }],
  ['quiet', {}],
  ['nobody', { a: 'b' }],
];

const PLACES: readonly ((text: string, random: Seeded) => string)[] = [
  (text) => text,
  (text) => `I will look it up.\n${text}`,
  (text) => `${text}\nThat was it.`,
  (text) => `${text}\n${text}`,
  (text, random) => text.slice(0, random.below(text.length)),
  (text) => `Write \`${text}\` for that.`,
  (text, random) => {
    const [open, close] = random.pick(REASONING);
    return `${open}I could say ${text}${close}${text}`;
  },
  (text, random) => {
    const [open] = random.pick(REASONING);
    return `${open}I could say ${text}`;
  },
];

const REQUESTS = [
  '{"tool_request":{"name":"echo","arguments":{"say":"hi"}}}',
  ' {"tool_request":{"name":"echo","arguments":{"say":"hi"}}}\n',
  '{"tool_request":{"name":"echo"}}',
  '{"tool_request":{"name":"echo","arguments":"{}"}}',
  '{"tool_request":{"name":"echo","arguments":{}},"more":1}',
  '{"tool_request":{"name":"","arguments":{}}}',
  '{"tool_request":{"name":"nobody","arguments":{}}}',
  '{"tool_request":[]}',
  'Sure: {"tool_request":{"name":"echo","arguments":{}}}',
  '```json\n{"tool_request":{"name":"echo","arguments":{"say":"x"}}}\n```',
  '{"tool_request":{"name":"add","arguments":{"a":1,"b":2}}}{}',
  '{"tool_request":{"name":"constructor","arguments":{}}}',
  '',
  '{}',
  'null',
  '{"tool_request":{"name":"echo","arguments":null}}',
  '{"tool_request":{"name":"add","arguments":{"a":12345678901234567890,"b":1}}}',
  '{"tool_request":{"name":5,"arguments":{}}}',
];

/** Calls in text: every format whole, cut, quoted and in reasoning; tool requests; loops over such text. */
export function textCases(): RecordedCase[] {
  const registry = new ToolRegistry().register(...answeredTools());
  const formats = Object.entries(CALL_FORMATS).flatMap(([format, write]) =>
    GIVEN.flatMap(([name, args], index) => {
      const random = new Seeded(`${format} ${index}`);
      return random.some(PLACES, 2).map((place, nth) => {
        const text = place(write(name, args), random);
        return {
          name: `text: ${format} ${index + 1}.${nth + 1}`,
          run: () => ({
            text,
            known: new ToolCallParser({ tools: registry }).parse(text),
            any: new ToolCallParser().parse(text),
          }),
        };
      });
    }),
  );
  const strict = REQUESTS.map((text, index) => ({
    name: `tool_request ${index + 1}`,
    run: () => ({ text, request: parseToolRequest(text) }),
  }));
  return [...formats, ...strict, ...loopsOverText()];
}

function loopsOverText(): RecordedCase[] {
  const writers = Object.entries(CALL_FORMATS);
  const scanned = writers.flatMap(([format, write], index) =>
    GIVEN.slice(index % 3, (index % 3) + 3).map(([name, args], nth) => ({
      name: `loop over text: ${format} ${nth + 1}`,
      run: () => loopOver([write(name, args)], nth % 2 === 0 ? { detector: 'scan' } : 'text tools'),
    })),
  );
  const requested = REQUESTS.map((text, index) => ({
    name: `loop over tool_request ${index + 1}`,
    run: () => loopOver([text], { detector: 'tool_request' }),
  }));
  return [...scanned, ...requested];
}

async function loopOver(
  texts: readonly string[],
  how: Partial<ToolLoopConfig> | 'text tools',
): Promise<unknown> {
  const scripted = new ScriptedProvider([
    ...texts.map((content) => ({ content })),
    { content: 'Done.' },
    { content: 'Done.' },
  ]);
  const isText = how === 'text tools';
  const config = {
    provider: isText ? withTextTools(scripted) : scripted,
    model: 'm',
    tools: answeredTools(),
    ...(isText ? {} : how),
  };
  const run = runOf(await runToolLoop(config, [USER]));
  const [first, last] = [scripted.requests[0], scripted.requests.at(-1)];
  return {
    run,
    last: last?.messages.slice(1),
    ...(isText ? { first: first?.messages[0]?.content?.length } : {}),
  };
}
