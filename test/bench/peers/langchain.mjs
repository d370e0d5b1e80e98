/* LangChain. */
import { tool } from '@langchain/core/tools';
import { zodSchemas } from '../schemas.mjs';
import { bodyOf } from '../workloads.mjs';

/** A zod tool of LangChain. */
export function langchainTool(name) {
  const body = bodyOf(name);
  return tool(async (input) => String(body(input)), { name, description: name, schema: zodSchemas[name] });
}

/** `tool.invoke`, which throws the errors of zod. */
export function langchainCall(load) {
  const peerTool = langchainTool(load.tool);
  return {
    name: 'LangChain `tool.invoke` (zod)',
    encode: (input) => input,
    call: (input) => peerTool.invoke(input),
    read: String,
  };
}
