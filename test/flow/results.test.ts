import { Readable } from 'node:stream';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  agentTool,
  defineTool,
  errorResult,
  type LogFields,
  type ToolDefinition,
  ToolRegistry,
  type ToolRegistryOptions,
  ToolResult,
  toolResult,
  userResult,
} from 'toolwright';

/** Runs a tool with this body. */
function run(
  execute: ToolDefinition['execute'],
  options: ToolRegistryOptions = {},
  more: Partial<ToolDefinition> = {},
): Promise<ToolResult> {
  const tool = { name: 'work', description: 'Works', parameters: { type: 'object' }, ...more, execute };
  return new ToolRegistry(options).register(tool).execute('work', {});
}

/** Runs a tool that returns this value. */
async function returning(value: unknown): Promise<ToolResult> {
  return run(() => value);
}

class Point {
  x = 1;
  #y = 2;
  get y() {
    return this.#y;
  }
}
class Money {
  readonly #cents: number;
  constructor(cents: number) {
    this.#cents = cents;
  }
  toJSON() {
    return { cents: this.#cents };
  }
}
class Hidden {
  readonly #secret = 1;
  reveal() {
    return this.#secret;
  }
}

describe('what a tool returns', () => {
  const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

  test.each([150, 500])('a result of %d levels is written as its JSON', async (levels) => {
    for (const value of [nested(levels), Promise.resolve(nested(levels))]) {
      const { forLLM, isError } = await returning(value);
      expect([forLLM, isError]).toEqual(['['.repeat(levels) + ']'.repeat(levels), false]);
    }
  });

  test.each([501, 1000, 2000, 5000])(
    'a result of %d levels is an error that states that the tool ran',
    async (levels) => {
      const forLLM =
        'The tool ran, but its result cannot be written as JSON: it has more than 500 levels. Return less of it.';
      for (const value of [nested(levels), { list: new Map([[1, nested(levels)]]) }])
        expect(await returning(value)).toMatchObject({ isError: true, error: { code: 501 }, forLLM });
    },
  );

  test.each<[unknown, string]>([
    ['text', 'text'],
    ['', ''],
    [undefined, 'ok'],
    [null, 'ok'],
    [100, '100'],
    [-0, '0'],
    [false, 'false'],
    [{ a: [1] }, '{"a":[1]}'],
    [{}, '{}'],
    [[], '[]'],
    [Object.create(null), '{}'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [{ big: 10n }, '{"big":"10"}'],
    [10n, '"10"'],
    [new Point(), '{"x":1}'],
    [{ price: new Money(5) }, '{"price":{"cents":5}}'],
    [{ a: undefined, b: null, at: new Date(0) }, '{"b":null,"at":"1970-01-01T00:00:00.000Z"}'],
    [{ a: 1, act: () => 1 }, '{"a":1}'],
  ])('%p is sent as %j', async (value, forLLM) => {
    expect(await returning(value)).toEqual(toolResult(forLLM));
    expect(await run(async () => value)).toEqual(toolResult(forLLM));
  });

  test.each<[string, unknown, unknown]>([
    ['a Map', new Map<string, unknown>([['a', new Map([[1, 2]])]]), { a: { 1: 2 } }],
    ['a Map of objects', new Map([[{ id: 1 }, 'x']]), [[{ id: 1 }, 'x']]],
    [
      'a Map whose keys clash',
      new Map<unknown, string>([
        [1, 'a'],
        ['1', 'b'],
      ]),
      [
        [1, 'a'],
        ['1', 'b'],
      ],
    ],
    ['a Set', { tags: new Set(['a', 'b']) }, { tags: ['a', 'b'] }],
    ['a Set of a class with fields', Object.assign(new Set(['a', 'b']), { label: 'x' }), ['a', 'b']],
    [
      'an object with empty containers',
      { of: new Map(), a: {}, b: Object.create(null), c: new (class {})() },
      { of: {}, a: {}, b: {}, c: {} },
    ],
    [
      'an object with a size that is not a file',
      { size: 3, type: 'box', of: new Set([1]) },
      { size: 3, type: 'box', of: [1] },
    ],
    [
      'an object with a status that is not a Response',
      { status: 1, headers: new Map() },
      { status: 1, headers: {} },
    ],
    ['an object with pipe that is not a stream', { pipe: () => 1, kind: 'x' }, { kind: 'x' }],
    ['an object whose getStream returns text', { getStream: () => 'text', kind: 'x' }, { kind: 'x' }],
    ['a nested promise', { a: Promise.resolve(1), b: [Promise.resolve(new Set([2]))] }, { a: 1, b: [[2]] }],
    // biome-ignore lint/suspicious/noThenProperty: a thenable
    ['a nested thenable', { a: { then: (done: (value: number) => void) => done(1) } }, { a: 1 }],
    [
      'a list of numbers that JSON cannot represent',
      [Number.NaN, Number.POSITIVE_INFINITY, -0.5],
      ['NaN', 'Infinity', -0.5],
    ],
    ['an invalid date', { at: new Date(Number.NaN) }, { at: 'Invalid Date' }],
    ['an object of a class without fields', new (class Nothing {})(), {}],
    ['a list of numbers', new Float32Array([0.5, 2]), [0.5, 2]],
    ['an iterator', new Map([['a', 1]]).values(), [1]],
    ['a nested generator', { rows: [1, 2].values() }, { rows: [1, 2] }],
    ['a nested async generator', { rows: Readable.from([1, 2]).iterator() }, { rows: [1, 2] }],
    ['a Headers object', new Headers({ a: 'b' }), { a: 'b' }],
    ['a URLSearchParams object', { query: new URLSearchParams('a=1&b=2') }, { query: { a: '1', b: '2' } }],
    ['a regular expression', { pattern: /a+/g }, { pattern: '/a+/g' }],
    ['a nested symbol', { kind: Symbol('x') }, { kind: 'Symbol(x)' }],
    ['a boxed number', { n: Object(5) }, { n: 5 }],
    ['a nested error', [{ why: new TypeError('no') }], [{ why: { name: 'TypeError', message: 'no' } }]],
    [
      'a nested error with data',
      { why: Object.assign(new Error('no'), { code: 7 }) },
      { why: { name: 'Error', message: 'no', code: 7 } },
    ],
    ['a nested stream of objects', { rows: Readable.from([{ a: 1 }]) }, { rows: [{ a: 1 }] }],
  ])('%s is converted to JSON', async (_what, value, json) => {
    const result = await returning(value);
    expect(result).toMatchObject({ isError: false });
    expect(JSON.parse(result.forLLM)).toEqual(json);
  });

  test('a result that needs conversion ends a call with a timeout too', async () => {
    const result = await run(async () => new Set(['a']), { toolTimeoutMs: 20_000 });
    expect(result.forLLM).toBe('["a"]');
  });

  test('NaN and infinity are sent by name', async () => {
    expect((await returning(Number.NaN)).forLLM).toBe('NaN');
    expect((await returning(Number.NEGATIVE_INFINITY)).forLLM).toBe('-Infinity');
  });

  test.each<[string, () => unknown, string]>([
    ['a function', () => () => 1, 'it is a function. Return data'],
    ['a symbol', () => Symbol('x'), 'it is a symbol. Return data'],
    ['a class', () => Point, 'it is a function'],
    ['an object of functions', () => ({ act: () => 1 }), 'of an object JSON contains nothing'],
    ['a function in a list', () => [1, function act() {}], 'it contains the function act'],
    ['an object with only private fields', () => ({ it: new Hidden() }), 'of an object of the class Hidden'],
    ['a WeakMap', () => new WeakMap(), 'of an object of the class WeakMap'],
    ['an object with only symbol keys', () => ({ [Symbol('x')]: 1 }), 'of an object JSON contains nothing'],
  ])('%s is an error that states that the tool ran and what to return', async (_what, execute, problem) => {
    const result = await run(execute);
    expect(result).toMatchObject({ isError: true, error: { name: 'ToolExecutionFailed', code: 501 } });
    expect(result.forLLM).toMatch(/^The tool ran, but its result cannot be written as JSON: /);
    expect(result.forLLM).toContain(problem);
    expect(result.forLLM).toMatch(/Return /);
  });

  test.each([
    ['directly', (ring: object) => ({ ring })],
    ['inside a Map', (ring: object) => new Map([['ring', ring]])],
    ['behind a promise', (ring: object) => ({ ring: Promise.resolve(ring) })],
  ])('a circular object, %s, is an error that states the problem', async (_how, wrap) => {
    const ring: Record<string, unknown> = {};
    ring.self = ring;
    const result = await returning(wrap(ring));
    expect(result.isError).toBe(true);
    expect(result.forLLM).toMatch(/cannot be written as JSON: it contains itself \(circular\)/);
    const later: Record<string, unknown> = {};
    later.self = Promise.resolve(later);
    expect((await returning(wrap(later))).forLLM).toMatch(/contains itself/);
  });

  test('a rejected nested promise fails the call, and further rejections do not end the process', async () => {
    const value = { a: Promise.reject(new Error('first')), b: [Promise.reject(new Error('second'))] };
    expect(await returning(value)).toMatchObject({ forLLM: 'first', isError: true });
  });

  test('a nested promise that never settles times out with the call', async () => {
    const result = await run(() => ({ a: new Promise(() => {}) }), { toolTimeoutMs: 5 });
    expect(result.error).toMatchObject({ name: 'ToolTimedOut' });
  });

  test('a generator is drained: its values are progress, and the result unless it returns a value', async () => {
    const updates: unknown[] = [];
    const tools = new ToolRegistry().register(
      defineTool({
        name: 'list',
        description: 'Lists',
        *execute() {
          yield 1;
          yield 2;
        },
      }),
      defineTool({
        name: 'report',
        description: 'Reports',
        *execute() {
          yield 'half';
          return new Set(['done']);
        },
      }),
      defineTool({
        name: 'later',
        description: 'Reports later',
        execute: async () =>
          (async function* () {
            yield 'half';
            return new Map([['done', true]]);
          })(),
      }),
      defineTool({
        name: 'endless',
        description: 'Never ends',
        *execute() {
          for (;;) yield 1;
        },
      }),
    );
    const call = (name: string) =>
      tools.executeWithContext(name, {}, { onUpdate: (update) => updates.push(update) });
    expect((await call('list')).forLLM).toBe('[1,2]');
    expect((await call('report')).forLLM).toBe('["done"]');
    expect((await call('later')).forLLM).toBe('{"done":true}');
    expect(updates).toEqual([1, 2, 'half', 'half']);
    expect(await call('endless')).toMatchObject({
      isError: true,
      forLLM: expect.stringMatching(/^The tool ran, but its result has more than/),
    });
  });

  test('an iterator of 100,000 values is sent whole, and a longer one is an error', async () => {
    const values = function* (count: number) {
      for (let value = 0; value < count; value += 1) yield value;
    };
    const later = async function* (count: number) {
      yield* values(count);
    };
    for (const rows of [values, later]) {
      const whole = await run(() => ({ rows: rows(100_000) }), { maxResultChars: Number.POSITIVE_INFINITY });
      expect(JSON.parse(whole.forLLM).rows).toHaveLength(100_000);
      expect((await returning({ rows: rows(100_001) })).forLLM).toBe(
        'The tool ran, but its result has more than 100000 values. Return a part of it, or a link.',
      );
    }
  });

  test('a valid ToolResult is returned unchanged, and invalid fields of another are converted', async () => {
    const result = userResult('x');
    expect(await returning(result)).toBe(result);
    const odd = new ToolResult({ forLLM: undefined as unknown as string, isError: 1 as never, details: 1 });
    expect(await returning(odd)).toMatchObject({ forLLM: '', isError: true, silent: false, details: 1 });
    expect(await returning(new ToolResult({ forLLM: 'x', forUser: 5 as never }))).toMatchObject({
      forUser: '5',
    });
  });

  test('an object with result fields and other fields is data', async () => {
    expect(await returning({ forLLM: 'x', isError: true })).toMatchObject({ forLLM: 'x', isError: true });
    expect((await returning({ forLLM: 'x', rows: 2 })).forLLM).toBe('{"forLLM":"x","rows":2}');
  });

  test.each([
    ['this realm', new Error('gone')],
    ['another realm', runInNewContext('new Error("gone")')],
  ])('an Error from %s is a failure', async (_where, error) => {
    const result = await returning(error);
    expect(result).toMatchObject({ forLLM: 'gone', isError: true });
    expect(result.error).toMatchObject({ name: 'ToolExecutionFailed', code: 501, cause: error });
  });

  test('objects that throw when they are read are failures', async () => {
    const throwing = (): never => {
      throw new Error('hands off');
    };
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const hostile = [
      Object.defineProperty({}, 'content', { get: throwing, enumerable: true }),
      { a: { toJSON: throwing } },
      { a: Object.defineProperty({}, 'then', { get: throwing, enumerable: true }) },
      new Proxy({}, { ownKeys: throwing }),
    ];
    for (const value of hostile)
      expect(await returning(value)).toMatchObject({
        forLLM: 'The tool ran, but its result cannot be written as JSON: hands off',
        isError: true,
      });
    for (const body of [() => ({ a: proxy }), async () => ({ a: proxy })])
      expect(await run(body)).toMatchObject({
        forLLM: expect.stringMatching(/^The tool ran, but its result cannot be written as JSON: .*revoked/),
        isError: true,
      });
  });
});

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0]);
const BYTES = Buffer.from([1, 2, 3]);
const file = (data: Uint8Array, mimeType: string, filename: string) => ({
  type: 'file',
  data: Buffer.from(data).toString('base64'),
  mimeType,
  filename,
});
const image = { type: 'image', data: PNG.toString('base64'), mimeType: 'image/png' };
const unknown = file(BYTES, 'application/octet-stream', 'file-1.bin');

/** Has the methods of a StreamableFile of NestJS. */
class StreamableFile {
  readonly #stream: Readable;
  readonly options = {};
  constructor(bytes: Uint8Array) {
    this.#stream = Readable.from([bytes]);
  }
  getStream() {
    return this.#stream;
  }
  getHeaders() {
    return { type: 'text/csv', disposition: 'attachment; filename="orders.csv"', length: 3 };
  }
}

describe('bytes and files that a tool returns', () => {
  test.each<[string, () => unknown, string, unknown]>([
    ['a Buffer', () => BYTES, '[file-1.bin: application/octet-stream, 3 bytes]', unknown],
    [
      'an array of bytes',
      () => new Uint8Array(BYTES),
      '[file-1.bin: application/octet-stream, 3 bytes]',
      unknown,
    ],
    [
      'an ArrayBuffer',
      () => new Uint8Array(BYTES).buffer,
      '[file-1.bin: application/octet-stream, 3 bytes]',
      unknown,
    ],
    ['a picture', () => PNG, '[image-1: image/png, 10 bytes]', image],
    ['a Blob', () => new Blob([PNG], { type: 'image/png' }), '[image-1: image/png, 10 bytes]', image],
    [
      'a File',
      () => new File(['a,b'], 'a.csv', { type: 'text/csv' }),
      '[a.csv: text/csv, 3 bytes]',
      file(Buffer.from('a,b'), 'text/csv', 'a.csv'),
    ],
    ['a stream', () => Readable.from([BYTES]), '[file-1.bin: application/octet-stream, 3 bytes]', unknown],
    [
      'a web stream',
      () => new Blob([BYTES]).stream(),
      '[file-1.bin: application/octet-stream, 3 bytes]',
      unknown,
    ],
    [
      'a streamable file',
      () => new StreamableFile(BYTES),
      '[orders.csv: text/csv, 3 bytes]',
      file(BYTES, 'text/csv', 'orders.csv'),
    ],
    [
      'a Response of bytes',
      () => new Response(PNG, { headers: { 'content-type': 'image/png' } }),
      '[image-1: image/png, 10 bytes]',
      image,
    ],
  ])('%s becomes a content part', async (_what, make, forLLM, part) => {
    const content = [{ type: 'text', content: forLLM }, part];
    expect(await run(make)).toMatchObject({ forLLM, content, isError: false });
    expect(await run(async () => make())).toMatchObject({ forLLM, content, isError: false });
  });

  test('are replaced by their names inside data, and become parts', async () => {
    const result = await returning({ title: 'Both', files: [BYTES, new Blob([PNG], { type: 'image/png' })] });
    const files = ['[file-1.bin: application/octet-stream, 3 bytes]', '[image-2: image/png, 10 bytes]'];
    expect(JSON.parse(result.forLLM)).toEqual({ title: 'Both', files });
    expect(result.content).toEqual([{ type: 'text', content: result.forLLM }, unknown, image]);
  });

  test('become text if a stream or Response contains text', async () => {
    expect(
      (await returning(new Response('{"a":1}', { headers: { 'content-type': 'application/json' } }))).forLLM,
    ).toBe('{"a":1}');
    expect((await returning(new Response('hello'))).forLLM).toBe('hello');
    expect((await returning(new Response(null, { status: 204 }))).forLLM).toBe('HTTP 204');
    expect((await returning(Readable.from(['hel', 'lo']))).forLLM).toBe('hello');
  });

  test('are errors if a Response failed or was already read', async () => {
    const failed = new Response('no such order', { status: 404, statusText: 'Not Found' });
    expect(await returning(failed)).toMatchObject({
      forLLM: 'HTTP 404 Not Found: no such order',
      isError: true,
    });
    const read = new Response('x');
    await read.text();
    expect(await returning(read)).toMatchObject({
      isError: true,
      forLLM: expect.stringContaining('already read'),
    });
  });

  test('are errors above the size limits', async () => {
    const chunk = Buffer.alloc(2 ** 20);
    let given = 0;
    const endless = new Readable({
      read() {
        given += 1;
        this.push(chunk);
      },
    });
    expect(await returning(endless)).toMatchObject({
      isError: true,
      forLLM: 'The tool ran, but its result has more than 32 MB. Return a part of it, or a link.',
    });
    expect(given).toBeLessThan(100);
    expect(endless.destroyed).toBe(true);
    const most = Buffer.alloc(32 * 2 ** 20);
    const more = Buffer.alloc(most.byteLength + 1);
    for (const value of [most, new Blob([most])]) expect((await returning(value)).isError).toBe(false);
    for (const value of [more, new Blob([more])])
      expect((await returning(value)).forLLM).toMatch(/more than 32 MB.*Return a link/);
  });
});

describe('content parts that a tool returns', () => {
  const parts = [
    { type: 'text', content: 'one' },
    { type: 'image', data: 'AA==', mimeType: 'image/png' },
    { type: 'text', content: 'two' },
  ];

  test('become the result, with one line per text, if there are no other keys than details', async () => {
    const worded = { forLLM: 'one\ntwo', content: parts, details: { ms: 1 } };
    expect(await returning({ content: parts, details: { ms: 1 } })).toMatchObject(worded);
    expect((await returning({ content: parts })).forLLM).toBe('one\ntwo');
  });

  test.each([
    ['an empty list', { content: [], totalElements: 0 }],
    ['an empty list and nothing else', { content: [] }],
    ['other keys', { title: 'Chapter', content: parts }],
    ['an item that is not a part', { content: ['a'] }],
    ['a part of an unknown type', { content: [{ type: 'audio', data: 'AA==' }] }],
    ['a picture without its data', { content: [{ type: 'image', url: 'https://example.com/a.png' }] }],
  ])('are data with %s', async (_what, value) => {
    expect((await returning(value)).forLLM).toBe(JSON.stringify(value));
  });

  test.each([
    ['an image part needs `mimeType`', { type: 'image', data: 'AA==' }],
    ['an image part needs `mimeType`', { type: 'image', data: 'AA==', mimeType: 5 }],
    ['a file part needs `mimeType`', { type: 'file', data: 'AA==', filename: 'a.pdf' }],
    ['a file part needs `filename`', { type: 'file', data: 'AA==', mimeType: 'application/pdf' }],
  ])('are an error if %s', async (needed, part) => {
    const told = `The tool ran, but its result cannot be sent: ${needed}.`;
    const content = [...parts, part] as never;
    for (const value of [{ content }, { forLLM: 'x', content }, new ToolResult({ forLLM: 'x', content })])
      expect(await returning(value)).toMatchObject({ isError: true, forLLM: told, content: undefined });
  });

  test('from an agentTool become the result, even beside other keys', async () => {
    const tools = (content: unknown[]) =>
      new ToolRegistry().register(
        agentTool({
          name: 'work',
          label: 'Work',
          description: 'Works',
          parameters: { type: 'object' },
          execute: async () => ({ content, details: 1, more: 2 }) as never,
        }),
      );
    expect(await tools(parts).execute('work')).toMatchObject({ forLLM: 'one\ntwo', details: 1 });
    expect(await tools([]).execute('work')).toMatchObject({ forLLM: '', content: [], details: 1 });
  });
});

describe('any value that a tool returns', () => {
  const empty = ['{}', '', 'ok', '[]', 'null', '{"value":{}}', '[{}]', '{"value":null}'];
  const inner = fc.constantFrom<() => unknown>(
    () => new Map([['a', 1]]),
    () => new Set([1]),
    () => Promise.resolve(new Map([['a', 1]])),
    () => [1, 2].values(),
    () =>
      (function* () {
        yield 1;
      })(),
    () => Buffer.from('abc'),
    () => new Uint16Array([1]),
    () => new Blob(['abc']),
    () => Readable.from(['abc']),
    () => new Response('abc'),
    () => new StreamableFile(BYTES),
    () => () => 1,
    () => Symbol('a'),
    () => Number.NaN,
    () => new Error('abc'),
    () => new Hidden(),
    () => new Headers({ a: 'b' }),
    () => /a/,
    () => 10n,
    () => new Date(Number.NaN),
    () => new Money(1),
    () => new WeakSet(),
  );
  const wraps = fc.array(
    fc.constantFrom<(value: unknown) => unknown>(
      (value) => ({ value }),
      (value) => [value],
      (value) => new Map([['value', value]]),
      (value) => new Set([value]),
      (value) => Promise.resolve(value),
      (value) => [value].values(),
    ),
    { maxLength: 4 },
  );

  test('has a JSON form that is not empty, or is an error that states what to return', async () => {
    await fc.assert(
      fc.asyncProperty(inner, wraps, async (make, around) => {
        const value = around.reduce((inside, wrap) => wrap(inside), make());
        const { forLLM, isError } = await returning(value);
        expect(empty).not.toContain(forLLM);
        expect(forLLM).not.toMatch(/\{\}|null|_events|"type":"Buffer"/);
        if (isError) expect(forLLM).toMatch(/^abc$|^The tool ran, but .* Return /);
      }),
      { numRuns: 300 },
    );
  });

  test('that is JSON is sent as its JSON', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.object(), fc.array(fc.jsonValue())), async (value) => {
        const json = JSON.stringify(value, (_key, part) =>
          typeof part === 'number' && !Number.isFinite(part) ? String(part) : part,
        );
        expect((await returning(value)).forLLM).toBe(json);
      }),
      { numRuns: 200 },
    );
  });
});

describe('a long result', () => {
  test('is cut after 100,000 characters, states how many are missing, and is complete in its details', async () => {
    const text = 'x'.repeat(5_000_000);
    const result = await returning(text);
    expect(result.forLLM).toBe(`${'x'.repeat(100_000)}\n[4900000 more characters were cut off]`);
    expect(result.details).toMatchObject({ full: text });
    expect((await returning('x'.repeat(100_000))).details).toBeUndefined();
    const whole = await run(() => text, { maxResultChars: Number.POSITIVE_INFINITY });
    expect(whole.forLLM).toBe(text);
    expect(
      (
        await run(() => {
          throw new Error(text);
        })
      ).forLLM.length,
    ).toBeLessThan(100_100);
  });
});

describe('an output schema inferred from types', () => {
  const output = {
    type: 'object',
    properties: {
      id: { type: 'string' },
      note: { type: 'string' },
      mode: { enum: ['a', 'b'] },
      lines: {
        type: 'array',
        items: {
          type: 'object',
          properties: { sku: { type: 'string' }, of: { $ref: '#/$defs/Of' } },
          required: ['sku'],
        },
      },
    },
    required: ['id'],
    $defs: { Of: { type: 'object', properties: { n: { type: 'integer' } }, required: [] } },
  };

  function logged(isOutputInferred: boolean) {
    const warnings: LogFields[] = [];
    const nothing = () => {};
    const warn = (_message: string, fields: LogFields = {}) => warnings.push(fields);
    const logger = { debug: nothing, info: nothing, error: nothing, warn };
    const values: unknown[] = [];
    const tools = new ToolRegistry({ logger }).register({
      name: 'order',
      description: 'Orders',
      parameters: { type: 'object' },
      output,
      isOutputInferred,
      execute: () => values.shift(),
    });
    const call = (value: unknown): Promise<ToolResult> => {
      values.push(value);
      return tools.execute('order');
    };
    return { warnings, call };
  }

  test('only warns about a result that does not fit, once per path', async () => {
    const { call, warnings } = logged(true);
    const order = { id: null, lines: [{ sku: 'a' }, { sku: 5 }, { sku: 6 }] };
    for (let times = 0; times < 3; times += 1)
      expect(await call(order)).toMatchObject({ forLLM: JSON.stringify(order), isError: false });
    expect(warnings).toEqual([
      expect.objectContaining({ tool: 'order', path: 'id', fault: 'must be string' }),
      expect.objectContaining({ path: 'lines.*.sku', fault: 'must be string' }),
    ]);
  });

  test('accepts null for optional values', async () => {
    const { call, warnings } = logged(true);
    await call({
      id: 'a',
      note: null,
      mode: null,
      lines: [
        { sku: 'b', of: null },
        { sku: 'c', of: { n: null } },
      ],
    });
    expect(warnings).toEqual([]);
  });

  test('is not enforced, unlike a declared one, whose error states that the tool ran', async () => {
    const { call } = logged(false);
    const result = await call({ id: 'a', note: null, mode: 'c' });
    expect(result).toMatchObject({ isError: true, error: { name: 'InvalidResult', code: 513 } });
    expect(result.forLLM.split('\n')).toEqual([
      "The tool ran, but its result does not fit the output that 'order' declares:",
      '  - note: must be string',
      '  - mode: must be one of: "a", "b"',
    ]);
  });
});

describe('describeError', () => {
  test('masks errors inside a result, but not the messages of the framework', async () => {
    const describeError = () => 'masked';
    const within = await run(() => ({ why: Object.assign(new Error('hunter2'), { code: 'x' }) }), {
      describeError,
    });
    expect(within.forLLM).toBe('{"why":{"message":"masked"}}');
    expect((await run(() => () => 1, { describeError })).forLLM).toMatch(/^The tool ran, but/);
    expect((await run(() => errorResult('as it is'), { describeError })).forLLM).toBe('as it is');
  });
});
