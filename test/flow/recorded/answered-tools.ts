import {
  asyncResult,
  defineTool,
  type JsonSchema,
  RetryToolCall,
  silentResult,
  type ToolDefinition,
  userResult,
} from 'toolwright';

const object = (
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[] = [],
): JsonSchema => ({
  type: 'object',
  properties,
  required,
});
const text = { type: 'string' };

/** Tools with all kinds of results. */
export function answeredTools(): ToolDefinition[] {
  const notes: string[] = [];
  return [
    defineTool({
      name: 'add',
      description: 'Adds',
      parameters: object({ a: { type: 'integer' }, b: { type: 'integer' } }, ['a', 'b']),
      execute: ({ a, b }) => Number(a) + Number(b),
    }),
    defineTool({
      name: 'echo',
      description: 'Says it again',
      parameters: object({ say: text }, ['say']),
      execute: async ({ say }) => say,
    }),
    defineTool({
      name: 'note',
      description: 'Keeps a note',
      sequential: true,
      parameters: object({ note: text }, ['note']),
      execute: ({ note }) => notes.push(String(note)),
    }),
    defineTool({
      name: 'fail',
      description: 'Fails',
      execute: () => {
        throw new Error('it failed');
      },
    }),
    defineTool({
      name: 'picky',
      description: 'Is picky',
      retries: 1,
      parameters: object({ name: text }, ['name']),
      execute: ({ name }) => {
        if (String(name).length < 3) throw new RetryToolCall('Give three letters.');
        return `found ${name}`;
      },
    }),
    defineTool({
      name: 'direct',
      description: 'Answers for the model',
      returnDirect: true,
      execute: () => userResult('the answer'),
    }),
    defineTool({
      name: 'never',
      description: 'Never ends',
      timeoutMs: 4,
      execute: () => new Promise(() => {}),
    }),
    defineTool({ name: 'quiet', description: 'Is quiet', execute: () => silentResult('hush') }),
    defineTool({
      name: 'picture',
      description: 'Draws',
      execute: () => ({
        content: [
          { type: 'text', content: 'A picture' },
          { type: 'image', data: 'AA==', mimeType: 'image/png' },
        ],
        details: { n: 1 },
      }),
    }),
    defineTool({
      name: 'work',
      description: 'Works on',
      parameters: object({ title: text }),
      execute: ({ title = 'it' }, context) =>
        context.background(async () => `${title} is done`, `Started ${title}`),
    }),
    defineTool({
      name: 'report',
      description: 'Reports',
      execute: (_args, context) => {
        context.progress('half');
        context.logger.info('half done', { share: 0.5 });
        return 'reported';
      },
    }),
    defineTool({
      name: 'acknowledge',
      description: 'Says that it started',
      execute: () => asyncResult('Started'),
    }),
  ];
}

/** Tools whose calls wait for an answer. */
export function waitingTools(): ToolDefinition[] {
  return [
    defineTool({
      name: 'pay',
      description: 'Pays',
      approval: ({ amount }) => Number(amount) > 100,
      parameters: object({ amount: { type: 'number' } }, ['amount']),
      execute: ({ amount }) => `paid ${amount}`,
    }),
    defineTool({
      name: 'erase',
      description: 'Erases',
      approval: true,
      annotations: { destructive: true },
      execute: () => 'erased',
    }),
    defineTool({
      name: 'locate',
      description: 'Is executed by the client',
      parameters: object({ precise: { type: 'boolean', default: false } }),
    }),
    defineTool({
      name: 'book',
      description: 'Books',
      parameters: object({ city: text }, ['city']),
      async execute({ city }, context) {
        const offer = await context.once('offer', () => ({ price: 70 }));
        const sure = await context.ask({
          message: `${city} for ${offer.price}?`,
          schema: { type: 'boolean' },
        });
        if (!sure) return 'not booked';
        const seat = await context.ask({ message: 'Which seat?', schema: { enum: ['aisle', 'window'] } });
        return `booked ${city}, ${seat}`;
      },
    }),
    defineTool({
      name: 'both',
      description: 'Asks two at once',
      execute: async (_args, context) =>
        Promise.all([context.ask({ message: 'One?' }), context.ask({ message: 'Two?' })]),
    }),
    defineTool({
      name: 'shaky',
      description: 'Its approval throws',
      approval: () => {
        throw new Error('who knows');
      },
      execute: () => 'shaken',
    }),
  ];
}
