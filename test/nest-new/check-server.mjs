import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const ORDER = { email: 'ada@example.org', lines: [{ sku: 'tea-1', quantity: 2 }] };

/** Starts the built application and calls a tool over HTTP. */
export async function checkServer(folder) {
  const port = await freePort();
  const server = spawn(process.execPath, ['dist/main'], {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1', PORT: String(port) },
  });
  let output = '';
  for (const stream of [server.stdout, server.stderr]) stream.on('data', (chunk) => (output += chunk));
  try {
    let response = await placeOrder(port);
    // Nest logs that it has started before it listens.
    while (response === undefined && server.exitCode === null) {
      await delay(50);
      response = await placeOrder(port);
    }
    const forLLM = response?.forLLM;
    if (forLLM !== '{"id":"order_1","isValidated":true}') throw new Error(`the tool returned ${forLLM}`);
  } catch (error) {
    throw new Error(`${error.message}\n${output}`);
  } finally {
    if (server.exitCode === null) {
      server.kill();
      await once(server, 'exit');
    }
  }
}

/** Returns the response of the tool; `undefined` while the server does not listen. */
async function placeOrder(port) {
  const request = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(ORDER),
  };
  const response = await fetch(`http://127.0.0.1:${port}/tools/place_order`, request).catch(() => undefined);
  return response?.json();
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
