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
  ['a typo at the end', `${LONG[777]}h`, LONG[777]],
  ['a typo at the beginning', `x${LONG[8_000]}`, LONG[8_000]],
  ['a different case', String(LONG[5_000]).toUpperCase(), LONG[5_000]],
])('a value of a long enum is suggested for one with %s', async (_what, sent, meant) => {
  const { forLLM } = await choosing(LONG).execute('choose', { street: sent });
  expect(forLLM).toContain(`For street, did you mean "${meant}"?`);
  expect(forLLM.length).toBeLessThan(1_000);
});

test('a value is suggested for a typo in the middle among thousands of values with the same prefix', async () => {
  const codes = Array.from({ length: 10_000 }, (_, index) => `SKU-${String(index).padStart(6, '0')}`);
  const { forLLM } = await choosing(codes).execute('choose', { street: 'SKU-0o5123' });
  expect(forLLM).toContain('For street, did you mean "SKU-005123"?');
});
