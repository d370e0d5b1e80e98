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

/** What a mistake is told as: what is wrong, and what to write instead. TypeScript would have refused it. */
function told(mistake: () => unknown): readonly (readonly [problem: string, fix: string])[] {
  try {
    mistake();
  } catch (error) {
    return (error as ToolDeclarationError).faults.map(({ problem, fix }) => [problem, fix]);
  }
  throw new Error('nothing was thrown');
}

/** A class with one tool of these options. */
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
  ['a limit as text', { timeoutMs: '5' }, "timeoutMs is '5'", 'timeoutMs: a number, 1 or more, or Infinity'],
  [
    'a limit from an unset variable',
    { timeoutMs: Number.NaN },
    'timeoutMs is NaN',
    'timeoutMs: a number, 1 or more, or Infinity',
  ],
  [
    'an approval as text',
    { approval: 'yes' },
    "approval is 'yes'",
    'approval: true, false, a function that says which, or { when, title, … }',
  ],
  [
    'a negative number of retries',
    { retries: -1 },
    'retries is -1',
    'retries: a whole number, 0 or more, or Infinity',
  ],
  ['a switch as text', { sequential: 'no' }, "sequential is 'no'", 'sequential: true or false'],
  ['an unknown place', { execution: 'browser' }, "execution is 'browser'", "execution: 'server' or 'client'"],
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
    'a pause before attempts that are not made',
    { background: { backoff: { type: 'fixed', delay: 1000 } } },
    'background.backoff is the pause before another attempt, and without attempts there is one',
    'background.attempts: 3; or no backoff',
  ],
  [
    'a delay that no date can say',
    { background: { delay: 1e15 } },
    'background.delay is 1000000000000000',
    'background.delay: milliseconds from 0 to 315,360,000,000, which are ten years',
  ],
  [
    'attempts without end',
    { background: { attempts: 1e9 } },
    'background.attempts is 1000000000',
    'background.attempts: a whole number from 1 to 1,000,000',
  ],
];

const MISNAMED: readonly (readonly [what: string, wrong: object, problem: string, fix: string])[] = [
  ['an annotation on the top level', { readOnly: true }, 'readOnly', 'annotations: { readOnly: … }'],
  [
    'an annotation by MCP’s name',
    { annotations: { destructiveHint: true } },
    'annotations.destructiveHint',
    'annotations: { destructive: … }',
  ],
  ['a limit by another name', { timeout: 5 }, 'timeout', 'timeoutMs: …'],
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

  test('several mistakes, all at once', () => {
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
])('%s tells that a tool of the client has no work in the background', (_by, declare) => {
  expect(told(declare)).toEqual([
    ['its `background` means nothing: the client executes it', expect.stringContaining('no `background`')],
  ]);
});

test.each<[string, (wrong: object) => unknown]>([
  ['@Tool', (wrong) => discoverTools({ toolsets: [toolsetOf({ description: 'Works', ...wrong })] })],
  ['defineTool', (wrong) => defineTool({ ...described, ...wrong })],
  ['agentTool', (wrong) => agentTool({ ...described, label: 'Work', parameters: {}, ...wrong } as never)],
  ['register', (wrong) => new ToolRegistry().register({ ...described, parameters: {}, ...wrong } as never)],
])('%s names the option that was meant by a name with a slip', (_by, declare) => {
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
    ['approval is there, but undefined', expect.stringContaining('or no approval at all')],
  ]);
});

test('@Param names the constraint that was meant by a name with a slip', () => {
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

describe('a registry refuses', () => {
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

test('members of its own that a hand-written tool has mean nothing', () => {
  const tool = { ...described, parameters: { type: 'object' }, readOnly: 'mine', tags: ['a'] };
  expect(new ToolRegistry().register(tool).list()).toEqual(['work']);
});

test('members of its own that the instance of a class has are not options of agentTool', () => {
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

test('a definition may be given again, changed', () => {
  const again = defineTool({ ...defineTool(described), name: 'again' });
  expect(new ToolRegistry().register(again).list()).toEqual(['again']);
});

test('an option that @Tool does not have is told with those that it has', () => {
  const [[problem, fix] = []] = told(() => discoverTools({ toolsets: [toolsetOf({ colour: 'red' })] }));
  expect(problem).toBe('colour is not an option of @Tool');
  expect(fix).toMatch(/^one of name, description, .*approval/);
});

test.each([[5], [null], [['x']]])('@Tool(%j) is told', (options) => {
  expect(told(() => discoverTools({ toolsets: [toolsetOf(options)] }))).toEqual([
    [expect.stringContaining('what @Tool takes is '), expect.stringContaining('an object of options')],
  ]);
});

test.each<[unknown, string]>([
  ['shop', "what @Toolset takes is 'shop'"],
  [{ scope: 'request' }, "scope is 'request'"],
  [{ prefix: false }, 'prefix is false'],
  [{ container: {} }, 'container is not an option of @Toolset'],
])('@Toolset(%j) is told', (options, problem) => {
  @Toolset(options as object)
  class Tools {
    @Tool('x')
    work() {
      return 'done';
    }
  }
  expect(told(() => discoverTools({ toolsets: [Tools] }))).toEqual([[problem, expect.any(String)]]);
});

test('discoverTools tells of an option that it does not have', () => {
  expect(told(() => discoverTools({ classes: [toolsetOf({})], strict: 'yes' } as never))).toEqual([
    ["strict is 'yes'", 'strict: true or false'],
    ['classes is not an option of discoverTools', 'toolsets: [ShopTools, …]'],
  ]);
});

test.each([[null], [5], [{}]])('discoverTools tells of %j in place of a container', (container) => {
  expect(told(() => discoverTools({ toolsets: [toolsetOf({})], container } as never))).toEqual([
    [
      expect.stringMatching(/^container (?:is|lacks)/),
      'container: a container of tsyringe, or an object with resolve(token)',
    ],
  ]);
});

test('@Param is told with everything that is wrong, on parameters and on properties', () => {
  const wrong = { required: 'no', minimum: '1', pattern: /x/, optional: true } as object;
  const problem = "required is 'no', pattern is /x/, minimum is '1', optional is not an option of @Param";
  const fix =
    'required: true or false; pattern: the expression’s source, a string; minimum: a number; required: false';
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

test('a tool whose approval became something odd after it was registered is asked about all the same', async () => {
  const tool: Record<string, unknown> = { ...described, parameters: { type: 'object' } };
  const tools = new ToolRegistry().register(tool as never);
  tool.approval = 'yes';
  const { isError, error } = await tools.execute('work');
  expect([isError, error]).toMatchObject([true, { name: 'NotExecutableHere' }]);
});
