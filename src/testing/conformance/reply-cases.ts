import { LOOK_UP } from './bench.js';
import type { CaseDraft } from './conformance-case.js';
import { expectSame, expectThat } from './expectations.js';
import type { ModelCall } from './provider-backend.js';

/** With what a careless decoder or encoder would change. */
const TEXT = 'Grüße, 世界 👩‍👩‍👧!\n\t"quoted" \\n \\ \u2028 </s> <tool_call> data: [DONE] ';

const { name } = LOOK_UP.function;
const OSLO = { id: 'call_a1', name, arguments: '{"city":"Oslo","days":3}' };
const ROME = { id: 'call_b2', name, arguments: '{"city":"Rome","days":5}' };

const THOUGHT = { text: 'Oslo first.\nThen “Rome” 🤔', sealed: 'c2VhbGVk+/==' };

/** As the contract has them, where the texts are JSON objects. */
function expectCalls(
  given: readonly { readonly name: string; readonly arguments: unknown }[],
  calls: readonly ModelCall[],
): void {
  const wanted = calls.map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) as unknown }));
  expectThat(
    given.length === calls.length,
    `it gives ${given.length} calls, and the model made ${calls.length}: ${calls.map(({ arguments: args }) => args).join(', ')}`,
  );
  for (const [at, call] of given.entries())
    expectSame(`call ${at + 1}`, { name: call.name, arguments: call.arguments }, wanted[at]);
}

function expectDistinct(ids: readonly string[]): void {
  expectThat(!ids.includes(''), 'a call has no id');
  expectThat(new Set(ids).size === ids.length, `two calls have one id: ${ids.join(', ')}`);
}

/** What a reply is made of. */
export const REPLY_CASES: readonly CaseDraft[] = [
  {
    title: 'gives a text as the model said it',
    rule: '`content` of LLMResponse is the text of the reply, whole and unchanged',
    async run(bench) {
      const response = await bench.reply({ text: TEXT });
      expectSame('content', response.content, TEXT);
      expectSame('toolCalls', response.toolCalls, []);
      expectSame('finishReason', response.finishReason, 'stop');
    },
  },
  {
    title: 'gives a call with its tool and its arguments',
    rule: '`toolCalls` of LLMResponse are the calls of the reply; `arguments` is an object where the model wrote one',
    async run(bench) {
      const response = await bench.reply({ calls: [OSLO] });
      expectCalls(response.toolCalls, [OSLO]);
      expectSame('content', response.content, '');
      expectSame('finishReason', response.finishReason, 'tool_calls');
    },
  },
  {
    title: 'gives parallel calls one by one and in their order',
    rule: 'each call that the model makes is one of `toolCalls`, in the order of the model, with an id of its own',
    needs: ['parallel-calls'],
    async run(bench) {
      const calls = [OSLO, ROME, { ...OSLO, id: 'call_c3' }];
      const { toolCalls } = await bench.reply({ calls });
      expectCalls(toolCalls, calls);
      expectDistinct(toolCalls.map(({ id }) => id));
    },
  },
  {
    title: 'gives the ids of calls as the model has them',
    rule: '`id` of a call is the provider’s own: the answer is sent to that',
    needs: ['call-ids'],
    async run(bench) {
      const { toolCalls } = await bench.reply({ calls: [OSLO, ROME] });
      expectSame(
        'the list of ids',
        toolCalls.map(({ id }) => id),
        [OSLO.id, ROME.id],
      );
    },
  },
  {
    title: 'gives text and calls of one reply both',
    rule: '`content` and `toolCalls` of LLMResponse stand beside each other',
    needs: ['any-reply'],
    async run(bench) {
      const { content, toolCalls } = await bench.reply({ text: TEXT, calls: [OSLO] });
      expectSame('content', content, TEXT);
      expectCalls(toolCalls, [OSLO]);
    },
  },
  {
    title: 'gives arguments of any depth, and none',
    rule: '`arguments` of a call is the object that the model wrote, whole',
    needs: ['any-reply'],
    async run(bench) {
      const deep = { a: [{ b: [[null, true, -0.5, 1e21]] }], 'ä "k"': TEXT, toString: '', '': {} };
      const calls = [
        { ...OSLO, arguments: JSON.stringify(deep) },
        { ...ROME, arguments: '{}' },
      ];
      expectCalls((await bench.reply({ calls })).toolCalls, calls);
    },
  },
  {
    title: 'gives arguments that are no JSON object as their text',
    rule: '`arguments` of a call is the raw text where it was no JSON object: what reads it repairs it or tells the model',
    needs: ['raw-arguments'],
    async run(bench) {
      for (const text of ['{"city": "Oslo"', 'Oslo', '["Oslo"]']) {
        const { toolCalls } = await bench.reply({ calls: [{ ...OSLO, arguments: text }] });
        expectSame('the arguments of the call', toolCalls[0]?.arguments, text);
      }
    },
  },
  {
    title: 'tells that a reply is cut, also one with calls',
    rule: '`finishReason` is `length` or `content_filter` where the model broke off: calls of such a reply are not run',
    needs: ['any-reply'],
    async run(bench) {
      for (const finishReason of ['length', 'content_filter'] as const)
        expectSame(
          'finishReason',
          (await bench.reply({ text: 'Half a sen', finishReason })).finishReason,
          finishReason,
        );
      const { finishReason } = await bench.reply({ calls: [OSLO], finishReason: 'length' });
      expectSame('finishReason of a cut reply with a call', finishReason, 'length');
    },
  },
  {
    title: 'counts the tokens',
    rule: '`usage` of LLMResponse has all of the input, all of the output, reasoning included, and the sum',
    needs: ['usage'],
    async run(bench) {
      const { usage } = await bench.reply({ text: 'Hello' });
      const { inputTokens, outputTokens, totalTokens } = usage ?? {};
      const wanted = { inputTokens: 1_200, outputTokens: 340, totalTokens: 1_540 };
      expectSame('usage', usage && { inputTokens, outputTokens, totalTokens }, wanted);
    },
  },
  ...(
    [
      ['cacheReadTokens', 'cache-read-tokens', 1_000],
      ['cacheWriteTokens', 'cache-write-tokens', 50],
      ['reasoningTokens', 'reasoning-tokens', 200],
    ] as const
  ).map(
    ([part, capability, count]): CaseDraft => ({
      title: `counts ${part}`,
      rule: `\`usage.${part}\` is there where the provider tells it`,
      needs: ['usage', capability],
      async run(bench) {
        const { usage } = await bench.reply({ text: 'Hello', reasoning: THOUGHT });
        expectSame(`usage.${part}`, usage?.[part], count);
      },
    }),
  ),
  {
    title: 'gives what the model thought apart from what it said',
    rule: '`reasoning` of LLMResponse is text for people, and never part of `content`',
    needs: ['reasoning'],
    async run(bench) {
      const response = await bench.reply({ text: 'Hello', reasoning: THOUGHT, calls: [OSLO] });
      expectSame('content', response.content, 'Hello');
      expectSame('reasoning', response.reasoning, THOUGHT.text);
    },
  },
];
