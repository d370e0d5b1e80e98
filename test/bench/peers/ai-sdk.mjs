/* The Vercel AI SDK. */
import { executeTool, validateTypes } from '@ai-sdk/provider-utils';
import { tool } from 'ai';
import { zodSchemas } from '../schemas.mjs';
import { bodyOf } from '../workloads.mjs';

/** A zod tool of the AI SDK. */
export function aiTool(name) {
  const body = bodyOf(name);
  return tool({ description: name, inputSchema: zodSchemas[name], execute: async (input) => body(input) });
}

/** The steps of `generateText` for the arguments of a call: validation, then the stream of outputs of the tool. */
export function aiCall(load) {
  const peerTool = aiTool(load.tool);
  const options = { toolCallId: 'call_1', messages: [] };
  return {
    name: 'AI SDK validate + `executeTool` (zod)',
    encode: (input) => input,
    call: async (value) => {
      const input = await validateTypes({ value, schema: peerTool.inputSchema });
      let answer;
      for await (const { output } of executeTool({ tool: peerTool, input, options })) answer = output;
      return answer;
    },
    read: String,
  };
}
