import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { nodeListener } from '../../../src/core/kernel/node-http.js';
import { type Listening, serve } from '../../setup/loopback.js';

/** A server whose handlers use the response before the stream does, like those of Express. */
function served(before: (response: ServerResponse) => void, stream: () => ReadableStream) {
  const listener = nodeListener(async () => new Response(stream()));
  return serve((request, response) => {
    before(response);
    listener(request, response);
  });
}

function ask({ url }: Listening) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  return socket;
}

test('invalid headers close the connection, even if the stream is silent at first', async () => {
  const { promise: cancelled, resolve: cancel } = Promise.withResolvers<unknown>();
  await using server = await served(
    (response) => {
      response.writeHead = () => {
        throw new Error('a listener of the headers threw');
      };
    },
    () => new ReadableStream({ cancel }),
  );
  await once(ask(server).resume(), 'close');
  await cancelled;
});

test('a response that other code ends while its client reads slowly ends the stream', async () => {
  let response: ServerResponse | undefined;
  const { promise: cancelled, resolve: cancel } = Promise.withResolvers<unknown>();
  const endless = () =>
    new ReadableStream<Uint8Array>({
      async pull(controller) {
        await turn();
        if (response?.writableLength && !response.writableEnded) response.end();
        controller.enqueue(new Uint8Array(4096));
      },
      cancel,
    });
  await using server = await served((outgoing) => {
    response = outgoing;
  }, endless);
  const socket = ask(server).pause();
  await cancelled;
  expect(response?.writableEnded).toBe(true);
  socket.destroy();
});
