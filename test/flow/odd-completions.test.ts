import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type AsyncCallback, asyncResult, Conversation, defineTool, ToolResult } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { historyFaults } from './strict-history.js';

const odd: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    ...[10.5, Number.NaN, 1, '', 'text', true, null, undefined, 10n, Symbol('odd'), new Date(0)],
    ...[new Map([[1, 2]]), new Error('odd'), () => 'odd', [null], [{ type: 'image' }], { toJSON: () => 5 }],
  ),
  fc.jsonValue(),
);

const oddResult = fc.oneof(
  odd,
  fc
    .record({ forLLM: odd, forUser: odd, silent: odd, isError: odd, content: odd, error: odd })
    .map((fields) => Object.assign(new ToolResult({ forLLM: 'ok' }), fields)),
);

test('Conversation accepts any completion of started work, and its snapshots can be restored', async () => {
  await fc.assert(
    fc.asyncProperty(oddResult, fc.boolean(), async (completion, isCallback) => {
      let complete: AsyncCallback = () => {};
      const hold = Promise.withResolvers<unknown>();
      const tool = isCallback
        ? {
            name: 'start',
            description: 'Start',
            parameters: { type: 'object' },
            setCallback: (callback: AsyncCallback) => {
              complete = callback;
            },
            execute: () => asyncResult('Started.'),
          }
        : defineTool({
            name: 'start',
            description: 'Start',
            execute: (_args, context) => context.background(() => hold.promise, 'Started.'),
          });
      const steps = [{ toolCalls: [{ name: 'start' }] }, { content: 'Begun.' }, { content: 'Done.' }];
      const config = { provider: new ScriptedProvider(steps), model: 'm', tools: [tool] };
      const conversation = new Conversation(config);
      await conversation.prompt('Go');
      if (isCallback) complete(undefined, completion as ToolResult);
      else hold.resolve(completion);
      await conversation.idle({ tasks: true });
      expect(historyFaults(conversation.messages)).toEqual([]);
      expect(conversation.messages.at(-1)).toEqual({ role: 'assistant', content: 'Done.' });
      expect(conversation.messages.at(-2)?.content).toEqual(
        expect.stringContaining('[System: async:start] '),
      );
      const restored = Conversation.restore(config, JSON.parse(JSON.stringify(conversation)));
      expect(restored.messages).toEqual(conversation.messages);
    }),
    { numRuns: 150 },
  );
});
