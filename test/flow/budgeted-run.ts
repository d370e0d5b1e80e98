import { defineTool } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';

/** A run with these replies, and a tool that records its arguments. */
export function setup(replies: readonly object[], toolOptions: object = {}) {
  const ran: unknown[] = [];
  const look = defineTool({
    name: 'look',
    description: 'Looks',
    parameters: { type: 'object', properties: { id: { type: 'string' } } },
    execute: (args: { id?: string }) => {
      ran.push(args.id);
      return `saw ${args.id}`;
    },
    ...toolOptions,
  } as never);
  const provider = new ScriptedProvider(replies as never);
  const config = { provider, model: 'gpt-5', tools: [look], llmOptions: { max_tokens: 100 } };
  return { ran, provider, config };
}
