import { Writable } from 'node:stream';
import { inspect } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  defineTool,
  discoverTools,
  type LogFields,
  type Logger,
  MemoryJobEngine,
  Prompt,
  RetryToolCall,
  runJobs,
  runToolLoop,
  Tool,
  ToolRegistry,
  type ToolRegistryOptions,
  Toolset,
} from 'toolwright';
import { createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { createLogger } from 'toolwright/winston';

interface Entry {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

function logbook(): { readonly logger: Logger; readonly entries: readonly Entry[] } {
  const entries: Entry[] = [];
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}) =>
      entries.push({ level, message, fields });
  return { entries, logger: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } };
}

/** The arguments of a call as they are logged. */
async function loggedArguments(
  args: object,
  options: Omit<ToolRegistryOptions, 'logger'> = {},
): Promise<unknown> {
  const { logger, entries } = logbook();
  const tools = new ToolRegistry({ ...options, logger }).register(
    defineTool({
      name: 'work',
      description: 'Works',
      parameters: { type: 'object', additionalProperties: true },
      execute: () => 'done',
    }),
  );
  await tools.execute('work', args);
  return entries.find(({ message }) => message === 'Tool arguments')?.fields.arguments;
}

/** The log entries of a call whose tool throws this error. */
async function failing(error: unknown): Promise<readonly Entry[]> {
  const { logger, entries } = logbook();
  const execute = () => {
    throw error;
  };
  const tool = defineTool({ name: 'work', description: 'Works', execute });
  await new ToolRegistry({ logger }).register(tool).execute('work');
  return entries;
}

const SECRETS = [
  ...[
    'password',
    'userPassword',
    'PASSWD',
    'passphrase',
    'pwd',
    'secret',
    'clientSecret',
    'token',
    'accessToken',
  ],
  ...['apiKey', 'api_key', 'X-API-KEY', 'accessKey', 'AWS_ACCESS_KEY_ID', 'privateKey', 'credentials'],
  ...[
    'authorization',
    'Authorization',
    'auth',
    'basicAuth',
    'jwt',
    'idJWT',
    'cookie',
    'set-cookie',
    'sessionId',
  ],
  ...[
    'card',
    'cards',
    'cardNumber',
    'card_number',
    'cardnumber',
    'creditCard',
    'cvv',
    'cvc',
    'pin',
    'pinCode',
  ],
  ...['ssn', 'customer_ssn', 'iban', 'IBAN', 'ibans', 'otp', 'bearer'],
];

/** Texts that contain the secret `s3cr3t`. */
const TEXTS_WITH_SECRETS: readonly (readonly [string, string])[] = [
  ['a query', 'GET https://api.example.com/v1?api_key=s3cr3t-1&x=1 failed'],
  ['a fragment', 'https://app.example.com/#access_token=s3cr3t&state=1'],
  [
    'an encoded address',
    'https://a.example.com/?next=https%3A%2F%2Fb.example.com%3Faccess_token%3Ds3cr3t%26x',
  ],
  ['a query with brackets', '/?user%5Bpassword%5D=s3cr3t'],
  ['JSON', '{"user":"me","password":"a\\"s3cr3t","x":1}'],
  ['spaced JSON', '{ "clientSecret" : "s3cr3t" }'],
  ['JSON within JSON', JSON.stringify({ body: JSON.stringify({ token: 's3cr3t "quoted" s3cr3t' }) })],
  ['an object within JSON', '{"credentials":{"user":"s3cr3t","brackets":"}","password":"s3cr3t"},"x":1}'],
  ['a list within JSON', '{"apiKeys":["s3cr3t-1","s3cr3t-2"]}'],
  ['JSON that was cut', '{"password":"s3cr3t'],
  ['a printed object', "{ user: 'me', password: 's3cr3t' }"],
  ['a printed object in an object', "{ credentials: { user: 's3cr3t' } }"],
  ['a command line', 'mysql --password=s3cr3t --host=db'],
  ['a header', 'X-Api-Key: s3cr3t'],
  ['a token with marks in it', 'Authorization: Bearer 17|s3cr3t:s3cr3t'],
  ['a token without a letter', 'curl -H "Authorization: Bearer 4|s3cr3t" -d "a b"'],
  ['a short token', 'Authorization: Bearer s3cr3t'],
  ['a header of another scheme', 'Proxy-Authorization: Token token="s3cr3t"'],
  ['a header without a scheme', 'authorization: s3cr3t'],
  ['a signature', 'Authorization: AWS4-HMAC-SHA256 Credential=a/b, Signature=s3cr3t'],
  ['a list of headers', '["Authorization: Key s3cr3t","accept: */*"]'],
  ['a token in an address', 'GET /?header=Bearer%20s3cr3t'],
  ['cookies', 'Set-Cookie: theme=dark; id=s3cr3t'],
  ['an address', 'postgres://shop:s3cr3t@db/orders'],
  ['a key of a service', 'Incorrect API key provided: sk-proj-s3cr3ts3cr3ts3cr3t.'],
  ['a private key', '-----BEGIN RSA PRIVATE KEY-----\ns3cr3t\n-----END RSA PRIVATE KEY-----'],
];

describe('ToolRegistry.redact', () => {
  test.each(SECRETS)('hides %s by default, at any depth', async (key) => {
    const args = { [key]: 'x', in: [{ [key]: { deep: 1 } }] };
    expect(await loggedArguments(args)).toEqual({ [key]: '[redacted]', in: [{ [key]: '[redacted]' }] });
  });

  test.each([
    ...[
      'path',
      'passenger',
      'key',
      'compass_bearings_',
      'shipping',
      'spinner',
      'author',
      'authorId',
      'discard',
    ],
    ...['cardinality', 'libanon', 'pinned', 'option', 'session'],
  ])('shows %s', async (key) => {
    expect(await loggedArguments({ [key]: 'x' })).toEqual({ [key]: 'x' });
  });

  test.each(['customerNo', 'customer_no', 'CUSTOMER-NO', 'oldCustomerNo', 'dob', 'userDob'])(
    'hides %s if redact names it',
    async (key) => {
      const args = { [key]: 'x', other: 'y' };
      const redact = ['customerNo', 'dob'];
      expect(await loggedArguments(args, { redact })).toEqual({ [key]: '[redacted]', other: 'y' });
    },
  );

  test('never cuts a secret in half when earlier replacements make a long text shorter', async () => {
    const text = (length: number) => `Bearer ${'x'.repeat(length)} sk-proj-s3cr3ts3cr3ts3cr3ts3cr3t and more`;
    for (let length = 150; length < 420; length += 1)
      expect(JSON.stringify(await loggedArguments({ text: text(length) }))).not.toContain('s3cr3');
    for (let length = 1_950; length < 4_020; length += 1)
      expect(inspect(await failing(new Error(text(length))), { depth: 9 })).not.toContain('s3cr3');
  });

  test('hides recognizable secrets in a text', async () => {
    const signed =
      'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U';
    const args = {
      header: 'Bearer abc.def-123',
      basic: 'send Basic dXNlcjpwYXNz please',
      text: `use ${signed} now`,
      url: 'postgres://shop:hunter2@db/orders',
      late: `${'x'.repeat(190)}Bearer ${'s3cr3t'.repeat(50)}`,
    };
    const shown = JSON.stringify(await loggedArguments(args));
    for (const secret of ['abc.def', 'dXNlcjpwYXNz', 'eyJ', 'hunter2', 's3cr3t'])
      expect(shown).not.toContain(secret);
    expect(shown).toContain('Bearer [redacted]');
    expect(shown).toContain('postgres://shop:[redacted]@db/orders');
  });

  test.each(TEXTS_WITH_SECRETS)('hides the secret in %s, wherever it is logged', async (_where, text) => {
    for (const logged of [
      await loggedArguments({ text }),
      ...(await failing(new Error(text, { cause: new AggregateError([new Error(text)], text) }))),
      ...(await failing(Object.assign(new Error('no'), { config: { text } }))),
      ...(await failing(text)),
      ...(await failing(new RetryToolCall(text))),
    ]) {
      const shown = inspect(logged, { depth: 9, showHidden: true });
      expect(shown).not.toMatch(/s3cr3t/);
    }
    expect(JSON.stringify(await loggedArguments({ text }))).toContain('[redacted]');
  });

  test.each([
    'token: expired',
    'Unexpected token } in JSON at position 7',
    'the token must be a string',
    'at read (file:///app/token.ts:12:5)',
    'cards: none were found',
    'price=5&currency=EUR',
    '{"path":"/tmp","author":"me"}',
  ])('leaves %s unchanged', async (text) => {
    expect(await loggedArguments({ text })).toEqual({ text });
  });

  test('hides the values of given names in texts, including nested objects', async () => {
    const text = 'GET /?customerNo=4711&x=1 {"customer_no":{"a":[1,"}"],"b":2},"y":[2]}';
    expect(await loggedArguments({ text }, { redact: ['customerNo'] })).toEqual({
      text: 'GET /?customerNo=[redacted]&x=1 {"customer_no":[redacted],"y":[2]}',
    });
  });

  test('rejects a value that is not an array', () => {
    expect(() => new ToolRegistry({ redact: 'customerNo' as unknown as string[] })).toThrow(/redact/);
  });
});

describe('ToolRegistry.logArguments', () => {
  test('set to false keeps arguments out of the log at any level', async () => {
    expect(await loggedArguments({ a: 1 }, { logArguments: false })).toBeUndefined();
    expect(await loggedArguments({ a: 1 })).toEqual({ a: 1 });
  });
});

/** ESC, DEL, a C1 control, direction marks, a byte-order mark. */
const HIDDEN = ['\u001b[2J', '\u007f', '\u009b31m', '\u202e', '\u2066', '\u200f', '\ufeff'] as const;

describe('the log of a ToolRegistry', () => {
  test('escapes invisible characters in arguments, and in errors with their stacks and causes', async () => {
    for (const hidden of HIDDEN) {
      expect(JSON.stringify(await loggedArguments({ [`a${hidden}`]: `b${hidden}` }))).not.toContain(hidden);
      const entries = await failing(new Error(`why${hidden}`, { cause: new Error(`cause${hidden}`) }));
      const error = entries.at(-1)?.fields.error as Error & { cause: Error & { cause: Error } };
      for (const one of [error, error.cause, error.cause.cause]) {
        expect(one.message).not.toContain(hidden);
        expect(one.stack).not.toContain(hidden);
      }
    }
  });

  test('contains all errors of an AggregateError and the whole chain of causes', async () => {
    const chain = [1, 2, 3, 4, 5, 6].reduce<Error | undefined>(
      (cause, step) => new Error(`step ${step}`, { cause }),
      undefined,
    );
    const both = new AggregateError([new Error('first way', { cause: chain }), 'second way'], 'none worked');
    const [entry] = (await failing(both)).slice(-1);
    const shown = inspect(entry?.fields.error, { depth: 20 });
    for (const told of ['none worked', 'first way', 'second way', 'step 6', 'step 1'])
      expect(shown).toContain(told);
    const ring = new AggregateError([], 'ring');
    ring.errors.push(...Array(15).fill(ring));
    const [bounded] = (await failing(ring)).slice(-1);
    expect(inspect(bounded, { depth: 20 }).length).toBeLessThan(200_000);
  });

  test('has a debug entry if a tool is replaced', () => {
    const { logger, entries } = logbook();
    const tool = () => defineTool({ name: 'work', description: 'Works', execute: () => 'done' });
    const first = tool();
    const tools = new ToolRegistry({ logger }).register(first, first);
    expect(entries).toEqual([]);
    tools.register(tool());
    expect(entries).toEqual([{ level: 'debug', message: 'Tool replaced', fields: { tool: 'work' } }]);
  });

  test('has no entry if a prompt has the name of a tool', () => {
    @Toolset()
    class Letters {
      @Tool({ name: 'letter', description: 'Writes' }) write() {}
    }
    @Toolset()
    class LetterPrompts {
      @Prompt({ name: 'letter', description: 'Asks for one' }) ask() {}
    }
    const { logger, entries } = logbook();
    const tools = new ToolRegistry({ logger }).register(...discoverTools({ toolsets: [Letters] }));
    tools.register(...discoverTools({ toolsets: [LetterPrompts] }));
    expect(entries).toEqual([]);
    tools.register(...discoverTools({ toolsets: [LetterPrompts] }));
    expect(entries).toMatchObject([{ message: 'Tool replaced', fields: { tool: 'letter' } }]);
  });

  test('escapes line breaks in tool names and call ids', async () => {
    const { logger, entries } = logbook();
    const name = 'x\n2026-01-01 error forged\r\n';
    await new ToolRegistry({ logger }).call({ id: 'c\n1', name, arguments: '{}' });
    expect(entries).toHaveLength(1);
    expect(JSON.stringify(entries[0])).not.toMatch(/[^\\]\\[nr]/);
  });

  test('logs an error without secrets as the original object', async () => {
    const error = new Error('disk full');
    const [entry] = (await failing(error)).slice(-1);
    expect(entry?.fields.error).toMatchObject({ name: 'ToolExecutionFailed', cause: error });
    expect(entry?.fields.error).toHaveProperty('cause', error);
  });

  test('is limited in size for any arguments and errors', async () => {
    const anything = fc.object({ maxDepth: 3, maxKeys: 30, withBigInt: true });
    await fc.assert(
      fc.asyncProperty(anything, fc.nat(3), async (value, times) => {
        const size = 10 ** times;
        const args = { value, text: 'x'.repeat(size), list: Array(size).fill(value), ['k'.repeat(size)]: 1 };
        // Arguments with NaN are refused before they are logged.
        const logged = (await loggedArguments(args)) ?? {};
        expect(JSON.stringify(logged).length).toBeLessThan(20_000);
      }),
      { numRuns: 25, endOnFailure: true },
    );
    const long = 'y'.repeat(1_000_000);
    const [entry] = (await failing(new Error(long, { cause: new Error(long) }))).slice(-1);
    const error = entry?.fields.error as Error & { cause: Error };
    expect(error.message.length + (error.stack?.length ?? 0)).toBeLessThan(10_000);
    expect(error.cause.message.length).toBeLessThan(10_000);
  });
});

describe('secrets in other logs', () => {
  const refusal = () => new Error('GET / with Authorization: Bearer 17|s3cr3t was refused');

  test('createChatHandler logs no secret of an authentication error', async () => {
    const { logger, entries } = logbook();
    const { fetch, close } = createChatHandler({
      ...{ provider: new ScriptedProvider([]), model: 'm', tools: [], store: new MemoryRunStore(), logger },
      authenticate: () => {
        throw refusal();
      },
    });
    const response = await fetch(new Request('http://localhost/chat', { method: 'POST', body: '{}' }));
    await close();
    expect(response.status).toBe(401);
    expect(entries).toHaveLength(1);
    expect(inspect(entries, { depth: 9 })).not.toContain('s3cr3t');
  });

  test('runJobs logs no secret of an engine error', async () => {
    const { logger, entries } = logbook();
    const [engine, store] = [new MemoryJobEngine(), new MemoryRunStore()];
    engine.publish = () => Promise.reject(refusal());
    const tool = defineTool({ name: 'work', description: 'Works', background: true, execute: () => 'done' });
    const done = Promise.withResolvers<void>();
    const onAsyncResult = () => done.resolve();
    const worker = await runJobs({ engine, store, tools: [tool], logger, onAsyncResult });
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'work', arguments: {} }] },
      { content: 'ok' },
    ]);
    await runToolLoop({ provider, model: 'm', tools: [tool], engine, store }, [
      { role: 'user', content: 'Go' },
    ]);
    await done.promise;
    await worker.close();
    await engine.close();
    expect(entries.map(({ message }) => message)).toContainEqual(
      expect.stringContaining('The engine does not answer'),
    );
    expect(inspect(entries, { depth: 9 })).not.toContain('s3cr3t');
  });
});

describe('createLogger', () => {
  test.each([false, true])('escapes invisible characters, with json: %j', (json) => {
    for (const hidden of HIDDEN) {
      const chunks: string[] = [];
      const stream = new Writable({
        write(chunk, _encoding, done) {
          chunks.push(String(chunk));
          done();
        },
      });
      const logger = createLogger({ json, stream, level: 'debug' });
      logger.error(`failed ${hidden}`, { [`key${hidden}`]: hidden, error: new Error(hidden) });
      const all = chunks.join('');
      expect(all).toContain('failed');
      expect(all).not.toContain(hidden);
      if (json) expect(JSON.parse(all)).toMatchObject({ [`key${hidden}`]: hidden });
    }
  });
});
