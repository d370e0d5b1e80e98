import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const ORDER = { email: 'ada@example.org', lines: [{ sku: 'tea-1', quantity: 2 }] };

/** Starts what was built, and calls a tool over HTTP. */
export async function serves(folder) {
  const port = await freePort();
  const server = spawn(process.execPath, ['dist/main'], {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1', PORT: String(port) },
  });
  let output = '';
  for (const stream of [server.stdout, server.stderr]) stream.on('data', (chunk) => (output += chunk));
  try {
    let answer = await place(port);
    // Nest says that it has started before it listens.
    while (answer === undefined && server.exitCode === null) {
      await delay(50);
      answer = await place(port);
    }
    const forLLM = answer?.forLLM;
    if (forLLM !== '{"id":"order_1","isChecked":true}') throw new Error(`answered ${forLLM}`);
  } catch (error) {
    throw new Error(`${error.message}\n${output}`);
  } finally {
    if (server.exitCode === null) {
      server.kill();
      await once(server, 'exit');
    }
  }
}

/** What the tool answers; nothing while nobody listens. */
async function place(port) {
  const request = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(ORDER),
  };
  const answer = await fetch(`http://127.0.0.1:${port}/tools/place_order`, request).catch(() => undefined);
  return answer?.json();
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
