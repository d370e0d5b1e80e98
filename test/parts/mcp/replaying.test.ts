import { expect, test } from '@jest/globals';
import { defineTool, ToolRegistry } from 'toolwright';
import { connectClient, ERAS, listen } from './mcp-connections.js';

/** The arguments of the method in each of its runs. */
const given: unknown[] = [];

const registry = new ToolRegistry({
  policy({ arguments: args }) {
    Object.assign(args, { seenByPolicy: true });
    return true;
  },
}).register(
  defineTool({
    name: 'pack',
    description: 'Packs a box; changes what it was given before it asks',
    parameters: {
      type: 'object',
      properties: { items: { type: 'array', items: { type: 'string' }, default: [] } },
    } as const,
    async execute(args: { items?: string[] }, context) {
      given.push(structuredClone(args.items));
      args.items?.push('a card');
      await context.ask({ message: 'Seal it?' });
      await context.ask({ message: 'Really?' });
      return `packed ${JSON.stringify(args.items)}`;
    },
  }),
);

test.each(
  Object.entries(ERAS).flatMap(([era, options]) => [
    { era, options, sent: { items: ['a cup'] }, first: ['a cup'] },
    { era, options, sent: undefined, first: [] },
  ]),
)(
  'a method that changes $sent between its questions is run again with the original arguments ($era)',
  async ({ options, sent, first }) => {
    given.length = 0;
    const listening = await listen(registry);
    const client = await connectClient(listening.url, {
      options: { ...options, capabilities: { elicitation: {} } },
      prepare: (one) =>
        one.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { answer: 'yes' } })),
    });
    try {
      const result = await client.callTool({ name: 'pack', ...(sent ? { arguments: sent } : {}) });
      expect(result.content).toEqual([
        { type: 'text', text: `packed ${JSON.stringify([...first, 'a card'])}` },
      ]);
      expect(given).toEqual([first, first, first]);
    } finally {
      await client.close();
      await listening.close();
    }
  },
);
