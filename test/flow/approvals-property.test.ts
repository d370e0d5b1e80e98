import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type Answer,
  agentAsTool,
  defineTool,
  type LLMProvider,
  type LLMRequest,
  type Message,
  type PendingCall,
  resumeToolLoop,
  runToolLoop,
  type ToolDefinition,
  type ToolLoopResult,
} from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { runs } from '../setup/runs.js';
import { historyFaults } from './strict-history.js';

const hello: readonly Message[] = [{ role: 'user', content: 'Go.' }];
const OWNER = { owner: { user: 'u1' }, conversationId: 'c1' };

/** The calls of an agent's model, reply by reply; nesting has a limit. */
interface Plan {
  readonly replies: readonly (readonly ('pay' | 'look' | 'ask' | 'agent')[])[];
  readonly inner: Plan | undefined;
}

const plan: fc.Arbitrary<Plan> = fc.letrec<{ plan: Plan }>((tie) => ({
  plan: fc.record({
    replies: fc.array(
      fc.array(fc.constantFrom('pay' as const, 'look' as const, 'ask' as const, 'agent' as const), {
        minLength: 1,
        maxLength: 3,
      }),
      { minLength: 1, maxLength: 2 },
    ),
    inner: fc.option(tie('plan'), { nil: undefined, depthSize: 'small', maxDepth: 2 }),
  }),
})).plan;

const decision = fc.record({
  how: fc.constantFrom('yes', 'no', 'edit', 'remember', 'wrong edit', 'unknown'),
  share: fc.double({ min: 0, max: 1, noNaN: true }),
  isReversed: fc.boolean(),
});

/** Replies depend on the length of the conversation, so that every process gives the same ones. */
function modelOf(replies: Plan['replies'], level: number, seen: (readonly Message[])[]): LLMProvider {
  return {
    async chat({ messages }: LLMRequest) {
      seen.push(messages);
      const step = messages.filter(({ role }) => role === 'assistant').length;
      const toolCalls = (replies[step] ?? []).map((name, index) => ({
        // Ids are the same on every level: only the path distinguishes them.
        id: `c${step}_${index}`,
        name,
        arguments:
          name === 'pay' ? { amount: 10 * step + index, level } : name === 'agent' ? { task: 't' } : {},
      }));
      const isLast = toolCalls.length === 0;
      return {
        content: isLast ? 'Done.' : '',
        toolCalls,
        finishReason: isLast ? ('stop' as const) : ('tool_calls' as const),
        usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
      };
    },
  };
}

interface Diary {
  readonly paid: { readonly amount: number; readonly key: string }[];
  readonly approved: number[];
  readonly requests: (readonly Message[])[];
}

function toolsOf({ inner }: Plan, level: number, diary: Diary): readonly ToolDefinition[] {
  const pay = defineTool({
    name: 'pay',
    description: 'Pay',
    parameters: {
      type: 'object',
      properties: { amount: { type: 'integer', maximum: 5000 }, level: { type: 'integer' } },
      required: ['amount', 'level'],
    } as const,
    approval: { remember: { scopes: ['run'] } },
    execute: ({ amount }, { idempotencyKey: key }) => {
      diary.paid.push({ amount: Number(amount), key });
      return `paid ${amount}`;
    },
  });
  const look = defineTool({ name: 'look', description: 'Look', execute: async () => 'seen' });
  const ask = defineTool({
    name: 'ask',
    description: 'Ask',
    execute: (_args, context) => context.ask({ message: 'How many?', schema: { type: 'integer' } }),
  });
  const next = inner ?? { replies: [], inner: undefined };
  const agent = agentAsTool({
    name: 'agent',
    description: 'Acts',
    provider: modelOf(next.replies, level + 1, diary.requests),
    model: 'm',
    tools: inner === undefined ? [look] : toolsOf(inner, level + 1, diary),
    maxDepth: 6,
  });
  return [pay, look, ask, agent];
}

type Decision = typeof decision extends fc.Arbitrary<infer Value> ? Value : never;

function answerTo({ id, kind, arguments: args }: PendingCall, how: Decision['how']): Answer {
  if (how === 'unknown') return { id: `${id}x`, approved: true };
  if (kind === 'question')
    return how === 'no' ? { id, approved: false } : { id, value: how === 'wrong edit' ? 'x' : 7 };
  switch (how) {
    case 'no':
      return { id, approved: false, reason: 'no' };
    case 'edit':
      return { id, approved: true, arguments: { ...args, amount: Number(args.amount) + 1000 } };
    case 'wrong edit':
      return { id, approved: true, arguments: { ...args, amount: 'much' } };
    case 'remember':
      return { id, approved: true, remember: { scope: 'run' } };
    default:
      return { id, approved: true };
  }
}

function sent<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value));
}

/** Every state goes through JSON to new tools and models, as in another process. */
async function play(given: Plan, decisions: readonly Decision[], diary: Diary): Promise<ToolLoopResult> {
  const store = new MemoryRunStore();
  const config = () => ({
    provider: modelOf(given.replies, 0, diary.requests),
    model: 'm',
    tools: toolsOf(given, 0, diary),
    store,
    loopGuard: false as const,
    stateSecret: 'a secret of thirty-two characters',
  });
  let run = await runToolLoop(config(), hello, OWNER);
  for (const { how, share, isReversed } of [...decisions, ...Array(200).fill({ how: 'yes', share: 1 })]) {
    if (run.status !== 'suspended') return run;
    const pending = isReversed ? (run.pending ?? []).toReversed() : (run.pending ?? []);
    const answered = pending.slice(0, Math.max(1, Math.ceil(share * pending.length)));
    const answers = answered.map((wait) => answerTo(wait, how));
    const paid = diary.paid.length;
    const before = sent(run.state);
    try {
      const next = await resumeToolLoop(config(), sent(run.state), answers, { scope: OWNER });
      expect(how).not.toBe('unknown');
      for (const wait of answered)
        if (wait.kind === 'approval' && how !== 'no')
          diary.approved.push(Number(wait.arguments.amount) + (how === 'edit' ? 1000 : 0));
      run = next;
    } catch (error) {
      // A wrong answer runs nothing and leaves the state unchanged.
      expect(error).toMatchObject({ name: 'InvalidAnswer' });
      expect(['wrong edit', 'unknown']).toContain(how);
      expect(diary.paid).toHaveLength(paid);
      expect(run.state).toEqual(before);
    }
  }
  return run;
}

test('resumeToolLoop handles edits, refusals, remembered approvals and nested agents through JSON', async () => {
  await fc.assert(
    fc.asyncProperty(plan, fc.array(decision, { maxLength: 12 }), async (given, decisions) => {
      const diary: Diary = { paid: [], approved: [], requests: [] };
      const run = await play(given, decisions, diary);
      expect(run.status).toBe('completed');
      // Every call is answered once and in order, on every level and before every request.
      for (const messages of [...diary.requests, run.messages]) expect(historyFaults(messages)).toEqual([]);
      // Nothing runs without an approval, and nothing runs twice.
      const keys = diary.paid.map(({ key }) => key);
      expect(new Set(keys).size).toBe(keys.length);
      const isRemembered = decisions.some(({ how }) => how === 'remember');
      const paid = diary.paid.map(({ amount }) => amount).toSorted((one, other) => one - other);
      const approved = diary.approved.toSorted((one, other) => one - other);
      if (!isRemembered) expect(paid).toEqual(approved);
      else for (const amount of paid) expect(approved).toContain(amount);
      // An edit runs with the edited arguments, and the model is informed.
      for (const record of run.toolCalls) {
        if (record.edited === undefined) continue;
        expect(record.arguments?.amount).toBe(Number(record.edited.original.amount) + 1000);
        const told = run.messages.filter(({ content }) => String(content).includes('changed its arguments'));
        expect(told.length).toBeGreaterThan(0);
      }
      // The usage of all levels is counted once.
      expect(run.usage.totalTokens).toBe(2 * diary.requests.length);
    }),
    { numRuns: runs(40) },
  );
}, 120_000);
