import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ChatReply } from '../../../src/models/openai/chat-completions.js';
import { leastGrowth } from '../../setup/least-growth.js';

const argumentsText = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value));
const someCall = fc.record({ name: fc.constantFrom('search', 'remove'), text: argumentsText, id: fc.uuid() });
const reply = fc.record({
  content: fc.string({ unit: 'grapheme' }),
  calls: fc.uniqueArray(someCall, { maxLength: 4, selector: ({ id }) => id }),
});

/** The ways in which servers identify the calls of a stream. */
const dialect = fc.constantFrom('by index', 'without index', 'index 0 for all', 'id and name repeated');
type Dialect = typeof dialect extends fc.Arbitrary<infer Name> ? Name : never;

function responseTo(chunks: readonly unknown[]) {
  const reply = new ChatReply('key');
  const parts = [...chunks.flatMap((chunk) => reply.add(chunk)), ...reply.end()];
  const text = parts.map((part) => (part.type === 'text-delta' ? part.text : '')).join('');
  return { text, parts, response: reply.response(true) };
}

function pieces(text: string, size: number): readonly string[] {
  return text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [''];
}

function callChunks(
  { id, name, text }: { id: string; name: string; text: string },
  at: number,
  how: { dialect: Dialect; size: number },
) {
  const index = {
    'by index': at,
    'without index': undefined,
    'index 0 for all': 0,
    'id and name repeated': at,
  }[how.dialect];
  return pieces(text, how.size).map((piece, position) => {
    const named = position === 0 || how.dialect === 'id and name repeated';
    return { index, ...(named ? { id } : {}), function: { ...(named ? { name } : {}), arguments: piece } };
  });
}

describe('assembling a streamed reply', () => {
  test.each(['by index', 'without index', 'id and name repeated'] as const)(
    'long arguments, sent %s, are assembled in linear time',
    async (name) => {
      const assemble = (size: number) => {
        const given = { a: 'x'.repeat(size) };
        const text = JSON.stringify(given);
        const calls = callChunks({ id: 'c1', name: 'save', text }, 0, { dialect: name, size: 64 });
        const { response } = responseTo(
          calls.map((call) => ({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })),
        );
        expect(response?.toolCalls).toMatchObject([{ arguments: given }]);
      };
      const most = 40;
      const growth = await leastGrowth({
        small: () => assemble(100_000),
        large: () => assemble(1_000_000),
        most,
        noiseMs: 8,
      });
      expect(growth).toBeLessThan(most);
    },
  );

  test('chunks of any size give the same response as the whole reply', () => {
    fc.assert(
      fc.property(reply, dialect, fc.integer({ min: 1, max: 9 }), ({ content, calls }, name, size) => {
        const tool_calls = calls.map((call) => ({
          id: call.id,
          function: { name: call.name, arguments: call.text },
        }));
        const finish_reason = calls.length > 0 ? 'tool_calls' : 'stop';
        const deltas = [
          ...pieces(content, size).map((text) => ({ content: text })),
          ...calls
            .flatMap((call, at) => callChunks(call, at, { dialect: name, size }))
            .map((call) => ({ tool_calls: [call] })),
        ];
        const streamed = responseTo([
          ...deltas.map((delta) => ({ choices: [{ index: 0, delta }] })),
          { choices: [{ index: 0, delta: {}, finish_reason }] },
        ]);
        const whole = responseTo([
          { choices: [{ index: 0, message: { content, tool_calls }, finish_reason }] },
        ]);
        expect(streamed.response).toEqual(whole.response);
        expect(streamed.text).toBe(content);
      }),
    );
  });

  test('no JSON value makes it throw', () => {
    const odd = fc.jsonValue();
    const message = fc.record({
      content: odd,
      refusal: odd,
      tool_calls: fc.array(fc.record({ id: odd, index: odd, function: odd, custom: odd })),
      function_call: odd,
    });
    const choice = fc.record(
      { index: odd, delta: fc.oneof(odd, message), message: fc.oneof(odd, message), finish_reason: odd },
      { requiredKeys: [] },
    );
    const chunk = fc.oneof(
      odd,
      fc.record({ choices: fc.oneof(odd, fc.array(choice)), usage: odd }, { requiredKeys: [] }),
    );
    fc.assert(
      fc.property(fc.array(chunk), (chunks) => {
        const { response } = responseTo(chunks);
        if (response === undefined) return;
        expect(typeof response.content).toBe('string');
        for (const call of response.toolCalls) expect(typeof call.name).toBe('string');
      }),
    );
  });
});
