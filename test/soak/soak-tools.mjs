// Tools with every kind of outcome, in a registry that all runs share.
import { asyncResult, defineTool, RetryToolCall, ToolRegistry, toolResult } from '../../dist/src/index.js';

const parameters = {
  type: 'object',
  properties: { n: { type: 'integer' }, text: { type: 'string', default: 'x' } },
  required: ['n'],
};
const later = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const BODIES = {
  quick: ({ n }) => n,
  large: ({ n }) => `${n} `.repeat(2000),
  promised: async ({ n, text }) => ({ n, text }),
  slow: ({ n }) => later(n % 5),
  throwing: ({ n }) => {
    throw new Error(`failed with ${n}`);
  },
  rejecting: async () => Promise.reject('text'),
  odd: ({ n }) => [undefined, 10n, Symbol('odd'), () => 1, new Error('returned'), { n: 1n }][n % 6],
  hinting: ({ n }) => {
    if (n % 2 === 0) throw new RetryToolCall('send an odd number');
    return n;
  },
  reporting: async function* ({ n }) {
    for (let step = 0; step < n % 8; step += 1) yield { step };
    return n;
  },
  flooding: (_args, context) => {
    for (let step = 0; step < 500; step += 1) context.progress(step);
    return later(1);
  },
  background: ({ n }, context) => context.background(() => later(n % 4), 'started'),
  reading: (_args, context) => `${context.messages.length} ${context.channel} ${context.signal.aborted}`,
  never: () => new Promise(() => {}),
};

const OPTIONS = {
  never: { timeoutMs: 4 },
  large: { maxResultChars: 100 },
  slow: { sequential: true },
  promised: {
    output: { type: 'object', properties: { n: { type: 'integer', maximum: 8 } }, required: ['n'] },
  },
  throwing: { annotations: { destructive: true } },
};

/** Stores its context on itself, so that its calls must be serialized. */
const contextual = {
  name: 'contextual',
  description: 'Stores its context',
  parameters,
  setContext(channel, chatId) {
    this.context = `${channel}/${chatId}`;
  },
  async execute() {
    await later(0);
    return this.context;
  },
};

/** Returns at once and calls its callback twice later. */
const callback = {
  name: 'callback',
  description: 'Completes later',
  parameters,
  setCallback(callback) {
    this.complete = callback;
  },
  execute(_args, context) {
    const { complete } = this;
    setImmediate(() => complete?.(context, toolResult('later')));
    setImmediate(() => complete?.(context, toolResult('again')));
    return asyncResult('started');
  },
};

/** Observes the signal and rejects with its own error when it is aborted. */
const listening = {
  ...defineTool({
    name: 'listening',
    description: 'Listens to its signal',
    parameters,
    timeoutMs: 10,
    execute: (_args, { signal }) =>
      new Promise((_resolve, reject) => {
        const cancel = () => reject(new Error('cancelled'));
        if (signal.aborted) cancel();
        signal.addEventListener('abort', cancel, { once: true });
      }),
  }),
  observesSignal: true,
};

export function soakTools() {
  const tools = Object.entries(BODIES).map(([name, execute]) =>
    defineTool({ name, description: `Tool '${name}'`, parameters, execute, ...OPTIONS[name] }),
  );
  return new ToolRegistry({
    policy: ({ arguments: { n } }) => n !== 7 || { allow: false, reason: 'seven is not allowed' },
  }).register(...tools, contextual, callback, listening, () => ({ ...tools[0], name: 'created_per_call' }));
}
