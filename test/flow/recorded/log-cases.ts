import {
  defineTool,
  type LogFields,
  type Logger,
  type LogLevel,
  runToolLoop,
  ToolRegistry,
  type ToolRegistryOptions,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { answeredTools, waitingTools } from './answered-tools.js';
import type { RecordedCase } from './case.js';

const CALLS: readonly (readonly [string, unknown])[] = [
  ['add', { a: 1, b: 2 }],
  ['add', { a: '1', b: 2 }],
  ['add', '{"a":1,"b":2,}'],
  ['add', { a: 1 }],
  ['add', { a: 1, b: 2, c: 3 }],
  ['add', 'broken'],
  ['echo', { say: 'hello' }],
  ['echo', { say: 'x'.repeat(3000) }],
  ['echo', { say: 'line\nbreak\u0007 and \u202e turn' }],
  ['fail', {}],
  ['picky', { name: 'a' }],
  ['never', {}],
  ['quiet', {}],
  ['picture', {}],
  ['work', {}],
  ['report', {}],
  ['acknowledge', {}],
  ['pay', { amount: 500 }],
  ['locate', {}],
  ['both', {}],
  ['nobody', {}],
  [
    'secrets',
    {
      password: 'hunter2',
      apiKey: 'sk-abcdefghijklmnopqrstuvwx',
      note: 'Authorization: Bearer abc.def.ghi',
      customerNo: '77',
      url: 'https://u:p@example.com/?token=abc',
      nested: { secret: ['s'] },
      json: '{"password":"hunter2"}',
    },
  ],
  ['leaky', {}],
  ['leaky_cause', {}],
];

const SETTINGS: Readonly<Record<string, ToolRegistryOptions>> = {
  plain: {},
  'no arguments': { logArguments: false },
  redacted: { redact: ['customerNo', 'say'] },
  refused: { policy: () => ({ allow: false, reason: 'closed' }) },
};

function logbook(): { readonly logger: Logger; readonly lines: unknown[] } {
  const lines: unknown[] = [];
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
    const { durationMs, ...others } = fields ?? {};
    lines.push([
      level,
      message,
      durationMs === undefined ? others : { ...others, durationMs: typeof durationMs },
    ]);
  };
  return { lines, logger: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } };
}

function loggedTools() {
  return [
    ...answeredTools(),
    ...waitingTools(),
    defineTool({
      name: 'secrets',
      description: 'Takes secrets',
      parameters: { type: 'object', additionalProperties: true },
      execute: () => 'kept',
    }),
    defineTool({
      name: 'leaky',
      description: 'Leaks',
      execute: () => {
        throw new Error('postgres://admin:hunter2@db/prod refused, api_key=abcdef123456');
      },
    }),
    defineTool({
      name: 'leaky_cause',
      description: 'Leaks deeper',
      execute: () => {
        throw new Error('outer', {
          cause: Object.assign(new Error('password=hunter2'), { token: 'abc', code: 'E7' }),
        });
      },
    }),
  ];
}

/** The log lines of calls and runs, without durations. */
export function logCases(): RecordedCase[] {
  const calls = Object.entries(SETTINGS).flatMap(([how, options]) =>
    CALLS.map(([name, args], index) => ({
      name: `log of call ${index + 1}, ${name}, ${how}`,
      run: () => logOfCall([name, args], options),
    })),
  );
  const runs = CALLS.map((call, index) => ({ name: `log of run ${index + 1}`, run: () => logOfRun(call) }));
  return [...calls, ...runs];
}

async function logOfCall(
  [name, args]: readonly [string, unknown],
  options: ToolRegistryOptions,
): Promise<unknown> {
  const { logger, lines } = logbook();
  const registry = new ToolRegistry({ ...options, logger }).register(...loggedTools());
  await registry.call({ id: 'c1', name, arguments: args });
  return lines.map(withoutStack);
}

async function logOfRun([name, args]: readonly [string, unknown]): Promise<unknown> {
  const { logger, lines } = logbook();
  const call = { name, arguments: args as never };
  const provider = new ScriptedProvider([{ toolCalls: [call, call] }, { content: 'done' }]);
  await runToolLoop({ provider, model: 'm', tools: loggedTools(), logger }, [
    { role: 'user', content: 'Go' },
  ]);
  return lines.map(withoutStack);
}

/** Stacks contain files and lines, which may change at any time. */
function withoutStack(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll(/\n\s+at [^\n]+/g, '');
  if (Array.isArray(value)) return value.map(withoutStack);
  if (typeof value !== 'object' || value === null || value instanceof Error) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, part]) =>
      key === 'stack' ? [[key, String(part).split('\n')[0]]] : [[key, withoutStack(part)]],
    ),
  );
}
