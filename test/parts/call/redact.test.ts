import { describe, expect, test } from '@jest/globals';
import { KNOWN_SECRETS } from '../../../src/run/call/redact.js';

const redact = KNOWN_SECRETS.copy;

describe('redaction', () => {
  test.each([
    'password',
    'userPassword',
    'passphrase',
    'passwd',
    'apiKey',
    'api_key',
    'API-KEY',
    'accessToken',
    'clientSecret',
    'Authorization',
    'cookie',
    'privateKey',
    'credentials',
  ])('the value of %s is hidden, at any depth', (key) => {
    expect(redact({ [key]: 'x', in: [{ [key]: { deep: 1 } }] })).toEqual({
      [key]: '[redacted]',
      in: [{ [key]: '[redacted]' }],
    });
  });

  test.each(['path', 'passenger', 'key', 'compass_bearing'])('the value of %s is shown', (key) => {
    expect(redact({ [key]: 'x' })).toEqual({ [key]: 'x' });
  });

  test('long text is cut, with the number of missing characters', () => {
    expect(redact({ text: 'x'.repeat(1000) })).toEqual({ text: `${'x'.repeat(200)}… (800 more characters)` });
  });

  test('long lists are cut, with the number of missing items', () => {
    const shown = redact(Array.from({ length: 25 }, (_, index) => index)) as unknown[];
    expect(shown).toHaveLength(21);
    expect(shown.at(-1)).toBe('… 5 more');
  });

  test('deep and circular values are cut', () => {
    const circle: Record<string, unknown> = { a: 1 };
    circle.self = circle;
    expect(JSON.stringify(redact(circle))).toContain('"self":"…"');
  });

  test('the original value is not changed', () => {
    const args = { password: 'x', list: ['y'.repeat(300)] };
    const before = structuredClone(args);
    redact(args);
    expect(args).toEqual(before);
  });
});
