// Runs the turns of conversations in a file, or in `<PostgreSQL’s address>#<schema>`.
// `stored-run-process.ts` builds and starts it.
import { appendFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { PostgresRunStore } from '../../src/durable/postgres/index.js';
import { SqliteRunStore } from '../../src/durable/stores/index.js';
import { Conversations, defineTool, type LLMProvider } from '../../src/index.js';

const [place = '', effects = ''] = process.argv.slice(2);

/** Long enough for a kill during the work. */
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

/** Makes two calls, then one more, and then repeats the prompt. */
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

const [connectionString = '', schema = ''] = place.split('#');
const store =
  schema === ''
    ? new SqliteRunStore({ path: place })
    : new PostgresRunStore({ connectionString, schema, reconnectMs: 0 });
const config = { provider, model: 'm', tools };
const conversations = new Conversations({ store, config, leaseMs: 300, pollMs: 30 });
// Keeps the process alive until SIGTERM, even if only timers are left.
const stay = (): void => {};
process.on('message', stay);
process.once('SIGTERM', () => {
  process.off('message', stay);
  void conversations.close();
});
process.send?.({ told: 'ready' });
