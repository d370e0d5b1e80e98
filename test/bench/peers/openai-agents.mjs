/* OpenAI Agents. */
import { RunContext, tool } from '@openai/agents';
import { strictZodSchemas } from '../schemas.mjs';
import { bodyOf } from '../workloads.mjs';

/** A zod tool of OpenAI Agents; its errors are thrown instead of being told as one fixed sentence. */
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

/** `tool.invoke`, which takes JSON text. */
export function agentsCall(load) {
  const made = agentsTool(load.tool);
  const context = new RunContext();
  return {
    name: 'OpenAI Agents `tool.invoke` (zod, JSON text)',
    encode: JSON.stringify,
    call: (text) => made.invoke(context, text),
    read: String,
  };
}
