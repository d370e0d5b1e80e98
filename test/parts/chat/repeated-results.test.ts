import { expect, test } from '@jest/globals';
import { AgUiEncoder } from '../../../src/surfaces/chat/turn-encoder.js';

test('a call that is executed again after a crash has one result in the AG-UI messages', () => {
  const encoder = new AgUiEncoder({ runId: 'r1', messages: [], describeError: String });
  const execution = (status: string) => [
    { type: 'run-start' },
    { type: 'call-start', callId: 'c1', tool: 'look', arguments: {} },
    { type: 'call-end', callId: 'c1', status, result: {} },
  ];
  const events = [
    { type: 'turn-start', turn: { number: 1 } },
    { type: 'step-start', iteration: 0 },
    ...execution('aborted'),
    ...execution('ok'),
    { type: 'turn-suspended', status: 'suspended', pending: [] },
  ];
  const sent = events.flatMap((event) => encoder.encode(event));
  const snapshot = sent.find(({ type }) => type === 'MESSAGES_SNAPSHOT');
  expect(snapshot).toMatchObject({
    messages: [{ role: 'assistant' }, { role: 'tool', metadata: { status: 'ok' } }],
  });
  expect(encoder.messages).toHaveLength(2);
});
