// A worker process: processes conversations and, with an engine, their jobs. The chaos run kills it at random.
import { setTimeout as pause } from 'node:timers/promises';
import { Conversations, defineTool } from '../../dist/src/index.js';
import { openEngine, openStore } from './store-and-engine.mjs';

// Without a setting, the caller only measures how long a process takes to start.
if (process.argv.length < 3) process.exit();
const setting = JSON.parse(process.argv[2]);
const { bank, leaseMs, workMs, clockJumpMs, jumpAfterMs } = setting;

if (clockJumpMs > 0) {
  const { now } = Date;
  setTimeout(() => {
    Date.now = () => now() + clockJumpMs;
  }, jumpAfterMs).unref();
}

async function postToBank(path, body) {
  const response = await fetch(`${bank}/${path}`, { method: 'POST', body: JSON.stringify(body) });
  return response.json();
}

const text = { type: 'string' };
const parameters = { type: 'object', properties: { call: text }, required: ['call'] };

function tool(name, options) {
  return defineTool({
    name,
    description: name,
    parameters,
    ...options,
    execute: async ({ call }, { idempotencyKey }) => {
      await pause(Math.random() * workMs);
      await postToBank('execute', { key: idempotencyKey, call });
      await pause(Math.random() * workMs);
      return `${call} was executed`;
    },
  });
}

const idempotent = { annotations: { idempotent: true } };
const tools = [
  tool('look_up', idempotent),
  tool('pay', {}),
  tool('report', { ...idempotent, background: { attempts: 5 } }),
  tool('ship', {
    approval: true,
    reconcile: ({ idempotencyKey, arguments: { call } }) =>
      postToBank('status', { key: idempotencyKey, call }),
  }),
];

const STEPS = [
  ['look_up', 'pay', 'report'],
  ['ship', 'look_up'],
];

/** Replies to a prompt with two steps of calls and then text; replies to a completion with text only. */
const provider = {
  async chat({ messages }) {
    await pause(Math.random() * workMs);
    const lastUser = messages.findLastIndex(({ role }) => role === 'user');
    const { content } = messages[lastUser];
    const isPrompt = !content.startsWith('[System');
    const steps = messages.slice(lastUser).filter(({ role }) => role === 'assistant').length;
    const names = isPrompt ? (STEPS[steps] ?? []) : [];
    const toolCalls = names.map((name, index) => ({
      // The same ids in each step, because some models reuse ids.
      id: `call_${index}`,
      name,
      arguments: { call: `${content}/${name}${steps}` },
    }));
    if (names.length > 0) return { content: '', toolCalls, finishReason: 'tool_calls' };
    return { content: `received: ${content}`, toolCalls: [], finishReason: 'stop' };
  },
};

const store = await openStore(setting);
const engine = await openEngine(setting);
const conversations = new Conversations({
  store,
  config: { provider, model: 'm', tools },
  ...(engine ? { engine } : {}),
  leaseMs,
  pollMs: leaseMs / 4,
});

process.on('message', async () => {
  await conversations.close();
  await engine?.close();
  await store.close?.();
  process.disconnect();
});
process.on('disconnect', () => process.exit());
process.send('ready');
