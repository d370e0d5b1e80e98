import { expect, test } from '@jest/globals';
import { defineTool, ToolRegistry } from 'toolwright';

const LONG = Array.from({ length: 10_000 }, (_, index) => `street-${index * 7919}-north`);

function choosing(values: readonly string[]) {
  return new ToolRegistry().register(
    defineTool({
      name: 'choose',
      description: 'Chooses',
      parameters: { type: 'object', properties: { street: { enum: [...values] } }, required: ['street'] },
      execute: () => 'chosen',
    }),
  );
}

test.each([
  ['a slip at the end', `${LONG[777]}h`, LONG[777]],
  ['a slip at the beginning', `x${LONG[8_000]}`, LONG[8_000]],
  ['other letters', String(LONG[5_000]).toUpperCase(), LONG[5_000]],
])('a value of a long enum with %s is found', async (_what, sent, meant) => {
  const { forLLM } = await choosing(LONG).execute('choose', { street: sent });
  expect(forLLM).toContain(`For street, did you mean "${meant}"?`);
  expect(forLLM.length).toBeLessThan(1_000);
});

test('a slip in the middle is found where thousands of other values begin as the sent one does', async () => {
  const codes = Array.from({ length: 10_000 }, (_, index) => `SKU-${String(index).padStart(6, '0')}`);
  const { forLLM } = await choosing(codes).execute('choose', { street: 'SKU-0o5123' });
  expect(forLLM).toContain('For street, did you mean "SKU-005123"?');
});
