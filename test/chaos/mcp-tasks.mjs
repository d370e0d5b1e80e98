/*
 * Kills and restarts replicas of an MCP server while its tasks run. Checks that no task is lost, repeated without
 * permission, or shown to another user:
 *
 *   npm run chaos:mcp -- [--seconds 30] [--tasks 200] [--replicas 3]
 *
 * A third of the tasks may be repeated, a third may not, and a third waits for an approval. Each request goes to a
 * random replica. The script starts its own PostgreSQL. It exits with code 1 and lists the faults if it finds any.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startBank } from './bank.mjs';
import { startPostgres } from './services.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    tasks: { type: 'string', default: '200' },
    replicas: { type: 'string', default: '3' },
  },
});
const [seconds, count, replicaCount] = [values.seconds, values.tasks, values.replicas].map(Number);
const TASKS = 'io.modelcontextprotocol/tasks';
const LEASE_MS = 2_000;
const KINDS = ['transfer', 'report', 'refund'];
const OPEN = ['working', 'input_required'];

const postgres = await startPostgres();
const bank = await startBank();
const setting = JSON.stringify({
  connectionString: postgres.urlAt(postgres.port),
  bank: bank.url,
  leaseMs: LEASE_MS,
});
const replicas = [];
const counts = { killed: 0, replaced: 0, failedRequests: 0, foreignRequests: 0 };
const faults = [];
let isOver = false;

async function startReplica(index) {
  const child = fork(join(import.meta.dirname, 'mcp-replica.mjs'), [setting], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [{ port }] = await once(child, 'message');
  replicas[index] = { child, url: `http://127.0.0.1:${port}/mcp` };
}

const random = (below) => Math.floor(Math.random() * below);

/** Sends a request to a random replica; returns `undefined` if the request failed. */
async function send(method, params, user) {
  const { url } = replicas[random(replicaCount)];
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'chaos', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {}, extensions: { [TASKS]: {} } },
  };
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: user,
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        'mcp-name': params.taskId ?? params.name,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
    });
    const text = await response.text();
    const answer = JSON.parse(text.slice(text.indexOf('{')));
    // Repeat the request if the replica is closing or its store connection broke.
    if (answer.error !== undefined && answer.error.code !== -32602) throw new Error(answer.error.message);
    return answer;
  } catch {
    counts.failedRequests += 1;
    return undefined;
  }
}

/** Repeats a request until a replica answers. */
async function sendUntilAnswered(method, params, user) {
  for (;;) {
    const answer = await send(method, params, user);
    if (answer !== undefined) return answer;
    await pause(100);
  }
}

async function runTask(number) {
  const kind = KINDS[number % KINDS.length];
  const user = `user${number % 10}`;
  await pause(random(seconds * 1_000));
  // A request without an answer may have been executed, so each attempt has its own label.
  for (let attempt = 0; ; attempt += 1) {
    const label = `${kind}/${number}/${attempt}`;
    const created = await send('tools/call', { name: kind, arguments: { label } }, user);
    if (created === undefined) continue;
    const { taskId } = created.result;
    return { label, kind, user, taskId, task: await followTask(taskId, user) };
  }
}

async function followTask(taskId, user) {
  for (;;) {
    const foreign = await sendUntilAnswered('tasks/get', { taskId }, `${user}0`);
    if (foreign.error === undefined) faults.push(`${taskId} was shown to another user`);
    else counts.foreignRequests += 1;
    const { result, error } = await sendUntilAnswered('tasks/get', { taskId }, user);
    if (error !== undefined) return { status: `lost: ${error.message}` };
    if (!OPEN.includes(result.status)) return result;
    if (result.inputRequests !== undefined) {
      const inputResponses = Object.fromEntries(
        Object.keys(result.inputRequests).map((key) => [key, { action: 'accept', content: {} }]),
      );
      await send('tasks/update', { taskId, inputResponses }, user);
    }
    await pause(200 + random(200));
  }
}

async function breakReplicas() {
  for (let round = 1; !isOver; round += 1) {
    await pause(700);
    const index = random(replicaCount);
    const { child } = replicas[index];
    const ended = once(child, 'exit');
    if (round % 5 === 0) {
      counts.replaced += 1;
      child.send('close');
    } else {
      counts.killed += 1;
      child.kill('SIGKILL');
    }
    await ended;
    await startReplica(index);
  }
}

await Promise.all(Array.from({ length: replicaCount }, (_, index) => startReplica(index)));
const breaking = breakReplicas();
const tasks = await Promise.all(Array.from({ length: count }, (_, number) => runTask(number)));
isOver = true;
await breaking;

const outcomes = { done: 0, unknown: 0 };
for (const { label, kind, user, taskId, task } of tasks) {
  const effects = [...bank.effects.values()].filter(({ call }) => call === label);
  const times = effects.reduce((sum, effect) => sum + effect.times, 0);
  const text = task.result?.content?.[0]?.text ?? '';
  if (text === `${label} is done`) outcomes.done += 1;
  else if (/not known whether it was done/.test(text)) outcomes.unknown += 1;
  else faults.push(`${label}: ${task.status} ${text}`);
  if (effects.length > 1) faults.push(`${label} was executed under ${effects.length} keys`);
  if (kind !== 'report' && times > 1) faults.push(`${label} was executed ${times} times`);
  if (text === `${label} is done` && times === 0) faults.push(`${label} was not executed`);
  const repeated = await sendUntilAnswered('tasks/get', { taskId }, user);
  if (repeated.result?.status !== task.status)
    faults.push(`${label} changed from ${task.status} to ${repeated.result?.status}`);
}

for (const { child } of replicas) child.kill('SIGKILL');
await bank.stop();
await postgres.stop();

for (const [name, value] of Object.entries({ tasks: count, ...counts, ...outcomes, faults: faults.length }))
  console.log(`${name}: ${value}`);
for (const fault of faults.slice(0, 20)) console.log(`  ${fault}`);
process.exit(faults.length === 0 ? 0 : 1);
