import { expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { SealedState } from '../../../src/surfaces/mcp/sealed-state.js';

const HOUR_MS = 60 * 60 * 1000;

test('sealed state can only be opened by its owner, unchanged, and with the same secret', () => {
  const state = new SealedState('a secret', HOUR_MS);
  fc.assert(
    fc.property(fc.jsonValue(), fc.string(), fc.nat(), fc.nat(63), (value, owner, place, shift) => {
      const text = state.seal(value, owner);
      expect(state.open(text, owner)).toEqual(JSON.parse(JSON.stringify(value)));
      expect(new SealedState('a secret', HOUR_MS).open(text, owner)).toEqual(
        JSON.parse(JSON.stringify(value)),
      );
      expect(new SealedState('another secret', HOUR_MS).open(text, owner)).toBeUndefined();
      expect(new SealedState(undefined, HOUR_MS).open(text, owner)).toBeUndefined();
      expect(state.open(text, `${owner} `)).toBeUndefined();

      const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
      const at = place % text.length;
      const changed = text.slice(0, at) + letters[shift] + text.slice(at + 1);
      if (changed !== text) expect(state.open(changed, owner)).toBeUndefined();
    }),
  );
});

test('sealed state can be opened for an hour', () => {
  const state = new SealedState(undefined, HOUR_MS);
  const text = state.seal({ n: 1 }, 'ada');
  const now = Date.now();
  const clock = jest.spyOn(Date, 'now');
  try {
    clock.mockReturnValue(now + 59 * 60 * 1000);
    expect(state.open(text, 'ada')).toEqual({ n: 1 });
    clock.mockReturnValue(now + 61 * 60 * 1000);
    expect(state.open(text, 'ada')).toBeUndefined();
  } finally {
    clock.mockRestore();
  }
});

test('random text cannot be opened', () => {
  const state = new SealedState(undefined, HOUR_MS);
  fc.assert(fc.property(fc.string(), (text) => expect(state.open(text, '')).toBeUndefined()));
});
