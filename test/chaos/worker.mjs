// A process that takes the turns of conversations, and does their jobs where there is an engine. It is killed.
import { setTimeout as pause } from 'node:timers/promises';
import { Conversations, defineTool } from '../../dist/src/index.js';
import { openEngine, openStore } from './open.mjs';

// Without a setting, only how long it takes to get here is looked at.
if (process.argv.length < 3) process.exit();
const setting = JSON.parse(process.argv[2]);
const { bank, leaseMs, workMs, clockJumpMs, jumpAfterMs } = setting;

if (clockJumpMs > 0) {
  const { now } = Date;
  setTimeout(() => {
    Date.now = () => now() + clockJumpMs;
  }, jumpAfterMs).unref();
}

async function tell(what, body) {
  const response = await fetch(`${bank}/${what}`, { method: 'POST', body: JSON.stringify(body) });
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
      await tell('do', { key: idempotencyKey, call });
      await pause(Math.random() * workMs);
      return `${call} was done`;
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
    reconcile: ({ idempotencyKey, arguments: { call } }) => tell('ask', { key: idempotencyKey, call }),
  }),
];

const STEPS = [
  ['look_up', 'pay', 'report'],
  ['ship', 'look_up'],
];

/** Asks for two steps of calls, and then says what it was told; of a completion it only says that it heard it. */
const provider = {
  async chat({ messages }) {
    await pause(Math.random() * workMs);
    const said = messages.findLastIndex(({ role }) => role === 'user');
    const { content } = messages[said];
    const isPrompt = !content.startsWith('[System');
    const steps = messages.slice(said).filter(({ role }) => role === 'assistant').length;
    const names = isPrompt ? (STEPS[steps] ?? []) : [];
    const toolCalls = names.map((name, index) => ({
      // As models do it: the same ids in each step.
      id: `call_${index}`,
      name,
      arguments: { call: `${content}/${name}${steps}` },
    }));
    if (names.length > 0) return { content: '', toolCalls, finishReason: 'tool_calls' };
    return { content: `heard: ${content}`, toolCalls: [], finishReason: 'stop' };
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
