import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type LLMProvider,
  type LoopEvent,
  type Message,
  runToolLoop,
  streamToolLoop,
  type ToolLoopConfig,
  type ToolLoopResult,
} from 'toolwright';
import { withoutTimes } from '../setup/call-records.js';
import { runs } from '../setup/runs.js';
import { arbitraryRun, type RandomRun } from './random-run.js';
import { historyFaults } from './strict-history.js';
import { troublesomeTools } from './troublesome-tools.js';

const MINUTE = 60_000;
const input: readonly Message[] = [{ role: 'user', content: 'Go.' }];

/** The config of one random run, with its own provider, tools and abort. */
function configOf(random: RandomRun, { streams }: { streams: boolean }): ToolLoopConfig {
  const controller = new AbortController();
  let [happenings, requests] = [0, 0];
  const happened = (): void => {
    if (happenings === random.abortAt) controller.abort(new Error('enough'));
    happenings += 1;
  };
  const chat: LLMProvider['chat'] = async () => {
    happened();
    const reply = random.replies[requests];
    requests += 1;
    if (reply === 'down') throw new Error('the provider is down');
    return (reply === undefined ? { content: 'done' } : reply) as never;
  };
  const stream: LLMProvider['stream'] = async function* (request) {
    const response = await chat(request);
    for (const text of response?.content ?? '') yield { type: 'text-delta', text };
    yield { type: 'response', response };
  };
  return {
    provider: streams ? { chat, stream } : { chat },
    model: 'random',
    tools: troublesomeTools(happened),
    signal: controller.signal,
    toolTimeoutMs: 1000,
    ...random.limits,
  };
}

const scope = { channel: 'test', chatId: 'c1' };

/** A result without the parts that differ between runs: durations and ids derived from the run id. */
function comparable(result: ToolLoopResult): unknown {
  const { toolCalls, error, state, runId: _, pending, ...rest } = result;
  const calls = toolCalls.map(withoutTimes).map((record) => ({
    ...record,
    result: JSON.stringify(record.result),
  }));
  const waits = pending?.map(({ id, ...wait }) => wait);
  return { ...rest, waits, open: state?.open.calls.length, toolCalls: calls, error: error?.message };
}

/** The ids of the calls and the results that the events report. */
function retold(events: readonly LoopEvent[]) {
  const ids = (type: LoopEvent['type']) =>
    events.flatMap((event) => ('callId' in event && event.type === type ? [event.callId] : []));
  return {
    ends: events.flatMap((event) => (event.type === 'run-end' ? [event.result] : [])),
    started: ids('call-start'),
    ended: ids('call-end'),
    suspended: ids('call-suspended'),
  };
}

test(
  'runToolLoop, an awaited streamToolLoop and a read streamToolLoop have the same outcome',
  async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryRun, fc.boolean(), async (random, streams) => {
        const collected = await runToolLoop(configOf(random, { streams }), input, scope);
        const awaited = await streamToolLoop(configOf(random, { streams }), input, scope).result;
        const run = streamToolLoop(configOf(random, { streams }), input, scope);
        const events: LoopEvent[] = [];
        for await (const event of run) events.push(event);
        const read = await run.result;
        for (const result of [collected, awaited, read]) expect(historyFaults(result.messages)).toEqual([]);
        expect([awaited.status, read.status]).toEqual([collected.status, collected.status]);
        // Which of several parallel calls an abort still reaches depends on timing.
        if (collected.status !== 'aborted') {
          expect(comparable(awaited)).toEqual(comparable(collected));
          expect(comparable(read)).toEqual(comparable(collected));
        }
        const { ends, started, ended, suspended } = retold(events);
        expect(ends).toEqual([read]);
        expect([...ended].sort()).toEqual(read.toolCalls.map(({ id }) => id).sort());
        // A suspended call that is answered when the run ends has both events.
        const waiting = read.status === 'suspended' ? suspended : [];
        expect([...ended, ...waiting].sort()).toEqual([...started].sort());
      }),
      { numRuns: runs(150) },
    );
  },
  MINUTE,
);

test(
  'a reader of streamToolLoop that leaves at any event leaves a valid history',
  async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryRun, fc.nat(40), async (random, last) => {
        const run = streamToolLoop(configOf(random, { streams: true }), input, scope);
        let seen = 0;
        for await (const _ of run) {
          if (seen === last) break;
          seen += 1;
        }
        const result = await run.result;
        expect(historyFaults(result.messages)).toEqual([]);
        expect(result.messages.slice(0, input.length)).toEqual(input);
        const answered = result.messages.flatMap((message) =>
          message.role === 'tool' ? [message.tool_call_id] : [],
        );
        const settled = (result.state?.open.calls ?? []).flatMap((call) =>
          call.status === 'settled' ? [call.record.id] : [],
        );
        expect(result.toolCalls.map(({ id }) => id)).toEqual([...answered, ...settled]);
      }),
      { numRuns: runs(150) },
    );
  },
  MINUTE,
);
