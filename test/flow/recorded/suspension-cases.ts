import {
  type Answer,
  type PendingCall,
  resumeToolLoop,
  runToolLoop,
  type ToolLoopConfig,
  ToolRegistry,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { answeredTools, waitingTools } from './answered-tools.js';
import type { RecordedCase } from './case.js';
import { runOf } from './loop-cases.js';
import { Seeded } from './seeded.js';

const RUNS = 110;
const ROUNDS = 4;
const USER = { role: 'user', content: 'Go' } as const;
const SECRET = 'a secret of at least 32 bytes, said';

const CALLS: readonly (readonly [string, object])[] = [
  ['pay', { amount: 200 }],
  ['pay', { amount: 20 }],
  ['pay', { amount: '300' }],
  ['erase', {}],
  ['locate', {}],
  ['locate', { precise: true }],
  ['book', { city: 'Oslo' }],
  ['book', { city: 'Rome' }],
  ['both', {}],
  ['shaky', {}],
  ['add', { a: 1, b: 2 }],
  ['add', { a: 1 }],
  ['fail', {}],
  ['note', { note: 'x' }],
  ['echo', { say: 'hi' }],
  ['nobody', {}],
  ['work', {}],
];

/** Answers to pending calls. Most are valid. */
function answersTo(pending: readonly PendingCall[], random: Seeded): Answer[] {
  const answers = pending.map((call) => answerTo(call, random));
  if (random.chance(0.15)) return answers.slice(1);
  if (random.chance(0.06)) return [...answers, { id: 'nobody asked', value: 1 }];
  if (random.chance(0.05)) return [...answers, ...answers.slice(0, 1)];
  return answers;
}

function answerTo({ id, kind, message = '' }: PendingCall, random: Seeded): Answer {
  if (random.chance(0.12))
    return random.pick<Answer>([
      { id, approved: false, reason: 'not today' },
      { id, approved: false },
    ]);
  if (random.chance(0.1))
    return random.pick<unknown>([
      { id, value: 'sometimes' },
      { id, approved: 'yes' },
      { id },
      { id, reson: 'slip' },
      { id, result: new Error('lost') },
      null,
    ]) as Answer;
  if (kind === 'approval') return { id, approved: true };
  if (kind === 'client')
    return {
      id,
      result: random.pick<unknown>([
        'Main street',
        { lat: 1, lon: 2 },
        null,
        { for_llm: 'here', silent: true, is_error: false, async: false },
        { for_llm: 'lost', silent: false, is_error: true, async: false },
      ]),
    };
  return {
    id,
    value: message.includes('seat')
      ? random.pick(['aisle', 'window', 'roof'])
      : random.pick([true, true, false, 'well']),
  };
}

/** Suspended runs with their states, resumed with valid and invalid answers. */
export function suspensionCases(): RecordedCase[] {
  return Array.from({ length: RUNS }, (_, index) => ({
    name: `suspended run ${index + 1}`,
    run: () => suspendedRun(new Seeded(`suspended ${index}`)),
  }));
}

async function suspendedRun(random: Seeded): Promise<unknown> {
  const calls = Array.from({ length: random.pick([1, 1, 2, 3, 4]) }, () => {
    const [name, args] = random.pick(CALLS);
    return { name, arguments: args as never };
  });
  const replies = [
    { content: random.pick(['', 'One moment.']), toolCalls: calls },
    { content: 'Then', toolCalls: random.chance(0.3) ? calls.slice(0, 1) : [] },
    { content: 'Done.' },
    { content: 'Really.' },
  ];
  const config: ToolLoopConfig = {
    provider: new ScriptedProvider(replies),
    model: 'm',
    tools: new ToolRegistry().register(...answeredTools(), ...waitingTools()),
    ...(random.chance(0.3) ? { stateSecret: SECRET } : {}),
    ...(random.chance(0.2) ? { policy: ({ tool }) => tool.name !== 'erase' } : {}),
  };
  const scope = { ...(random.chance(0.3) && config.stateSecret ? { owner: { user: 'u1' } } : {}), data: {} };
  let run = await runToolLoop(config, [USER], scope);
  const rounds: unknown[] = [runOf(run)];
  for (let round = 0; round < ROUNDS && run.state !== undefined; round += 1) {
    const answers = answersTo(run.pending ?? [], random);
    const state = JSON.parse(JSON.stringify(run.state));
    try {
      run = await resumeToolLoop(
        config,
        state,
        answers,
        random.chance(0.2) ? { scope, answeredBy: { clerk: 7 } } : scope,
      );
      const { messages, ...others } = runOf(run) as { messages: readonly unknown[] };
      rounds.push({ answers, ...others, messages: messages.slice(1) });
    } catch (thrown) {
      rounds.push({ answers, thrown });
    }
  }
  return rounds;
}
