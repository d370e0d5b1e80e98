import { describe, expect, test } from '@jest/globals';
import {
  discoverTools,
  Param,
  RetryToolCall,
  Tool,
  ToolContext,
  type ToolPolicy,
  ToolRegistry,
  ToolResult,
  Toolset,
} from 'toolwright';

/** The outcome of a call, in terms that every bridge has. */
export interface BridgeAnswer {
  /** The text that the model receives. */
  readonly text: string;
  readonly isError: boolean;
  /** The media types of images and files. */
  readonly media: readonly string[];
}

/** One way to call tools: the registry itself, the loop, a bridge. */
export interface Bridge {
  /** Calls one of the {@link ConformanceTools} for a user. */
  call(tool: string, args: unknown, userId?: string): Promise<BridgeAnswer>;
  close?(): Promise<void>;
  /** Whether an unknown tool is a protocol error rather than a result, as in MCP. */
  readonly unknownToolThrows?: boolean;
}

/** The tools of the cases; a bridge that creates instances itself takes the class. */
@Toolset()
export class ConformanceTools {
  // An imported tool without annotations counts as destructive, and its arguments are never removed.
  @Tool({ description: 'Adds two numbers', annotations: { destructive: false } })
  add(@Param('The one') one: number, other = 10) {
    return one + other;
  }

  @Tool({ description: 'Says who calls', annotations: { readOnly: true } })
  whoAmI(context: ToolContext) {
    return String(context.data.userId);
  }

  @Tool({ description: 'Deletes everything', annotations: { destructive: true } })
  deleteAll() {
    return 'deleted';
  }

  @Tool('Returns nothing')
  nothing() {}

  @Tool({ description: 'Returns data', output: { type: 'object' } })
  data() {
    return { deep: [1, { x: null }] };
  }

  @Tool('Words its result')
  worded() {
    return new ToolResult({ forLLM: 'for the model', forUser: 'for you' });
  }

  @Tool('Shows')
  pictures() {
    const image = { type: 'image', data: 'aQ==', mimeType: 'image/png' };
    const file = { type: 'file', data: 'aQ==', mimeType: 'application/pdf', filename: 'a.pdf' };
    return { content: [{ type: 'text', content: 'see' }, image, file] };
  }

  @Tool('Throws')
  throws() {
    throw new Error('the till is empty');
  }

  @Tool('Wants another try')
  retry() {
    throw new RetryToolCall('Give three letters.');
  }

  @Tool({
    description: 'Breaks its word',
    output: { type: 'object', properties: { n: { type: 'number' } } },
  })
  liar() {
    return { n: 'many' };
  }

  @Tool('Goes on')
  later(context: ToolContext) {
    return context.background(() => 'the end', 'begun');
  }

  @Tool({ description: 'Takes too long', timeoutMs: 50 })
  slow() {
    return new Promise(() => {});
  }
}

/** The policy of the cases. */
export const conformancePolicy: ToolPolicy = ({ tool, context }) =>
  tool.name !== 'delete_all' || context.data.userId === 'ada'
    ? true
    : { allow: false, reason: 'only Ada may' };

export function conformanceTools(): ToolRegistry {
  const registry = new ToolRegistry({ policy: conformancePolicy });
  return registry.register(...discoverTools({ toolsets: [ConformanceTools] }));
}

interface Case {
  readonly title: string;
  readonly tool: string;
  readonly args?: unknown;
  readonly userId?: string;
  readonly answer: Partial<BridgeAnswer> | { readonly text: RegExp; readonly isError: boolean };
}

const success = <Text extends string | RegExp>(text: Text) => ({ text, isError: false });
const failure = (text: RegExp) => ({ text, isError: true });

/** Every bridge must give the same results and errors for these calls. */
const CASES: readonly Case[] = [
  { title: 'a value is returned as JSON', tool: 'add', args: { one: 1, other: 2 }, answer: success('3') },
  { title: 'a default is filled in', tool: 'add', args: { one: 1 }, answer: success('11') },
  {
    title: 'null for an optional parameter counts as missing',
    tool: 'add',
    args: { one: 1, other: null },
    answer: success('11'),
  },
  {
    title: 'a numeric text is converted to a number',
    tool: 'add',
    args: { one: '1' },
    answer: success('11'),
  },
  {
    title: 'an unknown argument is removed, and named in the answer to a model',
    tool: 'add',
    args: { one: 1, three: 3 },
    answer: success(/^11(?:\n+Ignored: three is not an argument of add\.)?$/),
  },
  {
    title: 'all faults are reported at once',
    tool: 'add',
    args: { other: 'two' },
    answer: failure(
      /^Validation failed for tool 'add':\n {2}- one: is required\n {2}- other: must be number/,
    ),
  },
  {
    title: '`__proto__` is an unknown argument',
    tool: 'add',
    args: JSON.parse('{"one":1,"__proto__":{"other":5}}'),
    answer: success(/^11(?:\n+Ignored: __proto__ is not an argument of add\.)?$/),
  },
  { title: 'a tool without a result returns ok', tool: 'nothing', answer: success('ok') },
  { title: 'data is returned as JSON', tool: 'data', answer: success('{"deep":[1,{"x":null}]}') },
  { title: 'the model receives forLLM', tool: 'worded', answer: success('for the model') },
  {
    title: 'images and files are returned',
    tool: 'pictures',
    answer: { text: 'see', isError: false, media: ['image/png', 'application/pdf'] },
  },
  {
    title: 'a thrown error is reported with its message',
    tool: 'throws',
    answer: failure(/^the till is empty$/),
  },
  {
    title: 'the message of RetryToolCall is reported',
    tool: 'retry',
    answer: failure(/^Give three letters\.$/),
  },
  {
    title: 'a result that does not fit the output schema is an error',
    tool: 'liar',
    answer: failure(/n: must be number/),
  },
  { title: 'background work is awaited if there is no listener', tool: 'later', answer: success('the end') },
  {
    title: 'a call that exceeds its timeout is answered',
    tool: 'slow',
    answer: failure(/timed out after 50 ms/),
  },
  { title: 'a tool receives the user of the call', tool: 'who_am_i', userId: 'ada', answer: success('ada') },
  { title: 'a policy allows a call', tool: 'delete_all', userId: 'ada', answer: success('deleted') },
  { title: 'a policy refuses a call', tool: 'delete_all', userId: 'bob', answer: failure(/only Ada may/) },
];

/** Defines the tests of one bridge, which is opened and closed for each test. */
export function describeBridge(name: string, open: () => Bridge | Promise<Bridge>): void {
  async function withBridge(use: (bridge: Bridge) => Promise<void>): Promise<void> {
    const bridge = await open();
    try {
      await use(bridge);
    } finally {
      await bridge.close?.();
    }
  }

  describe(`calls through ${name}`, () => {
    test.each(CASES)('$title', ({ tool, args = {}, userId, answer }) =>
      withBridge(async (bridge) => {
        const { text } = answer;
        expect(await bridge.call(tool, args, userId)).toMatchObject({
          ...answer,
          text: text instanceof RegExp ? expect.stringMatching(text) : text,
        });
      }),
    );

    test('an unknown tool is reported as not found', () =>
      withBridge(async (bridge) => {
        const call = bridge.call('constructor', {});
        if (bridge.unknownToolThrows) await expect(call).rejects.toThrow(/tool not found: constructor/);
        else expect(await call).toMatchObject({ isError: true, text: 'tool not found: constructor' });
      }));

    test('interleaved calls each see their own caller', () =>
      withBridge(async (bridge) => {
        const ids = Array.from({ length: 50 }, (_, index) => `user-${index}`);
        const answers = await Promise.all(ids.map((userId) => bridge.call('who_am_i', {}, userId)));
        expect(answers.map(({ text }) => text)).toEqual(ids);
      }));
  });
}
