import type { LLMProvider } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';

const REPAIRED =
  'The tests pass: `totalOf` counts each item as often as it is there, and `priceOf` writes two digits.';
const REFUSED = 'The tests still fail: nothing was changed.';

/** A scripted model that repairs the sample. Its calls are executed for real. */
export function rehearsedModel(): LLMProvider {
  const test = { name: 'run_command', arguments: { command: 'npm test' } };
  return new ScriptedProvider([
    { content: 'I run the tests first.', toolCalls: [test] },
    { toolCalls: [{ name: 'read_file', arguments: { path: 'src/receipt.js' } }] },
    {
      content: 'The count of an item is left out, and one digit of cents gets no zero.',
      toolCalls: [
        {
          name: 'edit_file',
          arguments: {
            path: 'src/receipt.js',
            edits: [
              {
                oldText: '{ cents }) => total + cents',
                newText: '{ cents, count }) => total + cents * count',
              },
              { oldText: '${cents % 100} €`', newText: "${String(cents % 100).padStart(2, '0')} €`" },
            ],
          },
        },
      ],
    },
    { toolCalls: [test] },
    ({ messages }) => ({
      content: /^. fail 0$/m.test(String(messages.at(-1)?.content)) ? REPAIRED : REFUSED,
    }),
  ]);
}
