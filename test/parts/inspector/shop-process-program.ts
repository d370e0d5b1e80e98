// A process without a page that runs a shop over a file and reads commands from lines: `begin order`, `begin agent`,
// `recover`. It prints the outcome.
import { createInterface } from 'node:readline';
import { SqliteRunStore } from '../../../src/durable/stores/index.js';
import {
  agentAsTool,
  defineTool,
  recoverRuns,
  runToolLoop,
  type ToolLoopResult,
  ToolRegistry,
} from '../../../src/index.js';
import { ordering, orderingTools } from './ordering.js';

const [file = ''] = process.argv.slice(2);
const store = new SqliteRunStore({ path: file });

const library = { agentAsTool, defineTool, ToolRegistry };
const tools = orderingTools(library, 'there');
const config = { provider: ordering, model: 'm', tools, store, checkpoint: 'step' } as const;

function told({ status, content, pending = [] }: ToolLoopResult): string {
  return status === 'suspended'
    ? `waits for ${pending.map(({ tool }) => tool).join()}`
    : `${status}: ${content}`;
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const [order, prompt = ''] = line.split(' ');
  if (order === 'begin') {
    const owner = { user: 'ada' };
    console.log(`begun: ${told(await runToolLoop(config, [{ role: 'user', content: prompt }], { owner }))}`);
  } else {
    for (const recovered of await recoverRuns({ store, config }))
      console.log(`went on: ${'result' in recovered ? told(recovered.result) : recovered.error}`);
  }
});
console.log('ready');
