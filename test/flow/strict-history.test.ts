import { describe, expect, test } from '@jest/globals';
import type { Message } from 'toolwright';
import { historyFaults } from './strict-history.js';

const call = (id: string, args = '{}') => ({
  id,
  type: 'function' as const,
  function: { name: 'a', arguments: args },
});
const asks = (...ids: string[]): Message => ({
  role: 'assistant',
  content: '',
  tool_calls: ids.map((id) => call(id)),
});
const answer = (id: string): Message => ({ role: 'tool', content: 'x', tool_call_id: id });
const user: Message = { role: 'user', content: 'x' };

describe('the strict history checker', () => {
  test('accepts answers in call order directly after the assistant message', () => {
    expect(historyFaults([user, asks('1', '2'), answer('1'), answer('2'), asks('1'), answer('1')])).toEqual(
      [],
    );
  });

  test.each([
    ['an unanswered call at the end', [user, asks('1')]],
    ['a call answered too late', [asks('1'), user, answer('1')]],
    ['a call answered twice', [asks('1'), answer('1'), answer('1')]],
    ['answers in the wrong order', [asks('1', '2'), answer('2'), answer('1')]],
    ['an answer without a call', [answer('1')]],
    ['two calls with the same id', [asks('1', '1'), answer('1'), answer('1')]],
    ['a call without an id', [asks(''), answer('')]],
    ['an empty list of calls', [asks()]],
    [
      'arguments that are not an object',
      [{ role: 'assistant', content: '', tool_calls: [call('1', '[]')] }, answer('1')] as Message[],
    ],
    [
      'arguments that are not JSON',
      [{ role: 'assistant', content: '', tool_calls: [call('1', '{"a')] }, answer('1')] as Message[],
    ],
  ])('refuses %s', (_what, messages) => {
    expect(historyFaults(messages)).not.toEqual([]);
  });
});
