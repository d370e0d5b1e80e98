import { Writable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { defineTool, type LogFields, type Logger, ToolRegistry, type ToolRegistryOptions } from 'toolwright';
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

/** What is logged of the arguments of a call. */
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

/** The entries of a call of a tool that fails with this. */
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

describe('ToolRegistry.redact', () => {
  test.each(SECRETS)('hides %s without being asked, at any depth', async (key) => {
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
    'hides %s where it is asked to',
    async (key) => {
      const args = { [key]: 'x', other: 'y' };
      const redact = ['customerNo', 'dob'];
      expect(await loggedArguments(args, { redact })).toEqual({ [key]: '[redacted]', other: 'y' });
    },
  );

  test('hides what a text itself shows to be secret', async () => {
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

  test('takes nothing but names', () => {
    expect(() => new ToolRegistry({ redact: 'customerNo' as unknown as string[] })).toThrow(/redact/);
  });
});

describe('ToolRegistry.logArguments', () => {
  test('switched off keeps arguments out of the log, whatever its level', async () => {
    expect(await loggedArguments({ a: 1 }, { logArguments: false })).toBeUndefined();
    expect(await loggedArguments({ a: 1 })).toEqual({ a: 1 });
  });
});

/** ESC, DEL, a control of C1, marks of direction, a byte-order mark. */
const HIDDEN = ['\u001b[2J', '\u007f', '\u009b31m', '\u202e', '\u2066', '\u200f', '\ufeff'] as const;

describe('the log of a ToolRegistry', () => {
  test('shows characters that cannot be seen, in arguments and in errors with their stacks and causes', async () => {
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

  test('leaves an error that hides nothing as it is', async () => {
    const error = new Error('disk full');
    const [entry] = (await failing(error)).slice(-1);
    expect(entry?.fields.error).toMatchObject({ name: 'ToolExecutionFailed', cause: error });
    expect(entry?.fields.error).toHaveProperty('cause', error);
  });

  test('is bounded in size, whatever the arguments and the errors', async () => {
    const anything = fc.object({ maxDepth: 3, maxKeys: 30, withBigInt: true });
    await fc.assert(
      fc.asyncProperty(anything, fc.nat(3), async (value, times) => {
        const size = 10 ** times;
        const args = { value, text: 'x'.repeat(size), list: Array(size).fill(value), ['k'.repeat(size)]: 1 };
        expect(JSON.stringify(await loggedArguments(args)).length).toBeLessThan(20_000);
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

describe('createLogger', () => {
  test.each([false, true])('shows what cannot be seen, with json: %j', (json) => {
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
