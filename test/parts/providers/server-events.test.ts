import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { OpenAIProvider } from 'toolwright/openai';
import { collect, delta, LoopbackServer } from './loopback-server.js';

const REQUEST = { model: 'm', messages: [{ role: 'user' as const, content: 'Hi' }], options: {} };

/** JSON may contain these separators, which do not end a line of server-sent events. */
const TEXT = 'Grüße\u2028世界 🙂\u2029data: ';
const FIRST = JSON.stringify(delta({ content: TEXT }));
const LAST = JSON.stringify(delta({}, 'stop'));

/** A server that sends a text byte by byte. */
function bytewise(text: string): Promise<LoopbackServer> {
  return LoopbackServer.start(async (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const byte of Buffer.from(text)) {
      response.write(Uint8Array.of(byte));
      await turn();
    }
    response.end();
  });
}

test.each([
  ['line feeds', [`data: ${FIRST}`, '', `data: ${LAST}`, '', 'data: [DONE]', '', ''].join('\n')],
  ['carriage returns', [`data: ${FIRST}`, '', `data: ${LAST}`, '', 'data: [DONE]', '', ''].join('\r')],
  ['both', [`data: ${FIRST}`, '', `data: ${LAST}`, '', 'data: [DONE]', '', ''].join('\r\n')],
  [
    'comments, names, ids and pauses between events',
    [
      ': ping',
      '',
      'event: delta',
      'id: 7',
      'retry: 9',
      `data: ${FIRST}`,
      '',
      '',
      'event: end',
      '',
      `data: ${LAST}`,
      '',
      '',
    ].join('\n'),
  ],
  ['no space after the colon', [`data:${FIRST}`, '', `data:${LAST}`, '', 'data:[DONE]', '', ''].join('\n')],
  [
    'an event of several lines',
    [
      'data: {"choices":',
      `data: ${JSON.stringify([{ delta: { content: TEXT }, finish_reason: 'stop' }])}}`,
      '',
      '',
    ].join('\n'),
  ],
  ['a byte order mark', `\uFEFFdata: ${FIRST}\n\ndata: ${LAST}\n\n`],
  ['no empty line at the end', `data: ${FIRST}\n\ndata: [DONE]`],
])('OpenAIProvider.stream reads server-sent events with %s', async (_, text) => {
  await using server = await bytewise(text);
  const parts = await collect(new OpenAIProvider({ baseURL: server.baseURL, maxRetries: 0 }).stream(REQUEST));
  expect(parts.at(-1)).toMatchObject({ response: { content: TEXT, toolCalls: [], finishReason: 'stop' } });
});
