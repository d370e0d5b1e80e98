import {
  type LoopEvent,
  runToolLoop,
  streamToolLoop,
  type ToolLoopConfig,
  type ToolLoopResult,
  ToolRegistry,
} from 'toolwright';
import { ScriptedProvider, type ScriptedReply, type ScriptedStep } from 'toolwright/testing';
import { withoutTimes } from '../../setup/call-records.js';
import { answeredTools } from './answered-tools.js';
import type { RecordedCase } from './case.js';
import { Seeded } from './seeded.js';

const RUNS = 240;
const STREAMS = 60;
const USER = { role: 'user', content: 'Go' } as const;

/** Calls that models make. Most are valid. */
const CALLS: readonly (readonly [string, unknown])[] = [
  ['add', { a: 1, b: 2 }],
  ['add', { a: '1', b: 2 }],
  ['add', { a: 1 }],
  ['add', '{"a":1,"b":2}'],
  ['add', '{"a":1,'],
  ['add', { a: 1, b: 2, c: 3 }],
  ['add', { a: 1, bb: 2 }],
  ['add', null],
  ['echo', { say: 'hello' }],
  ['echo', { say: 5 }],
  ['echo', 'hello'],
  ['echo', {}],
  ['echo', undefined],
  ['note', { note: 'one' }],
  ['note', { note: 'two' }],
  ['note', []],
  ['fail', {}],
  ['fail', ''],
  ['picky', { name: 'ab' }],
  ['picky', { name: 'abc' }],
  ['picky', {}],
  ['direct', {}],
  ['never', {}],
  ['quiet', {}],
  ['picture', {}],
  ['work', {}],
  ['work', { title: 'lunch' }],
  ['report', {}],
  ['acknowledge', {}],
  ['no_such_tool', {}],
  ['ad', { a: 1, b: 2 }],
  ['Add', {}],
  ['constructor', {}],
  ['__proto__', {}],
  ['', {}],
  ['not a name!', {}],
  ['functions.add', { a: 1, b: 2 }],
];

const IDS = ['a', 'b', 'call_1', 'call_2', '', undefined, undefined, undefined];
const CONTENTS = ['', '', 'Let me see.', ' \n', 'On my way'];
const ENDS: readonly ScriptedReply[] = [
  { content: 'All done.' },
  { content: 'Well.', finishReason: 'length' },
  { content: '' },
  { content: 'No.', finishReason: 'content_filter' },
  { content: 'Done', usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 } },
];

function replyOf(random: Seeded): ScriptedStep {
  if (random.chance(0.04))
    return random.pick<ScriptedStep>([
      new Error('down'),
      (() => null) as never,
      (() => ({ toolCalls: [null] })) as never,
      (() => 'nonsense') as never,
    ]);
  if (random.chance(0.12)) return random.pick(ENDS);
  const calls = Array.from({ length: random.pick([1, 1, 1, 2, 3, 5]) }, () => {
    const [name, args] = random.pick(CALLS);
    return { name, arguments: args as never, id: random.pick(IDS) };
  });
  const finishReason = random.chance(0.05)
    ? random.pick(['length', 'content_filter', 'stop'] as const)
    : undefined;
  const usage = random.chance(0.3) ? { inputTokens: 10, outputTokens: 4, totalTokens: 14 } : undefined;
  return { content: random.pick(CONTENTS), toolCalls: calls, finishReason, usage };
}

/** A script. Some scripts repeat a reply, as stuck models do. */
function scriptOf(random: Seeded): ScriptedStep[] {
  const steps = Array.from({ length: 1 + random.below(5) }, () => replyOf(random));
  const [first] = steps;
  if (first !== undefined && random.chance(0.2)) steps.push(...Array.from({ length: 7 }, () => first));
  return [...steps, random.pick(ENDS), random.pick(ENDS), { content: 'The end.' }];
}

function limitsOf(random: Seeded): Partial<ToolLoopConfig> {
  const limits: Partial<ToolLoopConfig>[] = [
    {},
    {},
    { maxIterations: random.below(4) },
    { maxIterations: 2, onLimit: 'answer' },
    { maxIterations: 1, onLimit: 'throw' },
    { maxRetries: random.below(3) },
    { maxConcurrency: 1 },
    { maxConcurrency: 2 },
    { loopGuard: false },
    { loopGuard: { tellAt: 2, endAt: 3 } },
    { maxResultChars: 6 },
    { policy: ({ tool }) => tool.name !== 'note' },
    { policy: ({ tool }) => ({ allow: tool.name !== 'echo', reason: 'no echo today' }) },
    {
      policy: () => {
        throw new Error('no policy');
      },
    },
    { toolTimeoutMs: 50 },
  ];
  return Object.assign({}, ...random.some(limits, random.pick([1, 2])));
}

/** A run without times. */
export function runOf({ toolCalls, ...run }: ToolLoopResult): object {
  return { ...run, toolCalls: toolCalls.map(withoutTimes) };
}

/** Loop runs with scripted replies: plain, streamed with their events, and aborted. */
export function loopCases(): RecordedCase[] {
  return [
    ...Array.from({ length: RUNS }, (_, index) => ({
      name: `run ${index + 1}`,
      run: () => runOnce(new Seeded(`run ${index}`)),
    })),
    ...Array.from({ length: STREAMS }, (_, index) => ({
      name: `stream ${index + 1}`,
      run: () => streamOnce(new Seeded(`stream ${index}`)),
    })),
    ...[0, 1, 2, 3, 4, 5].map((at) => ({ name: `run aborted at ${at}`, run: () => abortedRun(at) })),
  ];
}

async function runOnce(random: Seeded): Promise<unknown> {
  const completions: unknown[] = [];
  const provider = new ScriptedProvider(scriptOf(random));
  const listening: Partial<ToolLoopConfig> = random.chance(0.4)
    ? { onAsyncResult: (context, result) => completions.push([context?.callId, result.forLLM]) }
    : {};
  const config = {
    provider,
    model: 'm',
    tools: new ToolRegistry().register(...answeredTools()),
    ...limitsOf(random),
    ...listening,
  };
  const run = await runToolLoop(config, [USER], { data: {} }).then(runOf, (thrown: unknown) => ({ thrown }));
  await new Promise(setImmediate);
  const asked = provider.requests.map(
    ({ messages, tools }) => `${messages.length} messages, ${tools?.length ?? 'no'} tools`,
  );
  return { run, asked, ...(completions.length > 0 ? { completions } : {}) };
}

async function streamOnce(random: Seeded): Promise<unknown> {
  const provider = new ScriptedProvider(scriptOf(random).slice(-5));
  const config = {
    provider,
    model: 'm',
    tools: new ToolRegistry().register(...answeredTools()),
    ...limitsOf(random),
    onLimit: 'return' as const,
  };
  const events: unknown[] = [];
  for await (const event of streamToolLoop(config, [USER])) events.push(eventOf(event));
  return events;
}

function eventOf(event: LoopEvent): unknown {
  if (event.type === 'run-end') return { type: event.type, ...runOf(event.result) };
  if (event.type === 'call-end')
    return { type: event.type, callId: event.callId, tool: event.tool, result: event.result.forLLM };
  return event;
}

async function abortedRun(at: number): Promise<unknown> {
  const controller = new AbortController();
  const step =
    (index: number): ScriptedStep =>
    () => {
      if (index === at) controller.abort(new Error(`stopped at ${at}`));
      return {
        content: `Step ${index}`,
        toolCalls: [
          { name: 'echo', arguments: { say: `${index}` } },
          { name: 'note', arguments: { note: 'x' } },
        ],
      };
    };
  const provider = new ScriptedProvider([step(1), step(2), step(3), { content: 'end' }]);
  if (at === 0) controller.abort('before');
  return runOf(
    await runToolLoop(
      { provider, model: 'm', tools: answeredTools(), signal: controller.signal, maxIterations: 4 },
      [USER],
    ),
  );
}
