import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  defineTool,
  type LLMProvider,
  type LLMRequest,
  type Message,
  resumeToolLoop,
  runToolLoop,
  type Tool,
  type ToolLoopConfig,
  type ToolLoopResult,
  ToolRegistry,
  ToolResult,
} from 'toolwright';
import { runs } from '../setup/runs.js';
import { arbitraryRun, type RandomRun } from './random-run.js';
import { historyFaults } from './strict-history.js';
import { ODD_RESULTS, troublesomeTools } from './troublesome-tools.js';

const MINUTE = 60_000;
const input: readonly Message[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Go.' },
];

interface Played {
  readonly run: ToolLoopResult;
  readonly requests: readonly (readonly Message[])[];
  readonly given: readonly Message[];
}

/** Plays a random script with faulty tools, answers all pending calls, and returns everything observed. */
async function play(random: RandomRun): Promise<Played> {
  const controller = new AbortController();
  let events = 0;
  const happened = (): void => {
    if (events === random.abortAt) controller.abort(new Error('enough'));
    events += 1;
  };
  const fail = (): never => {
    throw new Error('a listener threw');
  };
  const requests: Message[][] = [];
  const provider: LLMProvider = {
    async chat({ messages }: LLMRequest) {
      requests.push([...messages]);
      happened();
      const reply = random.replies[requests.length - 1];
      if (reply === undefined) return { content: 'done', toolCalls: [], finishReason: 'stop' };
      if (reply === 'down') throw new Error('the provider is down');
      return reply as never;
    },
  };
  const config: ToolLoopConfig = {
    provider,
    model: 'random',
    tools: troublesomeTools(happened),
    signal: controller.signal,
    toolTimeoutMs: 1000,
    ...random.limits,
    ...(random.throwingLogger ? { logger: { debug: fail, info: fail, warn: fail, error: fail } } : {}),
    ...(random.listener === 'none' ? {} : { onAsyncResult: random.listener === 'throws' ? fail : () => {} }),
  };
  const given = structuredClone(input) as Message[];
  const scope = { channel: 'test', chatId: 'c1', onUpdate: fail };
  let run = await runToolLoop(config, given, scope);
  while (run.status === 'suspended') {
    expect(historyFaults(run.messages)).toEqual([]);
    const answers = (run.pending ?? []).map(({ id }) => ({ id, result: 'from the client' }));
    run = await resumeToolLoop(config, JSON.parse(JSON.stringify(run.state)), answers, scope);
  }
  return { run, requests, given };
}

describe('every call is answered exactly once, in call order, before the next request', () => {
  test(
    'the history is valid on every path, the input is unchanged, and nothing is thrown',
    async () => {
      await fc.assert(
        fc.asyncProperty(arbitraryRun, async (random) => {
          const { run, requests, given } = await play(random);
          expect(historyFaults(run.messages)).toEqual([]);
          for (const messages of requests) expect(historyFaults(messages)).toEqual([]);
          expect(given).toEqual(input);
          expect(run.messages.slice(0, input.length)).toEqual(input);
          const answered = run.messages.flatMap((message) =>
            message.role === 'tool' ? [message.tool_call_id] : [],
          );
          expect(run.toolCalls.map(({ id }) => id)).toEqual(answered);
          expect(['completed', 'limit', 'aborted', 'failed']).toContain(run.status);
          expect(run.error === undefined).toBe(run.status === 'completed');
          expect(requests).toHaveLength(run.iterations);
          for (const { result } of run.toolCalls) expect(ToolResult.is(result)).toBe(true);
        }),
        { numRuns: runs(400) },
      );
    },
    MINUTE,
  );

  test(
    'results are in call order, in whatever order the tools end',
    async () => {
      const wait = defineTool({
        name: 'wait',
        description: 'Waits',
        parameters: { type: 'object', properties: { turns: { type: 'integer' } }, required: ['turns'] },
        execute: async ({ turns }) => {
          for (let turn = 0; turn < Number(turns); turn += 1) await new Promise(setImmediate);
          return `waited ${turns}`;
        },
      });
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.nat(12), { minLength: 1, maxLength: 8 }),
          fc.constantFrom(undefined, 1, 2, 3),
          async (turns, maxConcurrency) => {
            let isFirst = true;
            const provider: LLMProvider = {
              async chat() {
                if (!isFirst) return { content: '', toolCalls: [], finishReason: 'stop' };
                isFirst = false;
                const toolCalls = turns.map((count, index) => ({
                  id: `c${index}`,
                  name: 'wait',
                  arguments: { turns: count },
                }));
                return { content: '', toolCalls, finishReason: 'tool_calls' };
              },
            };
            const run = await runToolLoop({ provider, model: 'm', tools: [wait], maxConcurrency }, input);
            const contents = run.messages.flatMap((message) =>
              message.role === 'tool' ? [message.content] : [],
            );
            expect(contents).toEqual(turns.map((count) => `waited ${count}`));
          },
        ),
      );
    },
    MINUTE,
  );
});

describe('a mistake of the model is a result, never an exception', () => {
  const tools = troublesomeTools(() => {});

  test(
    'any name and any arguments return a result',
    async () => {
      const names = fc.oneof(fc.constantFrom(...tools.list(), 'constructor', '__proto__', ''), fc.string());
      await fc.assert(
        fc.asyncProperty(names, fc.oneof(fc.anything(), fc.json(), fc.string()), async (name, args) => {
          const result = await tools.execute(name, args);
          expect(ToolResult.is(result)).toBe(true);
          expect(typeof result.forLLM).toBe('string');
          const answer = await tools.call({ id: 'i', name, arguments: args });
          expect(answer).toMatchObject({ toolCallId: 'i', name, isError: result.isError });
        }),
        { numRuns: runs(500) },
      );
    },
    MINUTE,
  );

  test.each(Object.keys(ODD_RESULTS))('a tool that returns or throws %s returns a result', async (what) => {
    const result = await tools.execute('odd', { what });
    expect(ToolResult.is(result)).toBe(true);
    expect(typeof result.forLLM).toBe('string');
    expect(typeof JSON.stringify(result)).toBe('string');
  });
});

describe('names from a model are never looked up in prototypes', () => {
  test.each(['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf'])(
    'a tool called %s is not found',
    async (name) => {
      const tools = new ToolRegistry();
      expect(tools.get(name)).toBeUndefined();
      expect((await tools.execute(name, {})).forLLM).toBe(`tool not found: ${name}`);
    },
  );

  test('arguments called __proto__ or constructor change no prototype and reach no tool', async () => {
    const seen: unknown[] = [];
    const tools = new ToolRegistry();
    tools.register({
      name: 'keep',
      description: 'Keeps what it gets',
      parameters: { type: 'object', properties: { a: { type: 'integer' } } },
      execute: (args: object) => {
        seen.push(args);
        return 'ok';
      },
    });
    const polluted = '{"a":1,"__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}}}';
    await tools.execute('keep', polluted);
    await tools.execute('keep', JSON.parse(polluted));
    for (const args of seen) {
      expect(Object.getOwnPropertyNames(args)).toEqual(['a']);
      expect(Object.getPrototypeOf(args)).toBe(Object.prototype);
      expect(args).not.toHaveProperty('isAdmin');
    }
    expect(Object.prototype).not.toHaveProperty('isAdmin');
  });
});

describe('the same tools give the same bytes', () => {
  const name = fc.stringMatching(/^[a-z_][a-z0-9_-]{0,12}$/);
  const tool = fc
    .tuple(name, fc.string(), fc.dictionary(fc.string(), fc.constantFrom('string', 'integer', 'boolean')))
    .map(
      ([toolName, description, types]): Tool => ({
        name: toolName,
        description,
        parameters: {
          type: 'object',
          properties: Object.fromEntries(Object.entries(types).map(([key, type]) => [key, { type }])),
        },
        execute: () => 'ok',
      }),
    );
  const tools = fc.uniqueArray(tool, { selector: (each) => each.name });

  test('two registries with the same tools return the same bytes', () => {
    fc.assert(
      fc.property(tools, (given) => {
        const [one, other] = [new ToolRegistry().register(...given), new ToolRegistry().register(...given)];
        expect(JSON.stringify(one.toProviderDefs())).toBe(JSON.stringify(other.toProviderDefs()));
        expect(one.list()).toEqual(given.map((each) => each.name));
      }),
    );
  });

  test('the definitions are the same object until a tool is registered', () => {
    fc.assert(
      fc.property(tools, tool, (given, another) => {
        const registry = new ToolRegistry().register(...given);
        const before = registry.toProviderDefs();
        expect(registry.toProviderDefs()).toBe(before);
        expect(registry.getDefinitions()).toBe(before);
        registry.register(another);
        expect(registry.toProviderDefs()).not.toBe(before);
        expect(registry.toProviderDefs()).toContainEqual({
          type: 'function',
          function: { name: another.name, description: another.description, parameters: another.parameters },
        });
      }),
    );
  });
});
