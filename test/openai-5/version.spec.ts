import { expect, test } from '@jest/globals';
import { OpenAI } from 'openai';

test('the tests run with the oldest supported client', () => {
  const client = new OpenAI({ apiKey: 'none' }) as unknown as { getUserAgent(): string };
  expect(client.getUserAgent()).toContain('5.0.1');
});
