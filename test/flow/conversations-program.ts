// A process that takes the turns of conversations in a file. `stored-run-process.ts` builds and starts it.
import { appendFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Conversations, defineTool, type LLMProvider } from '../../src/index.js';
import { SqliteRunStore } from '../../src/stores/index.js';

const [file = '', effects = ''] = process.argv.slice(2);

/** Long enough to be killed in. */
const WORK_MS = 15;

const tools = [
  defineTool({
    name: 'count',
    description: 'Count',
    annotations: { idempotent: true },
    execute: async (_args, { idempotencyKey }) => {
      appendFileSync(effects, `${idempotencyKey}\n`);
      await pause(WORK_MS);
      return 'counted';
    },
  }),
];

/** Counts twice at once, then once more, and then says what it was told. */
const provider: LLMProvider = {
  async chat({ messages }) {
    await pause(WORK_MS);
    const said = messages.findLastIndex(({ role }) => role === 'user');
    const answers = messages.length - 1 - said;
    const calls = answers === 0 ? 2 : answers === 3 ? 1 : 0;
    const toolCalls = Array.from({ length: calls }, (_, index) => ({
      id: `call_${index}`,
      name: 'count',
      arguments: { n: index },
    }));
    return {
      content: calls === 0 ? `heard: ${messages[said]?.content}` : '',
      toolCalls,
      finishReason: calls === 0 ? 'stop' : 'tool_calls',
    };
  },
};

const store = new SqliteRunStore({ path: file });
new Conversations({ store, config: { provider, model: 'm', tools }, leaseMs: 300, pollMs: 30 });
process.send?.({ told: 'ready' });
