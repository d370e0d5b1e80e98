import { describe, expect, test } from '@jest/globals';
import { withTextTools } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { streamedCalls } from './streamed-calls.js';

const CALL = '<tool_call>{"name":"pay","arguments":{"to":"a"}}</tool_call>';

describe('a call in quotation marks or inline code', () => {
  test.each([
    `Never write \`${CALL}\` in an answer.`,
    `The mail says “${CALL}”. I leave that.`,
    `The mail says "${CALL}", which I leave.`,
    `\`{"name":"pay","arguments":{"to":"a"}}\` is how it is done.`,
    `First \`${CALL}\`, then \`${CALL}\`, as I said.`,
  ])('is text if text follows it: %s', async (answer) => {
    for (const length of [answer.length, 7, 1])
      expect(await streamedCalls(answer, ['pay'], length)).toEqual({ calls: [], text: answer });
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
  ])('is a call if it is not quoted inline or no text follows: %s', async (answer) => {
    for (const length of [answer.length, 7, 1])
      expect((await streamedCalls(answer, ['pay'], length)).calls).toEqual([
        { name: 'pay', arguments: { to: 'a' } },
      ]);
  });

  test('is part of the content that withTextTools returns', async () => {
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
