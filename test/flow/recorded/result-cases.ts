import {
  asyncResult,
  defineTool,
  errorResult,
  RetryToolCall,
  silentResult,
  type ToolContext,
  ToolRegistry,
  type ToolRegistryOptions,
  ToolResult,
  ToolwrightError,
  toolResult,
  userResult,
} from 'toolwright';
import { outcomeOf } from './call-cases.js';
import type { RecordedCase } from './case.js';

type Body = (args: unknown, context: ToolContext) => unknown;

const circular: { self?: unknown } = {};
circular.self = circular;

class Money {
  constructor(
    readonly amount: number,
    readonly currency: string,
  ) {}
  toJSON() {
    return `${this.amount} ${this.currency}`;
  }
}

class Hidden {
  #secret = 1;
  get known() {
    return this.#secret;
  }
}

const png = { type: 'image', data: 'iVBORw0=', mimeType: 'image/png' };
const pdf = { type: 'file', data: 'JVBERi0=', mimeType: 'application/pdf', filename: 'a.pdf' };
const words = (content: unknown) => ({ type: 'text', content });

function thrower(thrown: unknown): Body {
  return () => {
    throw thrown;
  };
}

async function* generated(values: readonly unknown[], end?: unknown) {
  yield* values;
  return end;
}

function* listed(values: readonly unknown[], end?: unknown) {
  yield* values;
  return end;
}

/** What a tool body returns or throws, by name. */
const BODIES: Readonly<Record<string, Body>> = {
  'a text': () => 'done',
  'an empty text': () => '',
  'a number': () => 100,
  'minus zero': () => -0,
  NaN: () => Number.NaN,
  infinity: () => Number.POSITIVE_INFINITY,
  'a bigint': () => 12345678901234567890n,
  true: () => true,
  undefined: () => undefined,
  null: () => null,
  'a promise of a text': async () => 'later',
  'a promise of nothing': async () => undefined,
  // biome-ignore lint/suspicious/noThenProperty: tools return such objects
  'a thenable': () => ({ then: (resolve: (value: string) => void) => resolve('thenable') }),
  'an object': () => ({ a: 1, b: ['x', null], c: { d: undefined } }),
  'an empty object': () => ({}),
  'an object without prototype': () => Object.assign(Object.create(null), { a: 1 }),
  'a list': () => [1, 'a', undefined, () => 1],
  'an empty list': () => [],
  'a nested list': () => [[[]], [[1, [2]]]],
  'a date': () => new Date(0),
  'an invalid date': () => new Date(Number.NaN),
  'a map': () =>
    new Map([
      ['a', 1],
      ['b', 2],
    ]),
  'a map of objects': () => new Map([[{ k: 1 }, 'v']]),
  'a map in an object': () => ({ of: new Map([[1, 'one']]) }),
  'a set': () => new Set(['a', 'b']),
  'a set in a list': () => [new Set([1])],
  'a regular expression': () => /a+/g,
  'an address': () => new URL('https://example.com/a?b=c'),
  'a symbol': () => Symbol('s'),
  'a function': () => () => 1,
  'a function in an object': () => ({ run: () => 1, a: 1 }),
  'a circle': () => circular,
  'an object with toJSON': () => new Money(3, 'EUR'),
  'an object of private fields': () => new Hidden(),
  'a class': () => Money,
  'a proxy that throws': () =>
    new Proxy(
      {},
      {
        get: () => {
          throw new Error('no looking');
        },
        ownKeys: () => {
          throw new Error('no keys');
        },
      },
    ),
  'a getter that throws': () => ({
    get bad() {
      throw new Error('bad getter');
    },
  }),
  'promises in an object': () => ({ a: Promise.resolve(1), b: [Promise.resolve('x')] }),
  'a failing promise in an object': () => ({ a: Promise.reject(new Error('inner')) }),
  bytes: () => new Uint8Array([1, 2, 3]),
  'a buffer': () => Buffer.from('hello'),
  'a buffer in an object': () => ({ file: Buffer.from('hello') }),
  'an array buffer': () => new ArrayBuffer(4),
  'a text response': () => new Response('hello', { headers: { 'content-type': 'text/plain' } }),
  'a json response': () => Response.json({ a: 1 }),
  'a failed response': () => new Response('nope', { status: 404, statusText: 'Not Found' }),
  'a blob': () => new Blob(['hi'], { type: 'text/plain' }),
  'a generator': () => listed([1, 2, 3]),
  'a generator that returns': () => listed([1, 2], 'end'),
  'an async generator': () => generated(['a', 'b']),
  'an async generator that returns': () => generated(['a'], { done: true }),
  'an async generator that throws': async function* () {
    yield 1;
    throw new Error('broken stream');
  },
  'an iterator': () => [1, 2][Symbol.iterator](),
  'NaN in an object': () => ({ a: Number.NaN, b: [Number.NEGATIVE_INFINITY] }),
  'an error in an object': () => ({ failed: new TypeError('inner') }),
  'a long text': () => 'x'.repeat(500),
  'a long text of emoji': () => '😀'.repeat(200),
  'control characters': () => 'a\u0000b\u001b[31m\u2028',
  'a lone surrogate': () => 'a\ud800b',
  'content of a text': () => ({ content: [words('hello')], details: { n: 1 } }),
  'content of several': () => ({ content: [words('a'), png, words('b'), pdf], details: null }),
  'content without details': () => ({ content: [words('a')] }),
  'content and more': () => ({ content: [words('a')], details: 1, more: 2 }),
  'content of nothing': () => ({ content: [], details: 1 }),
  'content without a type': () => ({ content: [{ content: 'a' }], details: 1 }),
  'an image without its type': () => ({ content: [{ type: 'image', data: 'AA==' }], details: 1 }),
  'a file without its name': () => ({
    content: [{ type: 'file', data: 'AA==', mimeType: 'text/plain' }],
    details: 1,
  }),
  'content of a number': () => ({ content: [words(5)], details: 1 }),
  'a list of parts': () => [words('a'), png],
  'an error': () => new Error('returned'),
  'an error with a cause': () => new Error('outer', { cause: new Error('inner') }),
  'an error without a message': () => new Error(''),
  'a type error': () => new TypeError('of a type'),
  'thrown error': thrower(new Error('thrown')),
  'thrown error with a cause': thrower(new Error('outer', { cause: 'why' })),
  'thrown error of many': thrower(new AggregateError([new Error('one'), new Error('two')], 'many')),
  'thrown error of many without a message': thrower(new AggregateError([new Error('one'), new Error('two')])),
  'thrown text': thrower('just text'),
  'thrown nothing': thrower(undefined),
  'thrown null': thrower(null),
  'thrown number': thrower(7),
  'thrown object': thrower({ code: 'E1', reason: 'odd' }),
  'thrown object with a message': thrower({ message: 'said' }),
  'thrown circle': thrower(circular),
  'thrown symbol': thrower(Symbol('s')),
  'thrown result': thrower(errorResult('as a result')),
  'thrown retry': thrower(new RetryToolCall('Give three letters.')),
  'thrown retry without a hint': thrower(new RetryToolCall('')),
  'thrown error of the framework': thrower(new ToolwrightError('RunNotFound', 'no such run')),
  'thrown error with a code': thrower(Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' })),
  'thrown abort': thrower(new DOMException('stopped', 'AbortError')),
  'rejected error': async () => {
    throw new Error('rejected');
  },
  'rejected nothing': () => Promise.reject(),
  'rejected retry': () => Promise.reject(new RetryToolCall('Try again.')),
  'a result': () => toolResult('plain'),
  'an error result': () => errorResult('failed'),
  'an empty error result': () => errorResult('').withError(new Error('disk full')),
  'an error result with an error': () => errorResult('failed').withError(new Error('disk full')),
  'a silent result': () => silentResult('quiet'),
  'a result for the user': () => userResult('both'),
  'a result for the user alone': () => new ToolResult({ forLLM: '', forUser: 'shown' }),
  'an async result': () => asyncResult('started'),
  'a promise of a result': async () => userResult('both'),
  'a result with details': () => new ToolResult({ forLLM: 'x', details: { a: [1] } }),
  'a result with content': () => new ToolResult({ forLLM: 'x', content: [png] as never }),
  'a result of a number': () => new ToolResult({ forLLM: 5 as never }),
  'a result of nothing': () => new ToolResult({} as never),
  'a serialised result': () => JSON.parse(JSON.stringify(userResult('both'))),
  never: () => new Promise(() => {}),
  'late and heeding the signal': (_args, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  'background work': (_args, context) => context.background(() => 'in the end', 'Started'),
  'background work that fails': (_args, context) =>
    context.background(() => {
      throw new Error('no end');
    }),
  'a question': (_args, context) => context.ask({ message: 'Sure?' }),
  once: (_args, context) => context.once('key', () => ({ n: 1 })),
  resolving: (_args, context) => context.resolve(Money),
  'the context': (
    _args,
    { callId, toolName, attempt, data, channel, chatId, rawArguments, messages, taskId },
  ) => ({ callId, toolName, attempt, data, channel, chatId, rawArguments, messages, taskId }),
};

type ToolMore = Partial<Parameters<typeof defineTool>[0]>;

interface Setting {
  readonly tool?: ToolMore;
  readonly registry?: ToolRegistryOptions;
}

/** Options of the tool and its registry. */
const SETTINGS: Readonly<Record<string, Setting>> = {
  plain: { registry: { toolTimeoutMs: 5 } },
  'an output': {
    tool: {
      timeoutMs: 5,
      output: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] } as never,
    },
  },
  'short results': { tool: { timeoutMs: 5, maxResultChars: 10 } },
  'masked errors': {
    registry: { toolTimeoutMs: 5, describeError: (_thrown, tool) => `${tool} is out of order` },
  },
};

/** Results of every form, under several settings. */
export function resultCases(): RecordedCase[] {
  return Object.entries(SETTINGS).flatMap(([how, setting]) =>
    Object.entries(BODIES).map(([what, body]) => ({
      name: `result: ${what}, ${how}`,
      run: () => resultOf(body, setting),
    })),
  );
}

async function resultOf(body: Body, { tool, registry: options }: Setting): Promise<unknown> {
  const registry = new ToolRegistry(options).register(
    defineTool({ description: 'Works', ...tool, name: 'work', execute: body }),
  );
  const updates: unknown[] = [];
  const scope = {
    data: { user: 'u1' },
    channel: 'mail',
    chatId: '7',
    onUpdate: (update: unknown) => updates.push(update),
  };
  const outcome = outcomeOf(await registry.invoke({ id: 'c1', name: 'work', arguments: {} }, scope));
  return updates.length > 0 ? { ...outcome, updates } : outcome;
}
