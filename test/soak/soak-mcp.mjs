// MCP over real HTTP: clients of both revisions that call, cancel, hang up in the middle, end their sessions and
// mostly forget to. Ends with flat memory, every answer right and no session left, or with exit code 1.
// npm run soak:mcp -- [clients] [seed]
import { once } from 'node:events';
import { createServer } from 'node:http';
import { ToolRegistry } from '../../dist/src/index.js';
import { createMcpServer } from '../../dist/src/surfaces/mcp/index.js';
import { megabytes, settledHeap } from './heap.mjs';
import { playClient } from './mcp-client.mjs';
import { createRandom } from './random.mjs';

const CLIENTS = Number(process.argv[2] ?? 3_000);
const SEED = Number(process.argv[3] ?? 20_261_122);
const AT_ONCE = 20;
const MOST_SECONDS = 240;
/** Fewer than there are clients at a time that forget to end theirs: room has to be made. */
const MOST_SESSIONS = 100;
const MOST_GROWTH = 1.15;
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
    description: 'Gives back what it gets',
    parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    execute: ({ text }) => text,
  },
  {
    name: 'wait',
    description: 'Waits until it is told to stop, or for a moment',
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
const mcp = createMcpServer(tools, { name: 'soak', sessions: { max: MOST_SESSIONS } });
const server = createServer(mcp.node).listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${server.address().port}/mcp`;
const random = createRandom(SEED);
const since = performance.now();
let played = 0;

/** Plays clients, some at a time, until there were so many. */
async function playUntil(limit) {
  const isOver = () =>
    played >= limit || faults.length > 20 || performance.now() - since > MOST_SECONDS * 1_000;
  const player = async () => {
    while (!isOver()) {
      played += 1;
      try {
        const kind = await playClient({ random, url });
        counts[kind] = (counts[kind] ?? 0) + 1;
      } catch (error) {
        faults.push(`a client failed: ${error?.message ?? error}`);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, player));
}

await playUntil(CLIENTS / 5);
const early = await settledHeap();
await playUntil(CLIENTS);
const late = await settledHeap();
const { sessionCount } = mcp;
if (played < CLIENTS) faults.push(`only ${played} of ${CLIENTS} clients in ${MOST_SECONDS} s`);
if (running !== 0) faults.push(`${running} calls still run, and nobody waits for them`);
if (sessionCount > MOST_SESSIONS) faults.push(`${sessionCount} sessions, where ${MOST_SESSIONS} may be`);
if (late > early * MOST_GROWTH + SLACK_BYTES) faults.push('the heap has grown');
await mcp.close();
if (mcp.sessionCount !== 0) faults.push(`${mcp.sessionCount} sessions are left of a closed server`);
server.close();
server.closeAllConnections();

const seconds = ((performance.now() - since) / 1_000).toFixed(1);
console.log(`seed ${SEED}: ${played} clients in ${seconds} s, ${sessionCount} sessions at the end`);
console.log('clients', JSON.stringify(counts));
console.log(`heap ${megabytes(early)} after a fifth, ${megabytes(late)} at the end`);
for (const fault of faults.slice(0, 20)) console.error(`fault: ${fault}`);
console.log(faults.length === 0 ? 'every answer was right, and flat memory' : `${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
