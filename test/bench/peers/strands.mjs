/* Strands: https://strandsagents.com, the TypeScript SDK. */
import { tool } from '@strands-agents/sdk';
import { zodSchemas } from '../schemas.mjs';
import { bodyOf } from '../workloads.mjs';

/** A zod tool of Strands. */
export function strandsTool(name) {
  const body = bodyOf(name);
  return tool({
    name,
    description: name,
    inputSchema: zodSchemas[name],
    callback: async (input) => body(input),
  });
}

/** `tool.invoke`, which parses with zod and throws. */
export function strandsCall(load) {
  const peerTool = strandsTool(load.tool);
  return {
    name: 'Strands `tool.invoke` (zod)',
    encode: (input) => input,
    call: (input) => peerTool.invoke(input),
    read: String,
  };
}
