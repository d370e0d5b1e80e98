import { expect, test } from '@jest/globals';
import { InMemoryTransport, Client as SdkClient } from '@modelcontextprotocol/client';
import { type Tool as McpTool, Server } from '@modelcontextprotocol/server';
import { defineTool, type JsonSchema, ToolRegistry } from 'toolwright';
import { mcpTools } from 'toolwright/mcp';

const node = { $ref: '#/$defs/node' };
const object = (properties: object, others: object = {}) => ({ type: 'object', properties, ...others });

/** Schemas in which each level of a value matches two or more branches. */
const SCHEMAS: Readonly<Record<string, object>> = {
  anyOf: { anyOf: [object({ a: node }), object({ a: node, b: { type: 'integer' } })] },
  'oneOf with a closed branch': {
    oneOf: [
      object({ a: node }, { additionalProperties: false }),
      object({ a: node, b: { type: 'integer' } }, { required: ['b'] }),
    ],
  },
  'allOf beside properties': { ...object({ a: node }), allOf: [object({ a: node })] },
  'if and then': {
    if: object({ a: node }),
    ...Object.fromEntries([
      ['then', object({ a: node })],
      ['else', false],
    ]),
    type: 'object',
  },
  'patternProperties beside properties': { ...object({ a: node }), patternProperties: { '^a$': node } },
  'double not': { ...object({ a: node }), not: { not: object({ a: node }) } },
  unevaluatedProperties: {
    anyOf: [object({ a: node }), object({ a: node, b: true })],
    unevaluatedProperties: false,
  },
  'an optional discriminator': {
    anyOf: ['x', 'y'].map((kind) => object({ kind: { const: kind }, a: node })),
  },
};

/** How many property reads the validation of a value with this many levels takes. */
async function reads(tools: ToolRegistry, { levels, leaf }: { levels: number; leaf: unknown }) {
  let count = 0;
  let value = leaf;
  for (let level = 0; level < levels; level += 1) {
    const inner = value;
    value = Object.defineProperty({}, 'a', {
      enumerable: true,
      get: () => {
        count += 1;
        return inner;
      },
    });
  }
  const { isError } = await tools.execute('call', { one: value });
  return { count, isError };
}

async function foreign(inputSchema: object): Promise<ToolRegistry> {
  const server = new Server({ name: 'foreign', version: '1' }, { capabilities: { tools: {} } });
  const tool = { name: 'call', description: 'x', inputSchema };
  server.setRequestHandler('tools/list', () => ({ tools: [tool as McpTool] }));
  server.setRequestHandler('tools/call', () => ({ content: [{ type: 'text', text: 'ran' }] }));
  const [near, far] = InMemoryTransport.createLinkedPair();
  await server.connect(far);
  const client = new SdkClient({ name: 'a-client', version: '1' });
  await client.connect(near);
  return new ToolRegistry().register(...(await mcpTools(client)));
}

function own(parameters: object): ToolRegistry {
  return new ToolRegistry().register(
    defineTool({
      name: 'call',
      description: 'x',
      parameters: parameters as JsonSchema,
      execute: () => 'ran',
    }),
  );
}

const CASES = Object.entries(SCHEMAS).flatMap(([name, schema]) =>
  (['a local', 'an MCP'] as const).flatMap((whose) =>
    (['fits', 'does not fit'] as const).map((how) => [name, whose, how, schema] as const),
  ),
);

test.each(CASES)('%s in %s schema: validation takes linear time if the value %s', async (...row) => {
  const [, whose, how, definition] = row;
  const parameters = { ...object({ one: node }), $defs: { node: definition } };
  const tools = whose === 'a local' ? own(parameters) : await foreign(parameters);
  const leaf = how === 'fits' ? {} : 3;
  const few = await reads(tools, { levels: 5, leaf });
  expect(few.isError).toBe(how === 'does not fit');
  // Work that doubles with each level would never finish 400 levels.
  for (const levels of [15, 50, 400]) {
    const many = await reads(tools, { levels, leaf });
    expect(many.isError).toBe(few.isError);
    expect(many.count / levels).toBeLessThan(3 * (few.count / 5));
  }
});
