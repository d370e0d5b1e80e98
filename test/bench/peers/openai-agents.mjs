/* OpenAI Agents. */
import { RunContext, tool } from '@openai/agents';
import { strictZodSchemas } from '../schemas.mjs';
import { bodyOf } from '../workloads.mjs';

/** A zod tool of OpenAI Agents that throws its errors instead of returning a fixed message. */
export function agentsTool(name) {
  const body = bodyOf(name);
  return tool({
    name,
    description: name,
    parameters: strictZodSchemas[name],
    execute: async (input) => body(input),
    errorFunction: null,
  });
}

/** `tool.invoke`, whose arguments are JSON text. */
export function agentsCall(load) {
  const peerTool = agentsTool(load.tool);
  const context = new RunContext();
  return {
    name: 'OpenAI Agents `tool.invoke` (zod, JSON text)',
    encode: JSON.stringify,
    call: (text) => peerTool.invoke(context, text),
    read: String,
  };
}
