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

/** `tool.execute`; if the validation fails, it returns an object with `error: true`. */
export function mastraCall(load) {
  const peerTool = mastraTool(load.tool);
  return {
    name: 'Mastra `tool.execute` (zod)',
    encode: (input) => input,
    call: (input) => peerTool.execute(input, {}),
    read: (answer) => (answer?.error === true ? undefined : String(answer)),
  };
}
