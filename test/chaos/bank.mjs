// Another system that the tools of a chaos run change over HTTP: it knows what was done, under which key, how often.
import { once } from 'node:events';
import { createServer } from 'node:http';

/** Does things for calls (`c1/1/pay`), each under a key, and once for each key. */
export async function openBank() {
  const effects = new Map();
  const allowedAgain = new Map();
  const allowAgain = (call) => allowedAgain.set(call, (allowedAgain.get(call) ?? 0) + 1);
  const doings = {
    do({ key, call }) {
      const { times = 0 } = effects.get(key) ?? {};
      effects.set(key, { call, times: times + 1 });
      return { done: true };
    },
    // Who hears that it was not done, does it: that is somebody's word.
    ask({ key, call }) {
      const isDone = effects.has(key);
      if (!isDone) allowAgain(call);
      return { status: isDone ? 'done' : 'not-done', ...(isDone ? { result: 'done before' } : {}) };
    },
  };
  // Workers that wait for a file keep connections longer than the five seconds that Node gives them.
  const server = createServer({ keepAliveTimeout: 60_000 }, async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const answer = doings[request.url.slice(1)](JSON.parse(text));
    response.end(JSON.stringify(answer));
  }).listen(0, '127.0.0.1');
  // Its callers are killed in the midst of a request.
  server.on('clientError', (_error, socket) => socket.destroy());
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    effects,
    allowedAgain,
    allowAgain,
    isDone: (call) => [...effects.values()].some((effect) => effect.call === call),
    stop: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
