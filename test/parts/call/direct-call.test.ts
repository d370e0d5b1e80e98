import { describe, expect, test } from '@jest/globals';
import { IsInt, MaxLength, Validate, ValidatorConstraint } from 'class-validator';
import {
  type CallScope,
  defineTool,
  discoverTools,
  RetryToolCall,
  Tool,
  ToolRegistry,
  type ToolResult,
  Toolset,
  toolResult,
} from 'toolwright';
import { z } from 'zod';

const parameters = {
  type: 'object',
  properties: { n: { type: 'integer', minimum: 1 }, list: { type: 'array', items: { type: 'string' } } },
  required: ['n'],
};

/** Values and errors of all kinds, by a description. */
const BODIES: Readonly<Record<string, () => unknown>> = {
  'a text': () => 'done',
  'a number': () => -0,
  nothing: () => undefined,
  'an object': () => ({ found: [1, 2], next: null }),
  'an object that is a ring': () => {
    const ring: Record<string, unknown> = {};
    ring.self = ring;
    return ring;
  },
  'a Map': () => new Map([['a', 1]]),
  'a promise within': () => ({ later: Promise.resolve(3) }),
  // biome-ignore lint/suspicious/noThenProperty: a thenable is what is returned
  'a thenable': () => ({ then: (give: (value: string) => void) => give('given') }),
  'a getter that throws': () => ({
    get broken() {
      throw new Error('no look');
    },
  }),
  'a generator': function* () {
    yield 1;
    return 'last';
  },
  'an async generator': async function* () {
    yield 'part';
  },
  'a promise of a Set': async () => new Set([1]),
  'a promise of its own class': () => new (class extends Promise<string> {})((give) => give('own')),
  'an error': () => new Error('returned'),
  'a result': () => toolResult('worded'),
  'a long text': () => 'x'.repeat(300),
  'a function': () => () => 1,
  'a throw': () => {
    throw new Error('thrown');
  },
  'a rejection': async () => {
    throw new Error('rejected');
  },
  'a wish for another call': () => {
    throw new RetryToolCall('give the id');
  },
  'a thrown text': () => {
    throw 'text';
  },
};

const ARGUMENTS: readonly unknown[] = [
  { n: 1 },
  { n: 2, list: ['a'] },
  '{"n": 3}',
  ' {"n": 3} ',
  '{"n": "3"}',
  '{"n": 3,}',
  '{"n": 12345678901234567890}',
  { n: '4' },
  { n: 5, extra: true },
  { n: 0 },
  { n: 6, list: null },
  {},
  null,
  undefined,
  '',
  [],
  'nonsense',
];

/** The content of a result, with its error. */
function told(result: ToolResult): object {
  const { error, content, details } = result;
  const known = error instanceof Error ? { name: error.name, message: error.message } : error;
  const cause = error instanceof Error ? String(error.cause) : undefined;
  return { ...result.toJSON(), known, cause, content, details };
}

/** The results for all arguments, twice: the first call of a tool never uses the direct path. */
async function answers(registry: ToolRegistry, name: string, scope?: CallScope): Promise<readonly object[]> {
  const given: object[] = [];
  for (const args of [...ARGUMENTS, ...ARGUMENTS]) {
    const sent = structuredClone(args);
    given.push(
      told(await (scope ? registry.executeWithContext(name, sent, scope) : registry.execute(name, sent))),
    );
  }
  return given;
}

const silent = () => {};
/** A logger that ignores everything: with a logger, calls use the path in steps. */
const LOGGER = { debug: silent, info: silent, warn: silent, error: silent, isLevelEnabled: () => false };

function tool(execute: () => unknown) {
  return defineTool({ name: 'it', description: 'It', parameters, execute: (_args) => execute() });
}

describe('ToolRegistry.execute', () => {
  test.each(Object.entries(BODIES))(
    'returns the same with and without a logger if a body returns %s',
    async (_what, execute) => {
      const options = { maxResultChars: 200 };
      const direct = new ToolRegistry(options).register(tool(execute));
      const inSteps = new ToolRegistry({ ...options, logger: LOGGER }).register(tool(execute));
      const expected = await answers(inSteps, 'it');
      expect(await answers(direct, 'it')).toEqual(expected);
      const limited = new ToolRegistry({ ...options, toolTimeoutMs: 60_000 }).register(tool(execute));
      expect(await answers(limited, 'it', { signal: new AbortController().signal })).toEqual(expected);
    },
  );

  test('ends a hanging call at its time limit and when its signal is aborted', async () => {
    const hanging = tool(() => new Promise(() => {}));
    const limited = new ToolRegistry({ toolTimeoutMs: 5 }).register(hanging);
    const controller = new AbortController();
    const unlimited = new ToolRegistry().register(hanging);
    for (const args of [{ n: 1 }, { n: 2 }]) {
      expect((await limited.execute('it', args)).forLLM).toBe(
        "The tool 'it' timed out after 5 ms. It had begun, and its effects are unknown: find out, or ask, before you call it again.",
      );
      const call = unlimited.executeWithContext('it', args, { signal: controller.signal });
      setImmediate(() => controller.abort());
      expect((await call).forLLM).toMatch(/abort/);
    }
  });

  test('returns the same with and without a logger for a Standard Schema', async () => {
    const schemas = [
      z.object({ n: z.coerce.number(), list: z.array(z.string()).default([]) }),
      z.object({ n: z.number().refine((n) => n < 2, 'is too many') }),
      z.object({ n: z.number().refine(async (n) => n < 2, 'is too many, later') }),
      z.object({
        n: z.number().transform(() => {
          throw new Error('no form');
        }),
      }),
    ];
    for (const schema of schemas) {
      const made = () =>
        defineTool({ name: 'it', description: 'It', parameters: schema, execute: (args) => ({ args }) });
      const direct = new ToolRegistry().register(made());
      const inSteps = new ToolRegistry({ logger: LOGGER }).register(made());
      expect(await answers(direct, 'it')).toEqual(await answers(inSteps, 'it'));
    }
  });

  test('returns the same with and without a logger for a class with custom rules', async () => {
    @ValidatorConstraint()
    class Even {
      validate(value: unknown): Promise<boolean> {
        return Promise.resolve(Number(value) % 2 === 0);
      }
    }
    class Order {
      @IsInt() @Validate(Even) n!: number;
      @MaxLength(2, { each: true }) list: string[] = [];
    }
    @Toolset()
    class Shop {
      @Tool({ name: 'it', description: 'It' })
      order(order: Order) {
        return { isOrder: order instanceof Order, ...order };
      }
    }
    const direct = new ToolRegistry().register(...discoverTools({ toolsets: [Shop] }));
    const inSteps = new ToolRegistry({ logger: LOGGER }).register(...discoverTools({ toolsets: [Shop] }));
    expect(await answers(direct, 'it')).toEqual(await answers(inSteps, 'it'));
  });

  test('calls a tool factory for every call', async () => {
    let made = 0;
    const registry = new ToolRegistry().register(() => {
      made += 1;
      return tool(() => 'made');
    });
    const before = made;
    for (let call = 0; call < 3; call += 1) await registry.execute('it', { n: 1 });
    expect(made - before).toBe(3);
  });

  test('does not call a tool that was unregistered or replaced', async () => {
    const registry = new ToolRegistry().register(tool(() => 'one'));
    for (let call = 0; call < 3; call += 1) await registry.execute('it', { n: 1 });
    registry.register(tool(() => 'other'));
    expect((await registry.execute('it', { n: 1 })).forLLM).toBe('other');
    registry.unregister('it');
    expect((await registry.execute('it', { n: 1 })).forLLM).toContain('tool not found');
  });
});
