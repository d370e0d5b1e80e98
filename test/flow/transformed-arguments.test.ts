import 'reflect-metadata';
import { afterEach, describe, expect, test } from '@jest/globals';
import { Expose, plainToInstance, Transform, Type } from 'class-transformer';
import {
  IsArray,
  IsBoolean,
  IsDate,
  IsEmail,
  IsInt,
  IsOptional,
  IsString,
  Length,
  Max,
  MaxLength,
  ValidateNested,
  validate,
} from 'class-validator';
import {
  type Answer,
  Args,
  type ClassType,
  discoverTools,
  MemoryJobEngine,
  Param,
  resumeToolLoop,
  runJobs,
  runToolLoop,
  Tool,
  ToolContext,
  type ToolOptions,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { dtoToolset } from '../parts/schema/dto-toolset.js';

const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** The argument that a tool with this parameter got, or the error text. */
async function call(dto: ClassType, args: unknown, options = {}) {
  const got: unknown[] = [];
  const registry = new ToolRegistry(options);
  registry.register(...discoverTools({ toolsets: [dtoToolset(dto, (input) => got.push(input))] }));
  const { isError, forLLM } = await registry.execute('take', args);
  expect(got).toHaveLength(isError ? 0 : 1);
  return isError ? forLLM : got[0];
}

async function plainly(dto: new () => object, args: unknown): Promise<object | undefined> {
  const instance = plainToInstance(dto, args);
  return (await validate(instance, { whitelist: true })).length > 0 ? undefined : instance;
}

const trim = ({ value }: { value: unknown }) => (typeof value === 'string' ? value.trim() : value);
const lower = ({ value }: { value: string }) => value.toLowerCase();
const toList = ({ value }: { value: unknown }) => (typeof value === 'string' ? value.split(',') : value);

class Item {
  @Transform(({ value }: { value: string }) => value.toUpperCase()) @Length(3, 3) sku!: string;
  @IsInt() count!: number;
}

class Customer {
  @Transform(trim) @Transform(lower) @IsEmail() mail!: string;
  @IsOptional() @Transform(toList) @IsString({ each: true }) @IsArray() tags?: string[];
  @IsOptional() @Transform(({ value }) => value === 'true' || value === true) @IsBoolean() vip?: boolean;
  @IsOptional() @Transform(({ value }) => new Date(value)) @IsDate() since?: Date;
  @IsOptional() @Transform(({ value }) => value * 100) @IsInt() @Max(1000) cents?: number;
  @IsOptional() @ValidateNested({ each: true }) @Type(() => Item) @IsArray() items?: Item[];
}

const FITTING: readonly object[] = [
  { mail: '  Ann@EXAMPLE.org ' },
  { mail: 'a@b.de', tags: 'a,b' },
  { mail: 'a@b.de', tags: ['a'] },
  { mail: 'a@b.de', vip: 'true' },
  { mail: 'a@b.de', vip: 'no' },
  { mail: 'a@b.de', since: '2030-01-01' },
  { mail: 'a@b.de', cents: 5 },
  { mail: 'a@b.de', items: [{ sku: 'abc', count: 1 }] },
];
const OTHERS: readonly (readonly [object, string])[] = [
  [{ mail: 'nobody' }, 'mail: '],
  [{}, 'mail: is required'],
  [{ mail: 7 }, 'mail: cannot be transformed'],
  [{ mail: 'a@b.de', tags: [1] }, 'tags.0: must be string'],
  [{ mail: 'a@b.de', since: 'soon' }, 'since: '],
  [{ mail: 'a@b.de', cents: 50 }, 'cents: must be <= 1000'],
  [{ mail: 'a@b.de', items: [{ sku: 'abcd', count: 1 }] }, 'items.0.sku: '],
  [{ mail: 'a@b.de', items: [{ sku: {}, count: 1 }] }, 'items.0.sku: cannot be transformed'],
];

describe('properties with @Transform', () => {
  test.each(FITTING)(
    'are transformed and validated as by class-transformer and class-validator: %j',
    async (args) => {
      const before = structuredClone(args);
      expect(await call(Customer, args)).toStrictEqual(await plainly(Customer, structuredClone(args)));
      expect(args).toEqual(before);
    },
  );

  test.each(OTHERS)('are rejected as by class-validator: %j', async (args, fault) => {
    await expect(plainly(Customer, args).catch(() => undefined)).resolves.toBeUndefined();
    const told = await call(Customer, args);
    expect(told).toContain("Validation failed for tool 'take':\n");
    expect(told).toContain(`\n  - ${fault}`);
  });

  test('are transformed in the same way in all of 600 calls', async () => {
    const registry = new ToolRegistry();
    const got: unknown[] = [];
    registry.register(...discoverTools({ toolsets: [dtoToolset(Customer, (input) => got.push(input))] }));
    for (let count = 0; count < 600; count += 1) await registry.execute('take', { mail: ' A@b.de' });
    expect(new Set(got.map((input) => (input as Customer).mail))).toEqual(new Set(['a@b.de']));
    expect((await registry.execute('take', { mail: 'x' })).isError).toBe(true);
  });

  test('have their declared type in the schema that the model sees', () => {
    const [tool] = discoverTools({ toolsets: [dtoToolset(Customer, () => {})] });
    expect(tool?.parameters).toMatchObject({
      properties: {
        mail: { type: 'string', format: 'email' },
        tags: { type: 'array', items: { type: 'string' } },
        vip: { type: 'boolean' },
        since: { type: 'string', format: 'date-time' },
      },
      required: ['mail'],
    });
  });

  test('report all faults together', async () => {
    const told = await call(Customer, { mail: 'x', cents: 50, items: [{ sku: 'abcd', count: 'many' }] });
    for (const place of ['mail', 'cents', 'items.0.sku', 'items.0.count'])
      expect(told).toContain(`\n  - ${place}: `);
  });

  test('are checked by @Param after the transformation, unless it sets another type', async () => {
    class Code {
      @Param({ pattern: '^[a-z]+$' }) @Transform(lower) plain!: string;
      @Param({ enum: ['s', 'm'] }) @Transform(lower) size!: string;
      @Param({ type: () => String, pattern: '^\\d+,\\d+$' }) @Transform(toList) pair!: unknown;
    }
    const fitting = { plain: 'ABC', size: 'S', pair: '1,2' };
    expect(await call(Code, fitting)).toMatchObject({ plain: 'abc', size: 's', pair: ['1', '2'] });
    expect(await call(Code, { ...fitting, plain: 'A1' })).toContain('\n  - plain: ');
    expect(await call(Code, { ...fitting, pair: '1' })).toContain('\n  - pair: ');
  });

  test('with @Expose are transformed even if not sent; toPlainOnly and groups have no effect', async () => {
    class Order {
      @Expose() @Transform(({ value }) => value ?? 'EUR') @IsString() currency!: string;
      @Transform(() => 'x', { toPlainOnly: true }) @IsString() plain!: string;
      @Transform(() => 'x', { groups: ['a'] }) @IsString() grouped!: string;
      @Expose({ name: 'ship_by' }) @Transform(trim) @MaxLength(2) shipBy!: string;
    }
    const args = { plain: 'p', grouped: 'g', ship_by: ' s ' };
    expect(await call(Order, args)).toStrictEqual(await plainly(Order, args));
    expect(await call(Order, { ...args, ship_by: 'long' })).toContain('\n  - ship_by: ');
  });

  test('log the error that a transform throws and do not send its message to the model', async () => {
    class Secret {
      @IsString()
      @Transform(() => {
        throw new Error('no row in vault.internal');
      })
      name!: string;
    }
    const logged: unknown[] = [];
    const logger = {
      debug() {},
      info() {},
      warn: (message: string, fields?: object) => logged.push(message, fields),
      error() {},
    };
    const told = await call(Secret, { name: 'a' }, { logger });
    expect(told).toContain('\n  - name: cannot be transformed');
    expect(told).not.toContain('vault');
    expect(logged).toEqual([
      'Tool call rejected',
      expect.objectContaining({ error: expect.objectContaining({ message: 'no row in vault.internal' }) }),
    ]);
  });

  test('are transformed only after the limits of depth and numbers are checked', async () => {
    let asked = 0;
    class Open {
      @IsString({ each: true })
      @Transform(({ value }) => {
        asked += 1;
        return value;
      })
      list!: string[];
    }
    const deep = JSON.parse(`{"list":${'['.repeat(5000)}${']'.repeat(5000)}}`);
    expect(await call(Open, deep)).toContain("Validation failed for tool 'take'");
    expect(await call(Open, { list: [Number.POSITIVE_INFINITY] })).toContain('Validation failed');
    expect(asked).toBe(0);
  });
});

class Payment {
  @Transform(({ value }) => value * 100) @IsInt() @Max(100_000) cents!: number;
  @IsOptional() @IsString() note?: string;
}

/** A tool whose argument is multiplied, so that a second transformation would show. */
function paying(options: Partial<ToolOptions> = {}) {
  const seen: unknown[] = [];
  const asked: unknown[] = [];
  @Toolset()
  class Tools {
    @Tool({ description: 'Pays', ...options })
    pay(@Args() payment: Payment, context: ToolContext) {
      seen.push({ payment, raw: context.rawArguments });
      return `paid ${payment.cents}`;
    }
  }
  const registry = new ToolRegistry({
    policy: ({ arguments: args }) => {
      asked.push(args);
      return true;
    },
  });
  registry.register(...discoverTools({ toolsets: [Tools] }));
  return { seen, asked, registry };
}

const PAYS = () =>
  new ScriptedProvider([{ toolCalls: [{ name: 'pay', arguments: { cents: 5 } }] }, { content: 'Done' }]);

describe('a value is transformed once', () => {
  test('policies get the transformed arguments, and rawArguments are those that were sent', async () => {
    const { seen, asked, registry } = paying();
    expect((await registry.execute('pay', { cents: 5 })).forLLM).toBe('paid 500');
    expect(asked).toEqual([{ cents: 500 }]);
    expect(seen).toEqual([{ payment: expect.any(Payment), raw: { cents: 5 } }]);
  });

  test('an approval and its function get the transformed arguments', async () => {
    const { seen, registry } = paying({
      approval: (args) => Number((args as { cents: number }).cents) > 400,
    });
    const config = { provider: PAYS(), model: 'm', tools: registry };
    const run = await runToolLoop(config, [{ role: 'user', content: 'Pay' }]);
    expect(run.pending).toMatchObject([{ arguments: { cents: 500 } }]);
    const answers = (run.pending ?? []).map(({ id }): Answer => ({ id, approved: true }));
    const state = JSON.parse(JSON.stringify(run.state));
    expect((await resumeToolLoop(config, state, answers)).status).toBe('completed');
    expect(seen).toMatchObject([{ payment: { cents: 500 } }]);
  });

  test('an edit applies to the transformed arguments and is not transformed', async () => {
    const { seen, registry } = paying({ approval: true });
    const config = { provider: PAYS(), model: 'm', tools: registry };
    const run = await runToolLoop(config, [{ role: 'user', content: 'Pay' }]);
    const edit = (run.pending ?? []).map(({ id, arguments: args }) => ({
      id,
      approved: true,
      arguments: { ...args, note: 'half' },
    })) as readonly Answer[];
    const ended = await resumeToolLoop(config, JSON.parse(JSON.stringify(run.state)), edit);
    expect(ended.status).toBe('completed');
    expect(seen).toMatchObject([{ payment: { cents: 500, note: 'half' } }]);
  });

  test('a job on an engine gets the arguments as transformed when it was started', async () => {
    const { seen, registry } = paying({ background: true });
    const engine = new MemoryJobEngine();
    const store = new MemoryRunStore();
    const done = Promise.withResolvers<string>();
    const worker = await runJobs({
      engine,
      store,
      tools: registry,
      onAsyncResult: ({ result }) => done.resolve(result.forLLM),
    });
    closers.push(() => worker.close());
    const config = { provider: PAYS(), model: 'm', tools: registry, engine, store };
    await runToolLoop(config, [{ role: 'user', content: 'Pay' }]);
    expect(await done.promise).toBe('paid 500');
    expect(seen).toMatchObject([{ payment: { cents: 500 } }]);
  });

  test('`check` returns the transformed arguments', async () => {
    const { registry } = paying();
    expect(await registry.check('pay', { cents: 5 })).toMatchObject({ arguments: { cents: 500 } });
    expect(await registry.check('pay', { cents: 500 }, { transformed: true })).toMatchObject({
      arguments: { cents: 500 },
    });
  });
});
