// MCP clients of both revisions over HTTP that call, cancel, disconnect and close few of their sessions.
// Exits with code 1 if memory grows, an answer is wrong, or calls or sessions remain.
// npm run soak:mcp -- [clients] [seed]
import { once } from 'node:events';
import { createServer } from 'node:http';
import { ToolRegistry } from '../../dist/src/index.js';
import { createMcpServer } from '../../dist/src/surfaces/mcp/index.js';
import { megabytes, settledHeap } from './heap.mjs';
import { runClient } from './mcp-client.mjs';
import { createRandom } from './random.mjs';

const CLIENTS = Number(process.argv[2] ?? 3_000);
const SEED = Number(process.argv[3] ?? 20_261_122);
const CONCURRENCY = 20;
const MAX_SECONDS = 240;
/** Low enough that the server must close abandoned sessions to open new ones. */
const MAX_SESSIONS = 100;
const MAX_GROWTH = 1.15;
const SLACK_BYTES = 4 * 2 ** 20;

if (globalThis.gc === undefined) {
  console.error('The soak measures memory: run it with node --expose-gc.');
  process.exit(1);
}

const faults = [];
const counts = {};
process.on('unhandledRejection', (reason) => faults.push(`unhandled rejection: ${reason?.stack ?? reason}`));

let running = 0;
const tools = new ToolRegistry().register(
  {
    name: 'echo',
    description: 'Returns its argument',
    parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    execute: ({ text }) => text,
  },
  {
    name: 'wait',
    description: 'Waits for the given time or until it is aborted',
    parameters: { type: 'object', properties: { ms: { type: 'number' } }, required: ['ms'] },
    async execute({ ms }, context) {
      running += 1;
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, ms);
        context.signal.addEventListener('abort', () => {
          clearTimeout(timer);
          resolve();
        });
      });
      running -= 1;
      return 'waited';
    },
  },
);
const mcp = createMcpServer(tools, { name: 'soak', sessions: { max: MAX_SESSIONS } });
const server = createServer(mcp.node).listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${server.address().port}/mcp`;
const random = createRandom(SEED);
const startedAt = performance.now();
let started = 0;

/** Runs clients concurrently until `limit` of them have started in total. */
async function runUntil(limit) {
  const isOver = () =>
    started >= limit || faults.length > 20 || performance.now() - startedAt > MAX_SECONDS * 1_000;
  const runClients = async () => {
    while (!isOver()) {
      started += 1;
      try {
        const kind = await runClient({ random, url });
        counts[kind] = (counts[kind] ?? 0) + 1;
      } catch (error) {
        faults.push(`a client failed: ${error?.message ?? error}`);
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, runClients));
}

await runUntil(CLIENTS / 5);
const early = await settledHeap();
await runUntil(CLIENTS);
const late = await settledHeap();
const { sessionCount } = mcp;
if (started < CLIENTS) faults.push(`only ${started} of ${CLIENTS} clients started in ${MAX_SECONDS} s`);
if (running !== 0) faults.push(`${running} calls are still running without a client`);
if (sessionCount > MAX_SESSIONS)
  faults.push(`${sessionCount} sessions are open; the limit is ${MAX_SESSIONS}`);
if (late > early * MAX_GROWTH + SLACK_BYTES) faults.push('the heap has grown');
await mcp.close();
if (mcp.sessionCount !== 0) faults.push(`${mcp.sessionCount} sessions remain after the server was closed`);
server.close();
server.closeAllConnections();

const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
console.log(`seed ${SEED}: ${started} clients in ${seconds} s, ${sessionCount} sessions at the end`);
console.log('clients', JSON.stringify(counts));
console.log(`heap ${megabytes(early)} after a fifth, ${megabytes(late)} at the end`);
for (const fault of faults.slice(0, 20)) console.error(`fault: ${fault}`);
console.log(faults.length === 0 ? 'all answers correct, no memory growth' : `${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
