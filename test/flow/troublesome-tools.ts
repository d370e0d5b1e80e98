import {
  type AsyncCallback,
  asyncResult,
  defineTool,
  type Tool,
  type ToolContext,
  ToolRegistry,
  ToolResult,
  toolResult,
} from 'toolwright';

/** Values that a tool may return or throw, from which a result must be made. */
export const ODD_RESULTS: Readonly<Record<string, () => unknown>> = {
  text: () => 'fine',
  nothing: () => undefined,
  'a symbol': () => Symbol('s'),
  'a function': () => () => 1,
  bigint: () => ({ big: 10n }),
  circular: () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    return circle;
  },
  'a getter that throws': () => ({
    get forLLM() {
      throw new Error('no');
    },
  }),
  proxy: () =>
    new Proxy(
      {},
      {
        has: () => {
          throw new Error('no');
        },
      },
    ),
  'a result without text': () => new ToolResult({ forLLM: undefined as unknown as string }),
  'an Error': () => new Error('returned'),
  'a promise that rejects': () => Promise.reject(new Error('rejected')),
  'thrown text': () => {
    throw 'text';
  },
  'thrown undefined': () => {
    throw undefined;
  },
  'thrown getter': () => {
    throw Object.defineProperty(new Error('x'), 'message', {
      get: () => {
        throw new Error('no');
      },
    });
  },
};

class Contextual implements Tool {
  readonly name = 'contextual';
  readonly description = 'Stores its context';
  readonly parameters = { type: 'object' };
  #where = '';

  constructor(private readonly begun: () => void) {}

  setContext(channel: string, chatId: string): void {
    this.#where = `${channel}/${chatId}`;
  }

  async execute() {
    this.begun();
    await new Promise(setImmediate);
    return this.#where;
  }
}

class Callback implements Tool {
  readonly name = 'callback';
  readonly description = 'Completes later, twice';
  readonly parameters = { type: 'object' };
  #callback: AsyncCallback | undefined;

  setCallback(callback: AsyncCallback): void {
    this.#callback = callback;
  }

  execute(_args: unknown, context: ToolContext) {
    const callback = this.#callback;
    setImmediate(() => callback?.(context, toolResult('later')));
    setImmediate(() => callback?.(context, toolResult('again')));
    return asyncResult('started');
  }
}

/** A registry of tools that misbehave in different ways. Each calls `begun` when it starts. */
export function troublesomeTools(begun: () => void): ToolRegistry {
  const number = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } as const;
  const what = { type: 'object', properties: { what: { enum: Object.keys(ODD_RESULTS) } } } as const;
  const tool = (name: string, execute: (args: Record<string, unknown>, context: ToolContext) => unknown) => ({
    name,
    description: name,
    execute: (args: Record<string, unknown>, context: ToolContext) => {
      begun();
      return execute(args, context);
    },
  });
  return new ToolRegistry().register(
    defineTool({ ...tool('typed', ({ n }) => n), parameters: number }),
    defineTool({ ...tool('odd', (args) => ODD_RESULTS[String(args.what)]?.()), parameters: what }),
    defineTool(tool('slow', () => new Promise((resolve) => setTimeout(resolve, 2)))),
    defineTool({ ...tool('never', () => new Promise(() => {})), timeoutMs: 3 }),
    defineTool({ ...tool('sequential', () => new Promise(setImmediate)), sequential: true }),
    new Contextual(begun),
    new Callback(),
    defineTool(tool('background', (_args, context) => context.background(() => new Promise(setImmediate)))),
    defineTool(
      tool('progress', async function* () {
        yield 'half';
        return 'done';
      }),
    ),
    defineTool({ name: 'client', description: 'Runs elsewhere' }),
  );
}
