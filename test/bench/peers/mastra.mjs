/* Mastra. */
import { createTool } from '@mastra/core/tools';
import { zodSchemas } from '../schemas.mjs';
import { bodyOf } from '../workloads.mjs';

/** A zod tool of Mastra. */
export function mastraTool(name) {
  const body = bodyOf(name);
  return createTool({
    id: name,
    description: name,
    inputSchema: zodSchemas[name],
    execute: async (input) => body(input),
  });
}

/** `tool.execute`; a failed validation comes back as an object with `error: true`. */
export function mastraCall(load) {
  const made = mastraTool(load.tool);
  return {
    name: 'Mastra `tool.execute` (zod)',
    encode: (input) => input,
    call: (input) => made.execute(input, {}),
    read: (answer) => (answer?.error === true ? undefined : String(answer)),
  };
}
