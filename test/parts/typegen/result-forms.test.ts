import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JsonSchema } from 'toolwright';
import { ToolRegistry } from 'toolwright';
import { describeClasses } from '../../../src/dev/typegen/describe-classes.js';
import { closeCompilers, compilerOf } from './compilers.js';
import { generateTool, smallProject } from './small-project.js';

class Money {
  readonly #cents = 5;
  toString() {
    return `${this.#cents} cents`;
  }
}

class Bag {
  readonly #items = ['a', 'b'];
  *[Symbol.iterator]() {
    yield* this.#items;
  }
}

const DIGITS = { type: 'string', pattern: '^-?[0-9]+$' };
const TEXT = { type: 'string' };
const NUMBERS = { type: 'array', items: { type: 'number' } };

/** The type of a field, a value and its schema; `{}` if the type says nothing about its JSON. */
const FORMS: readonly (readonly [type: string, value: unknown, schema: unknown])[] = [
  ['Set<string>', new Set(['a']), { type: 'array', items: TEXT }],
  ['ReadonlySet<Set<number>>', new Set([new Set([1])]), { type: 'array', items: NUMBERS }],
  [
    'Set<number | undefined>',
    new Set([1, undefined]),
    { type: 'array', items: { type: ['number', 'null'] } },
  ],
  ['Set<unknown>', new Set([1]), { type: 'array' }],
  ['Map<string, Date>', new Map([['a', new Date()]]), 'values'],
  ['Map<number, bigint>', new Map([[1, 2n]]), { type: 'object', additionalProperties: DIGITS }],
  ["ReadonlyMap<'a' | 'b', Set<string>>", new Map([['a', new Set(['b'])]]), 'values'],
  ['Map<{ id: number }, string>', new Map([[{ id: 1 }, 'a']]), {}],
  [
    'Map<string | number, string>',
    new Map<unknown, string>([
      [1, 'a'],
      ['1', 'b'],
    ]),
    {},
  ],
  ['Buffer', Buffer.from('abc'), TEXT],
  ['Uint8Array', new Uint8Array(3), TEXT],
  ['Uint8ClampedArray', new Uint8ClampedArray(3), TEXT],
  ['ArrayBuffer', new ArrayBuffer(3), TEXT],
  ['SharedArrayBuffer', new SharedArrayBuffer(3), TEXT],
  ['DataView', new DataView(new ArrayBuffer(3)), TEXT],
  ['Int8Array', new Int8Array(2), NUMBERS],
  ['Float64Array', new Float64Array(2), NUMBERS],
  ['Uint32Array', new Uint32Array(2), NUMBERS],
  ['BigInt64Array', new BigInt64Array(2), { type: 'array', items: DIGITS }],
  ['RegExp', /a/, TEXT],
  ['symbol', Symbol('x'), TEXT],
  ['bigint', 5n, DIGITS],
  ['URL', new URL('https://example.org'), { type: 'string', format: 'uri' }],
  ['Date', new Date(), { type: 'string', format: 'date-time' }],
  ['Error', new TypeError('no'), 'values'],
  ['URLSearchParams', new URLSearchParams('a=1'), {}],
  ['Headers', new Headers({ a: 'b' }), {}],
  ['IterableIterator<number>', [1].values(), {}],
  ['Promise<string>', Promise.resolve('a'), {}],
  ['Money', new Money(), {}],
  ['Bag', new Bag(), {}],
];

let outputs: readonly (JsonSchema | undefined)[];
let findings: readonly unknown[];

beforeAll(async () => {
  const methods = FORMS.map(([type], index) => `  @Tool() run${index}(): { it: ${type} } { throw 0; }`);
  const text = `import { Tool } from 'toolwright';
    class Money { readonly #cents = 5; toString() { return String(this.#cents); } }
    class Bag { readonly #items = ['a']; *[Symbol.iterator]() { yield* this.#items; } }
    export class Tools {\n${methods.join('\n')}\n}\n`;
  using project = smallProject({ 'src/tools.ts': text }, { types: ['node'] });
  const view = (await compilerOf('7.0')).open(join(project.folder, 'tsconfig.json'));
  const { drafts, faults, warnings } = describeClasses(view);
  const [draft] = drafts;
  outputs = Object.values(draft?.tools ?? {}).map(({ output }) => output);
  findings = [...faults, ...warnings];
});
afterAll(closeCompilers);

test('none of these result types gives a fault or a warning', () => {
  expect(findings).toEqual([]);
});

test.each(FORMS.map((form, index) => [form[0], index] as const))(
  'the schema of a result matches the JSON of a value of type %s',
  async (_type, index) => {
    const [, value, schema] = FORMS[index] ?? [];
    const output = outputs[index];
    if (schema !== 'values') expect(output?.properties?.it).toEqual(schema);
    else expect(output?.properties?.it).toMatchObject({ type: 'object' });
    const told: unknown[] = [];
    const nothing = () => {};
    const logger = {
      debug: nothing,
      info: nothing,
      warn: (...entry: unknown[]) => void told.push(entry),
      error: nothing,
    };
    const tool = { name: 'run', description: 'Runs', parameters: { type: 'object' } as const };
    const tools = new ToolRegistry({ logger }).register({
      ...tool,
      output,
      isOutputInferred: true,
      execute: () => ({ it: value }),
    });
    expect(await tools.execute('run', {})).toMatchObject({ isError: false });
    expect(told).toEqual([]);
  },
);

test.each([
  ['Uint8Array', "output: { type: 'string' }"],
  ['Set<string>', "output: { type: 'array', items: { type: 'string' } }"],
])('a result of type %s gets an output schema', async (type, output) => {
  const { faults, text } = await generateTool(`  @Tool() run(): Promise<${type}> { throw 0; }`);
  expect(faults).toEqual([]);
  expect(text).toContain(output);
});

test.each(['DataView', 'Int16Array', 'BigInt64Array'])('a parameter of type %s is reported', async (type) => {
  const { faults } = await generateTool(`  @Tool() run(it: ${type}) { return it; }`);
  expect(faults).toEqual([
    expect.objectContaining({ problem: expect.stringContaining('JSON cannot represent') }),
  ]);
});

test('prompts, resources and completions are described like tools, but without a result', async () => {
  const text = `import { Completion, Prompt, Resource } from 'toolwright';
    export class Orders {
      /** Plan it @param days How many */
      @Prompt() plan(days = 7): string { return String(days); }
      @Resource('orders://{id}') order(id: string): { total: number } { return { total: Number(id) }; }
      @Completion('plan', 'days') days(value: string): string[] { return [value]; }
    }`;
  using project = smallProject({ 'src/tools.ts': text });
  const view = (await compilerOf('7.0')).open(join(project.folder, 'tsconfig.json'));
  const { drafts, faults } = describeClasses(view);
  const [draft] = drafts;
  expect(faults).toEqual([]);
  expect(Object.entries(draft?.tools ?? {}).map(([name, { output }]) => [name, output])).toEqual([
    ['plan', undefined],
    ['order', undefined],
    ['days', undefined],
  ]);
  expect(Object.values(draft?.tools ?? {})[0]?.parameters).toMatchObject([
    { name: 'days', optional: true, schema: { default: 7 } },
  ]);
});
