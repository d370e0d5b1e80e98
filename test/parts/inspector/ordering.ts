import type { agentAsTool, defineTool, LLMProvider, ToolRegistry } from 'toolwright';

/** The exports that a separate program takes from the sources, and a test from the package. */
interface Library {
  readonly agentAsTool: typeof agentAsTool;
  readonly defineTool: typeof defineTool;
  readonly ToolRegistry: typeof ToolRegistry;
}

/** Makes the call that the user names, and repeats the result. */
export const ordering: LLMProvider = {
  async chat({ messages }) {
    const last = messages.at(-1);
    const content = String(last?.content);
    if (last?.role === 'tool') return { content: `heard: ${content}`, toolCalls: [], finishReason: 'stop' };
    const toolCalls = [
      content === 'agent'
        ? { id: 'a', name: 'shopper', arguments: { task: 'order' } }
        : { id: 'a', name: 'place_order', arguments: { sku: 'lamp', amount: 2 } },
    ];
    return { content: '', toolCalls, finishReason: 'tool_calls' };
  },
};

/** A tool that needs an approval, and an agent that uses it. */
export function orderingTools(library: Library, where: string): ToolRegistry {
  const placeOrder = library.defineTool({
    name: 'place_order',
    description: 'Place an order',
    parameters: {
      type: 'object',
      properties: { sku: { type: 'string' }, amount: { type: 'integer' } },
      required: ['sku', 'amount'],
    },
    approval: { remember: { scopes: ['run', 'user'], by: ['sku'] } },
    execute: ({ sku, amount }) => `placed ${amount} ${sku} ${where}`,
  });
  const agent = library.agentAsTool({
    name: 'shopper',
    description: 'Shops',
    provider: ordering,
    model: 'm',
    tools: new library.ToolRegistry().register(placeOrder),
  });
  return new library.ToolRegistry().register(placeOrder, agent);
}
