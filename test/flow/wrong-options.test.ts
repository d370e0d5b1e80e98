import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import { IsString } from 'class-validator';
import {
  agentTool,
  type ClassType,
  defineTool,
  discoverTools,
  Param,
  Tool,
  type ToolDeclarationError,
  ToolRegistry,
  Toolset,
} from 'toolwright';

const described = { name: 'work', description: 'Works', execute: () => 'done' };

/** The problem and the fix in the faults of a mistake that TypeScript would have refused. */
function told(mistake: () => unknown): readonly (readonly [problem: string, fix: string])[] {
  try {
    mistake();
  } catch (error) {
    return (error as ToolDeclarationError).faults.map(({ problem, fix }) => [problem, fix]);
  }
  throw new Error('nothing was thrown');
}

/** A class with one tool with these options. */
function toolsetOf(options: unknown): ClassType {
  @Toolset()
  class Tools {
    @Tool(options as object)
    work() {
      return 'done';
    }
  }
  return Tools;
}

const WRONG: readonly (readonly [what: string, wrong: object, problem: string, fix: string])[] = [
  [
    'a timeout as text',
    { timeoutMs: '5' },
    "timeoutMs is '5'",
    'timeoutMs: a number, 1 or more, or Infinity',
  ],
  [
    'a timeout that is NaN',
    { timeoutMs: Number.NaN },
    'timeoutMs is NaN',
    'timeoutMs: a number, 1 or more, or Infinity',
  ],
  [
    'an approval as text',
    { approval: 'yes' },
    "approval is 'yes'",
    'approval: true, false, a function that returns either, or { when, title, … }',
  ],
  [
    'a negative number of retries',
    { retries: -1 },
    'retries is -1',
    'retries: a whole number, 0 or more, or Infinity',
  ],
  ['a boolean as text', { sequential: 'no' }, "sequential is 'no'", 'sequential: true or false'],
  [
    'an unknown execution',
    { execution: 'browser' },
    "execution is 'browser'",
    "execution: 'server' or 'client'",
  ],
  [
    'annotations as a list',
    { annotations: ['readOnly'] },
    "annotations is ['readOnly']",
    'annotations: { readOnly: true, … }',
  ],
  [
    'an annotation as text',
    { annotations: { readOnly: 'yes' } },
    "annotations.readOnly is 'yes'",
    'annotations.readOnly: true or false',
  ],
  [
    'a backoff without attempts',
    { background: { backoff: { type: 'fixed', delay: 1000 } } },
    'background.backoff is the pause between attempts, but without attempts there is only one',
    'background.attempts: 3; or no backoff',
  ],
  [
    'a delay of more than ten years',
    { background: { delay: 1e15 } },
    'background.delay is 1000000000000000',
    'background.delay: milliseconds from 0 to 315,360,000,000 (ten years)',
  ],
  [
    'too many attempts',
    { background: { attempts: 1e9 } },
    'background.attempts is 1000000000',
    'background.attempts: a whole number from 1 to 1,000,000',
  ],
];

const MISNAMED: readonly (readonly [what: string, wrong: object, problem: string, fix: string])[] = [
  ['an annotation at the top level', { readOnly: true }, 'readOnly', 'annotations: { readOnly: … }'],
  [
    'an annotation by its MCP name',
    { annotations: { destructiveHint: true } },
    'annotations.destructiveHint',
    'annotations: { destructive: … }',
  ],
  ['a timeout by another name', { timeout: 5 }, 'timeout', 'timeoutMs: …'],
  ['an approval by another name', { needsApproval: true }, 'needsApproval', 'approval: true, or a function'],
];

describe.each<[string, (wrong: object) => unknown]>([
  ['@Tool', (wrong) => discoverTools({ toolsets: [toolsetOf({ description: 'Works', ...wrong })] })],
  ['defineTool', (wrong) => defineTool({ ...described, ...wrong })],
  ['agentTool', (wrong) => agentTool({ ...described, label: 'Work', parameters: {}, ...wrong } as never)],
])('%s refuses', (_by, declare) => {
  test.each(WRONG)('%s', (_what, wrong, problem, fix) => {
    expect(told(() => declare(wrong))).toEqual([[problem, fix]]);
  });

  test.each(MISNAMED)('%s', (_what, wrong, name, fix) => {
    expect(told(() => declare(wrong))).toEqual([[expect.stringMatching(`^${name} is not an option`), fix]]);
  });

  test('several mistakes together', () => {
    expect(told(() => declare({ approval: 1, retries: 0.5, strict: 'yes' }))).toHaveLength(3);
  });
});

test.each<[string, () => unknown]>([
  [
    '@Tool',
    () =>
      discoverTools({ toolsets: [toolsetOf({ description: 'x', execution: 'client', background: true })] }),
  ],
  ['defineTool', () => defineTool({ name: 'locate', description: 'x', background: { attempts: 2 } })],
  [
    'agentTool',
    () =>
      agentTool({ ...described, label: 'x', parameters: {}, execution: 'client', background: true } as never),
  ],
  [
    'register',
    () =>
      new ToolRegistry().register({ ...described, parameters: {}, execution: 'client', background: true }),
  ],
])('%s reports that a client tool has no background work', (_by, declare) => {
  expect(told(declare)).toEqual([
    [
      'its `background` has no effect, because the client executes it',
      expect.stringContaining('no `background`'),
    ],
  ]);
});

test.each<[string, (wrong: object) => unknown]>([
  ['@Tool', (wrong) => discoverTools({ toolsets: [toolsetOf({ description: 'Works', ...wrong })] })],
  ['defineTool', (wrong) => defineTool({ ...described, ...wrong })],
  ['agentTool', (wrong) => agentTool({ ...described, label: 'Work', parameters: {}, ...wrong } as never)],
  ['register', (wrong) => new ToolRegistry().register({ ...described, parameters: {}, ...wrong } as never)],
])('%s suggests the right name for a misspelt option', (_by, declare) => {
  for (const [name, slip] of [
    ['approval', 'aproval'],
    ['timeoutMs', 'timeoutMS'],
    ['sequential', 'seqeuntial'],
  ]) {
    const [[problem] = []] = told(() => declare({ [slip as string]: true }));
    expect(problem).toContain(`${slip} is not an option of `);
    expect(problem).toContain(`did you mean \`${name}\`?`);
  }
  expect(told(() => declare({ approval: undefined }))).toEqual([
    ['approval is undefined', expect.stringContaining('or no approval at all')],
  ]);
});

test('@Param suggests the right name for a misspelt constraint', () => {
  class Tools {
    @Tool('x')
    work(@Param({ minimun: 1 } as object) count: number) {
      return count;
    }
  }
  expect(told(() => discoverTools({ toolsets: [Tools] }))).toContainEqual([
    'minimun is not an option of @Param (did you mean `minimum`?)',
    'minimum: a number',
  ]);
});

describe('ToolRegistry refuses', () => {
  test.each(WRONG)('a hand-written tool with %s', (_what, wrong, problem, fix) => {
    const tool = { ...described, parameters: { type: 'object' }, ...wrong };
    expect(told(() => new ToolRegistry().register(tool))).toEqual([[problem, fix]]);
  });

  test.each<[object, string]>([
    [{ toolTimeoutMs: '10s' }, "toolTimeoutMs is '10s'"],
    [{ timeoutMs: 10 }, 'timeoutMs is not an option of ToolRegistry'],
    [{ policy: { allow: true } }, 'policy is { allow: true }'],
    [{ coerce: 'no' }, "coerce is 'no'"],
    [{ logger: true }, 'logger is true'],
    [{ tasks: { maxRunning: 2 } }, 'tasks is { maxRunning: 2 }'],
  ])('the options %j', (options, problem) => {
    expect(told(() => new ToolRegistry(options as never))).toEqual([[problem, expect.any(String)]]);
  });
});

test('ToolRegistry accepts additional members of a hand-written tool', () => {
  const tool = { ...described, parameters: { type: 'object' }, readOnly: 'mine', tags: ['a'] };
  expect(new ToolRegistry().register(tool).list()).toEqual(['work']);
});

test('agentTool accepts additional members of a class instance', () => {
  class Download {
    readonly name = 'download';
    readonly label = 'Download';
    readonly description = 'Downloads a file';
    readonly parameters = { type: 'object' };
    protected readonly timeout = 5;
    async execute() {
      return { content: [], details: this.timeout };
    }
  }
  expect(agentTool(new Download()).name).toBe('download');
});

test('defineTool accepts a definition again with changes', () => {
  const again = defineTool({ ...defineTool(described), name: 'again' });
  expect(new ToolRegistry().register(again).list()).toEqual(['again']);
});

test('discoverTools lists the valid options of @Tool for an unknown one', () => {
  const [[problem, fix] = []] = told(() => discoverTools({ toolsets: [toolsetOf({ colour: 'red' })] }));
  expect(problem).toBe('colour is not an option of @Tool');
  expect(fix).toMatch(/^one of name, description, .*approval/);
});

test.each([[5], [null], [['x']]])('discoverTools reports @Tool(%j)', (options) => {
  expect(told(() => discoverTools({ toolsets: [toolsetOf(options)] }))).toEqual([
    [expect.stringContaining('@Tool needs an object, not '), expect.stringContaining('an object of options')],
  ]);
});

test.each<[unknown, string]>([
  ['shop', "@Toolset needs an object, not 'shop'"],
  [{ scope: 'request' }, "scope is 'request'"],
  [{ prefix: false }, 'prefix is false'],
  [{ container: {} }, 'container is not an option of @Toolset'],
])('discoverTools reports @Toolset(%j)', (options, problem) => {
  @Toolset(options as object)
  class Tools {
    @Tool('x')
    work() {
      return 'done';
    }
  }
  expect(told(() => discoverTools({ toolsets: [Tools] }))).toEqual([[problem, expect.any(String)]]);
});

test('discoverTools reports invalid and unknown options', () => {
  expect(told(() => discoverTools({ classes: [toolsetOf({})], strict: 'yes' } as never))).toEqual([
    ["strict is 'yes'", 'strict: true or false'],
    ['classes is not an option of discoverTools', 'toolsets: [ShopTools, …]'],
  ]);
});

test.each([[null], [5], [{}]])('discoverTools reports %j as container', (container) => {
  expect(told(() => discoverTools({ toolsets: [toolsetOf({})], container } as never))).toEqual([
    [
      expect.stringMatching(/^container (?:is|lacks)/),
      'container: a container of tsyringe, or an object with resolve(token)',
    ],
  ]);
});

test('discoverTools reports all mistakes of @Param, on parameters and on properties', () => {
  const wrong = { required: 'no', minimum: '1', pattern: /x/, optional: true } as object;
  const problem = "pattern is /x/, minimum is '1', required is 'no', optional is not an option of @Param";
  const fix =
    'pattern: a regular expression, as a string; minimum: a number; required: true or false; required: false';
  class Order {
    @Param(wrong)
    @IsString()
    sku!: string;
  }
  @Toolset()
  class Tools {
    @Tool('x')
    one(@Param(wrong) id: string) {
      return id;
    }
    @Tool('x')
    two(order: Order) {
      return order;
    }
  }
  expect(told(() => discoverTools({ toolsets: [Tools] }))).toEqual([
    [problem, fix],
    [`property Order.sku: ${problem}`, fix],
  ]);
});

test('discoverTools reports wrong values and probable typos of every keyword in @Param', () => {
  @Toolset()
  class Tools {
    @Tool('x')
    one(
      @Param({ minContains: 'x', dependentRequired: { a: 5 }, propertyName: {} } as object) items: string[],
    ) {
      return items;
    }
  }
  expect(told(() => discoverTools({ toolsets: [Tools] }))).toEqual([
    [
      "minContains is 'x', dependentRequired is { a: 5 }, propertyName is not an option of @Param (did you mean `propertyNames`?)",
      'minContains: a whole number, 0 or more; dependentRequired: an object of lists of different names; propertyNames: a schema: an object, true or false',
    ],
  ]);
});

test('a tool whose approval becomes invalid after registration still requires it', async () => {
  const tool: Record<string, unknown> = { ...described, parameters: { type: 'object' } };
  const tools = new ToolRegistry().register(tool as never);
  tool.approval = 'yes';
  const { isError, error } = await tools.execute('work');
  expect([isError, error]).toMatchObject([true, { name: 'NotExecutableHere' }]);
});
