import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ToolCallParser } from 'toolwright';
import { runs } from '../../setup/runs.js';
import { streamedCalls } from './streamed-calls.js';

const TOOLS = ['get_weather', 'get_time'];
const WEATHER = { name: 'get_weather', arguments: { city: 'Paris' } };
const TIME = { name: 'get_time', arguments: { zone: 'CET' } };
const LIST = '[get_weather(city="Paris")]';
const TURN = '>>>get_weather\n{"city": "Paris"}';
const MESSAGE = '<|message|>{"city": "Paris"}';

/** The calls that a parser finds, of these tools or of any tool. */
function calls(text: string, tools?: readonly string[]) {
  const { toolCalls } = new ToolCallParser({ tools }).parse(text);
  return toolCalls.map(({ name, arguments: args }) => ({ name, arguments: args }));
}

/** The calls of known tools and the remaining text, which must be the same for the whole text and for chunks. */
async function known(text: string) {
  const whole = await streamedCalls(text, TOOLS);
  for (const length of [1, 2, 3, 7]) expect(await streamedCalls(text, TOOLS, length)).toEqual(whole);
  expect(whole.calls).toEqual(calls(text, TOOLS));
  return whole;
}

describe('an unmarked list of Python calls', () => {
  test.each([
    [`Sure. ${LIST}`, 'Sure.'],
    [`Let me look it up:\n\n${LIST}\n`, 'Let me look it up:'],
    [LIST, ''],
    [`<think>Hm, ${LIST}?</think>\nSure.\n${LIST}`, `<think>Hm, ${LIST}?</think>\nSure.`],
    [`I look it up.\n\n${LIST}\n\nThat will tell.`, 'I look it up.\n\n\n\nThat will tell.'],
    [`\`\`\`sh\nls\n\`\`\`\nNow: ${LIST}`, '```sh\nls\n```\nNow:'],
  ])('is found after prose, with and without known tools: %j', async (text, shown) => {
    expect(await known(text)).toEqual({ calls: [WEATHER], text: shown });
    expect(calls(text)).toEqual([WEATHER]);
  });

  test('can contain several calls on several lines, with text after it', async () => {
    const text = `I do both.\n\n[get_weather(city='Paris'),\n get_time(zone='CET')]\n\nThese will tell.`;
    expect((await known(text)).calls).toEqual([WEATHER, TIME]);
    expect(calls(text)).toEqual([WEATHER, TIME]);
  });

  test.each([
    `Write \`${LIST}\``,
    `Write \`${LIST}\` for that.`,
    `The page says "${LIST}".`,
    `The page says “${LIST}”`,
    `Write "calls = ${LIST} # two" for that.`,
    `Write \`calls = ${LIST}\``,
    `\`\`\`python\n${LIST}\n\`\`\``,
    `For example:\n\`\`\`\n${LIST}\n\`\`\`\nThat is all.`,
    `For example:\n\`\`\`\n${LIST}\n`,
    `For example:\n\`\`\`\nprint(1)\n${LIST}\n\`\`\``,
    `See [get_weather(city="Paris")](https://example.org).`,
    'See [get_weather(city)] or [1], [2, 3] and [x].',
    'Sure. [get_weather("Paris")]',
    'get_weather(city="Paris")',
    '[get_weather(city="Paris")',
    '[get_weather(city="Par',
  ])('is text if it is quoted, fenced, part of a link, cut off or invalid: %j', async (text) => {
    expect(await known(text)).toEqual({ calls: [], text });
    expect(calls(text)).toEqual([]);
  });

  test.each(['Sure. [rm(path="/")]', '[rm(path="/")]', `[rm(path="/")]\nDone.`])(
    'is text if its tool is unknown: %j',
    async (text) => {
      expect(await known(text)).toEqual({ calls: [], text });
    },
  );

  test('is text inside a line of prose if no tools are given', () => {
    expect(calls(`Also has ${LIST} syntax.`)).toEqual([]);
    expect(calls(`Use ${LIST}.\nThat is it.`)).toEqual([]);
  });
});

describe('a Functionary 3.2 call', () => {
  test.each([
    [`all\nHello${TURN}`, [WEATHER], 'all\nHello'],
    [TURN, [WEATHER], ''],
    [`${TURN}<|eot_id|>`, [WEATHER], ''],
    [`I look.${TURN}>>>get_time\n{"zone": "CET"}\n`, [WEATHER, TIME], 'I look.'],
  ])('is found after its marker: %j', async (text, found, shown) => {
    expect(await known(text)).toEqual({ calls: found, text: shown });
    expect(calls(text)).toEqual(found);
  });

  test.each([
    [TURN.slice(3), [WEATHER], ''],
    [`\n${TURN.slice(3)}\n`, [WEATHER], ''],
    [`${TURN.slice(3)}<|eot_id|>`, [WEATHER], ''],
    [`${TURN.slice(3)}\n>>>get_time\n{"zone": "CET"}`, [WEATHER, TIME], ''],
    [`<think>Paris.</think>\n${TURN.slice(3)}`, [WEATHER], '<think>Paris.</think>'],
  ])('is found without a marker at the start of a message: %j', async (text, found, shown) => {
    expect(await known(text)).toEqual({ calls: found, text: shown });
  });

  test.each([
    'get_weather\n{"city": "Paris"} is what you write.',
    'get_weather\n{"city": "Paris"}\nis what you write.',
    'Call get_weather\n{"city": "Paris"}',
    'get_weather {"city": "Paris"}',
    'get_weather\n["Paris"]',
    "get_weather\n{'city': 'Paris'}",
    'get_weather\n{"city": "Par',
    'get_weather\n{"city": "Paris"',
    'get_weather\n',
    'get_weather',
    'rm\n{"path": "/"}',
    '>>> get_weather\n{"city": "Paris"}',
    '>>>rm\n{"path": "/"}',
    'Hello>>>get_weather\n{"city": "Par',
    `\`\`\`\n${TURN}\n\`\`\``,
    `Write \`${TURN}\``,
    'constructor\n{}',
  ])('is text if it is cut off, followed by text, quoted or invalid: %j', async (text) => {
    expect(await known(text)).toEqual({ calls: [], text });
  });

  test('is found only after its marker if no tools are given', () => {
    expect(calls('json\n{"city": "Paris"}')).toEqual([]);
    expect(calls('Result\n{"city": "Paris"}')).toEqual([]);
  });

  test('may be a complete JSON call under the name of the tool', async () => {
    const json = JSON.stringify(WEATHER);
    expect((await known(`get_weather\n${json}`)).calls).toEqual([WEATHER]);
    expect((await known(`>>>get_weather\n${json}`)).calls).toEqual([WEATHER]);
  });
});

describe('a gpt-oss call without its end marker', () => {
  const headers = [
    '<|channel|>commentary to=functions.get_weather <|constrain|>json',
    '<|channel|>commentary to=functions.get_weather<|channel|>json',
    '<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json',
    '<|start|>assistant to=functions.get_weather<|channel|>commentary json',
    'to=functions.get_weather<|channel|>commentary <|constrain|>json',
    '<|channel|>analysis to=functions.get_weather',
  ];

  test.each(headers)('is found after %j if its JSON is complete', async (header) => {
    const text = header + MESSAGE;
    for (const end of ['', '\n', '<|call|>', '<|ca', '<|call'])
      expect(await known(text + end)).toEqual({ calls: [WEATHER], text: '' });
    expect(calls(text)).toEqual([WEATHER]);
    for (let end = 1; end < text.length; end += 1) expect(calls(text.slice(0, end), TOOLS)).toEqual([]);
  });

  test('is found after reasoning, but not inside it', async () => {
    const thought = '<|channel|>analysis<|message|>I ask.';
    const text = `${thought}<|end|>${headers[2]}${MESSAGE}`;
    expect((await known(text)).calls).toEqual([WEATHER]);
    expect((await known(`${thought}${MESSAGE}`)).calls).toEqual([]);
  });
});

const sentences = fc.array(
  fc.constantFrom(
    'The weather is fine.',
    'See below:',
    '- a',
    'get_weather',
    'all',
    'e.g.',
    '(1)',
    '[2]',
    '{}',
    'x = 1',
  ),
  { minLength: 1, maxLength: 5 },
);
const examples = fc.constantFrom(
  LIST,
  TURN,
  `calls = ${LIST} # one`,
  '[get_time(zone="CET"), get_weather(city="Paris")]',
);
const quotations = fc.constantFrom(
  (text: string) => `\`${text}\``,
  (text: string) => `"${text}"`,
  (text: string) => `“${text}”`,
  (text: string) => `\`\`\`\n${text}\n\`\`\``,
  (text: string) => `\`\`\`python\n# like this\n${text}\n\`\`\``,
);

test('a quoted call in prose is never a call', async () => {
  const property = fc.asyncProperty(
    ...([sentences, examples, quotations, sentences, fc.constantFrom(' ', '\n')] as const),
    async (before, example, quote, after, space) => {
      const quoted = quote(example);
      for (const parts of [
        [...before, quoted],
        [...before, quoted, ...after],
        [quoted, ...after],
        [quoted],
      ]) {
        const text = parts.join(space);
        expect(calls(text, TOOLS)).toEqual([]);
        expect(calls(text)).toEqual([]);
        expect((await streamedCalls(text, TOOLS, 3)).calls).toEqual([]);
      }
    },
  );
  await fc.assert(property, { numRuns: runs(200) });
});

test('a text that ends inside a call contains no call', () => {
  const written = fc.constantFrom(
    `Sure. ${LIST}`,
    LIST,
    `all\nHello${TURN}`,
    TURN.slice(3),
    `Sure.\n\n${TURN}`,
  );
  const property = fc.property(written, fc.nat(), fc.boolean(), (text, length, isNamed) => {
    expect(calls(text.slice(0, length % text.length), isNamed ? TOOLS : undefined)).toEqual([]);
  });
  fc.assert(property, { numRuns: runs(300) });
});
