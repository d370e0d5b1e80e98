import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type Answer,
  defineTool,
  type LLMProvider,
  type Message,
  type PendingCall,
  type RunState,
  resumeToolLoop,
  runToolLoop,
  type ToolDefinition,
  type ToolLoopConfig,
  type ToolLoopResult,
} from 'toolwright';
import { runs } from '../setup/runs.js';
import { historyFaults } from './strict-history.js';

const MINUTE = 60_000;
const input: readonly Message[] = [{ role: 'user', content: 'Go.' }];

/** What calls do: run at once, later, alone, or wait for an answer. */
const KINDS = [
  'plain',
  'later',
  'alone',
  'approve',
  'client',
  'ask',
  'approve_and_ask',
  'alone_ask',
  'nothing',
];

interface Schedule {
  /** The tools that each reply of the model calls. */
  readonly replies: readonly (readonly string[])[];
  /** How the answers are chosen each time the run waits. */
  readonly moments: readonly {
    /** The share of the pending calls that is answered, from the end or from the start. */
    readonly share: number;
    readonly isReversed: boolean;
    readonly refuses: boolean;
    readonly isWrongFirst: boolean;
    /** The run is aborted when the answers are given. */
    readonly aborts: boolean;
  }[];
}

const schedules: fc.Arbitrary<Schedule> = fc.record({
  replies: fc.array(fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 5 }), {
    minLength: 1,
    maxLength: 4,
  }),
  moments: fc
    .infiniteStream(
      fc.record({
        share: fc.double({ min: 0, max: 1, noNaN: true }),
        isReversed: fc.boolean(),
        refuses: fc.boolean(),
        isWrongFirst: fc.boolean(),
        aborts: fc.constantFrom(false, false, false, false, false, true),
      }),
    )
    .map((stream) => [...stream.take(60)]),
});

/** How often bodies and `once` work ran, by call id. */
class Diary {
  readonly ran = new Map<string, number>();
  readonly once = new Map<string, number>();

  note(of: 'ran' | 'once', callId: string): void {
    this[of].set(callId, (this[of].get(callId) ?? 0) + 1);
  }
}

function toolsFor(diary: Diary): readonly ToolDefinition[] {
  const plain = (name: string, more: object) =>
    defineTool({
      name,
      description: name,
      execute: async (_args, { callId }) => {
        diary.note('ran', callId);
        if (name === 'later') await new Promise(setImmediate);
        return `${name} of ${callId}`;
      },
      ...more,
    });
  const asking = (name: string, more: object) =>
    defineTool({
      name,
      description: name,
      execute: async (_args, context) => {
        await context.once('effect', () => diary.note('once', context.callId));
        const [one, other] = await Promise.all([
          context.ask({ message: 'One?', schema: { type: 'integer' } }),
          context.ask({ message: 'Other?', schema: { type: 'integer' } }),
        ]);
        const last = await context.ask({ message: `After ${one}?` });
        diary.note('ran', context.callId);
        return `${one} ${other} ${last}`;
      },
      ...more,
    });
  return [
    plain('plain', {}),
    plain('later', {}),
    plain('alone', { sequential: true }),
    plain('approve', { approval: true }),
    defineTool({ name: 'client', description: 'client' }),
    asking('ask', {}),
    asking('approve_and_ask', { approval: true }),
    asking('alone_ask', { sequential: true }),
  ];
}

function modelOf(replies: Schedule['replies']): LLMProvider & { readonly requests: (readonly Message[])[] } {
  const requests: (readonly Message[])[] = [];
  return {
    requests,
    async chat({ messages }) {
      const reply = replies[requests.length] ?? [];
      requests.push(messages);
      // Models reuse ids: the first call of every reply has the same id.
      const toolCalls = reply.map((name, index) => ({
        id: index === 0 ? 'c' : `c${requests.length}_${index}`,
        name,
        arguments: {},
      }));
      const content = toolCalls.length > 0 ? '' : 'Done.';
      return { content, toolCalls, finishReason: toolCalls.length > 0 ? 'tool_calls' : 'stop' };
    },
  };
}

function answerTo({ id, kind }: PendingCall, refuses: boolean): Answer {
  if (refuses) return { id, approved: false, reason: 'no' };
  if (kind === 'client') return { id, result: 'client' };
  return kind === 'approval' ? { id, approved: true } : { id, value: 7 };
}

interface Played {
  readonly run: ToolLoopResult;
  readonly answered: readonly string[];
}

/** Runs a schedule to its end, and serializes every state as between processes. */
async function play(schedule: Schedule, config: ToolLoopConfig, stop: AbortController): Promise<Played> {
  const answered: string[] = [];
  let run = await runToolLoop(config, input);
  for (const { share, isReversed, refuses, isWrongFirst, aborts } of schedule.moments) {
    if (run.status !== 'suspended') break;
    expect(historyFaults(run.messages)).toEqual([]);
    const state = JSON.parse(JSON.stringify(run.state)) as RunState;
    expect(state).toEqual(run.state);
    const pending = isReversed ? [...(run.pending ?? [])].reverse() : (run.pending ?? []);
    const chosen = pending.slice(0, Math.max(1, Math.ceil(share * pending.length)));
    if (isWrongFirst) {
      const wrong = [
        ...chosen.map((one) => answerTo(one, refuses)),
        ...answered.slice(0, 1).map((id) => ({ id, value: 1 })),
      ];
      const unknown = { id: 'question_nobody', value: 1 };
      await expect(resumeToolLoop(config, state, [...wrong, unknown])).rejects.toMatchObject({ code: 514 });
    }
    if (aborts) stop.abort();
    run = await resumeToolLoop(
      config,
      state,
      chosen.map((one) => answerTo(one, refuses)),
    );
    answered.push(...chosen.map(({ id }) => id));
  }
  return { run, answered };
}

test(
  'under any schedule of answers, every call is answered once, and no body or `once` runs twice',
  async () => {
    await fc.assert(
      fc.asyncProperty(schedules, async (schedule) => {
        const diary = new Diary();
        const provider = modelOf(schedule.replies);
        const stop = new AbortController();
        const config: ToolLoopConfig = {
          provider,
          model: 'm',
          tools: toolsFor(diary),
          maxRetries: 100,
          loopGuard: false,
          stateSecret: 'secret that has at least thirty-two characters',
          signal: stop.signal,
        };
        const { run, answered } = await play(schedule, config, stop);
        expect(run.status).toBe(stop.signal.aborted ? 'aborted' : 'completed');
        expect(historyFaults(run.messages)).toEqual([]);
        for (const messages of provider.requests) expect(historyFaults(messages)).toEqual([]);
        expect(provider.requests).toHaveLength(run.iterations);
        const told = run.messages.flatMap((message) =>
          message.role === 'tool' ? [message.tool_call_id] : [],
        );
        expect(run.toolCalls.map(({ id }) => id)).toEqual(told);
        expect(new Set(answered).size).toBe(answered.length);
        // The id `c` is used in every reply, so it may run once for each of them.
        for (const effects of [diary.ran, diary.once])
          for (const [id, count] of effects)
            expect(count).toBeLessThanOrEqual(id === 'c' ? schedule.replies.length : 1);
        for (const { id, name, status } of run.toolCalls) {
          if (status !== 'success' || name === 'client' || id === 'c') continue;
          expect(diary.ran.get(id)).toBe(1);
        }
      }),
      { numRuns: runs(80) },
    );
  },
  MINUTE,
);
