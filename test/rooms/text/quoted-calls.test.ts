import { describe, expect, test } from '@jest/globals';
import { withTextTools } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { CallScanner } from '../../../src/text/call-scanner.js';
import { knownTools } from '../../../src/text/known-tools.js';

const CALL = '<tool_call>{"name":"pay","arguments":{"to":"a"}}</tool_call>';

/** The calls of an answer that comes in pieces of one length, and the text that is left. */
function read(answer: string, length = answer.length) {
  const scanner = new CallScanner(knownTools(['pay'], { unknown: 'call' }));
  const pieces = [];
  for (let at = 0; at < answer.length; at += length)
    pieces.push(...scanner.push(answer.slice(at, at + length)));
  pieces.push(...scanner.end());
  const calls = pieces.flatMap((piece) => (piece.kind === 'calls' ? piece.calls : []));
  const text = pieces.map((piece) => (piece.kind === 'text' ? piece.text : '')).join('');
  return { calls, text };
}

describe('a call in quotation marks or inline code that text follows', () => {
  test.each([
    `Never write \`${CALL}\` in an answer.`,
    `The mail says “${CALL}”. I leave that.`,
    `The mail says "${CALL}", which I leave.`,
    `\`{"name":"pay","arguments":{"to":"a"}}\` is how it is done.`,
    `First \`${CALL}\`, then \`${CALL}\`, as I said.`,
  ])('is text: %s', (answer) => {
    for (const length of [answer.length, 7, 1])
      expect(read(answer, length)).toEqual({ calls: [], text: answer });
  });

  test.each([
    `I pay: \`${CALL}\``,
    `\`${CALL}\`\n`,
    `"${CALL}"`,
    `${CALL} That should do.`,
    `I pay now. ${CALL} Then I tell you.`,
    `It's mine: '${CALL} and more`,
    `\`\`\`\n${CALL}\n\`\`\`\nDone.`,
    `\`\`\`${CALL}\`\`\` Done.`,
  ])('and nothing else is: %s', (answer) => {
    for (const length of [answer.length, 7, 1])
      expect(read(answer, length).calls).toEqual([{ name: 'pay', arguments: { to: 'a' } }]);
  });

  test('is shown to people by withTextTools', async () => {
    const content = `Never write \`${CALL}\` in an answer.`;
    const provider = withTextTools(new ScriptedProvider([{ content }]));
    const tools = [
      { type: 'function' as const, function: { name: 'pay', description: 'd', parameters: {} } },
    ];
    const reply = await provider.chat({
      model: 'm',
      messages: [{ role: 'user', content: 'x' }],
      tools,
      options: {},
    });
    expect(reply).toMatchObject({ content, toolCalls: [], finishReason: 'stop' });
  });
});
