import type { LLMProvider } from '../../src/core/contract/llm-provider.js';
import { PostgresRunStore } from '../../src/durable/postgres/index.js';
import { SqliteRunStore } from '../../src/durable/stores/index.js';
import { runToolLoop } from '../../src/run/loop/run.js';
import { defineTool } from '../../src/tools/discovery/define-tool.js';

/** Makes runs that spend as much of one budget as they can, and prints as JSON what each run spent. */
const [place = '', schema = '', seed = '1', mode = 'run'] = process.argv.slice(2);
const store =
  schema === ''
    ? new SqliteRunStore({ path: place })
    : new PostgresRunStore({ connectionString: place, schema });

let state = Number(seed);
const random = (below: number): number => {
  state = (state * 48_271) % 2_147_483_647;
  return state % below;
};

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const look = defineTool({
  name: 'look',
  description: 'Looks',
  parameters: {},
  cost: 0.001,
  execute: () => pause(random(3)),
});

const provider: LLMProvider = {
  chat: async ({ options }) => {
    // Killed during the request: its usage is never reported.
    if (mode === 'die') process.kill(process.pid, 'SIGKILL');
    await pause(random(5));
    const outputTokens = random(Number(options.max_tokens) + 1);
    const usage = { inputTokens: 100, outputTokens, totalTokens: 100 + outputTokens };
    const toolCalls = Array.from({ length: 1 + random(2) }, (_, index) => ({
      id: `c${index}`,
      name: 'look',
      arguments: { n: random(1e9) },
    }));
    return { content: '', toolCalls, finishReason: 'tool_calls', usage };
  },
};

const budget = {
  countTokens: () => 100,
  by: [{ key: () => 'tenant:t', tokens: 20_000, cost: 0.5, calls: 150 }],
};
const runs = await Promise.all(
  Array.from({ length: 4 }, () =>
    runToolLoop(
      {
        ...{ provider, model: 'gpt-5', tools: [look], store, budget },
        ...{ llmOptions: { max_tokens: 300 }, maxIterations: 1000, loopGuard: false },
      },
      [{ role: 'user', content: 'Go' }],
    ),
  ),
);
console.log(
  JSON.stringify(runs.map(({ status, error, spent }) => ({ status, error: error?.message, spent }))),
);
await store.close();
