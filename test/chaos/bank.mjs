// The external system of a chaos run. The tools change it over HTTP; it counts the effects for each idempotency key.
import { once } from 'node:events';
import { createServer } from 'node:http';

/** `call` is the name of a call, such as `c1/1/pay0`; `key` is its idempotency key. */
export async function startBank() {
  const effects = new Map();
  const allowedRetries = new Map();
  const allowRetry = (call) => allowedRetries.set(call, (allowedRetries.get(call) ?? 0) + 1);
  const handlers = {
    execute({ key, call }) {
      const { times = 0 } = effects.get(key) ?? {};
      effects.set(key, { call, times: times + 1 });
      return { done: true };
    },
    // The caller repeats a call that is reported as not done.
    status({ key, call }) {
      const isDone = effects.has(key);
      if (!isDone) allowRetry(call);
      return { status: isDone ? 'done' : 'not-done', ...(isDone ? { result: 'done before' } : {}) };
    },
  };
  // Workers that wait for a file lock leave connections idle for longer than the five seconds that Node allows.
  const server = createServer({ keepAliveTimeout: 60_000 }, async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const reply = handlers[request.url.slice(1)](JSON.parse(text));
    response.end(JSON.stringify(reply));
  }).listen(0, '127.0.0.1');
  // Workers are killed in the middle of requests.
  server.on('clientError', (_error, socket) => socket.destroy());
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    effects,
    allowedRetries,
    allowRetry,
    isDone: (call) => [...effects.values()].some((effect) => effect.call === call),
    stop: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
