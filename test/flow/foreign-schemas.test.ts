import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { type Client, InMemoryTransport, Client as SdkClient } from '@modelcontextprotocol/client';
import { type Tool as McpTool, Server } from '@modelcontextprotocol/server';
import { ToolRegistry } from 'toolwright';
import { followMcpTools, type McpToolChange, mcpTools } from 'toolwright/mcp';

const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

/** A server with these tools, which returns the arguments of each call. */
async function serverWith(tools: readonly object[]): Promise<Client> {
  const server = new Server({ name: 'foreign', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => ({ tools: tools as McpTool[] }));
  server.setRequestHandler('tools/call', ({ params }) => ({
    content: [{ type: 'text', text: JSON.stringify(params.arguments) }],
  }));
  const [near, far] = InMemoryTransport.createLinkedPair();
  await server.connect(far);
  const client = new SdkClient({ name: 'a-client', version: '1' });
  await client.connect(near);
  clients.push(client);
  return client;
}

const tool = (name: string, inputSchema: object) => ({ name, description: name, inputSchema });
const object = (properties: object, others: object = {}) => ({ type: 'object', properties, ...others });
const good = tool('good', object({ a: { type: 'string' } }));

function listener() {
  const warnings: string[] = [];
  return {
    warnings,
    logger: { debug() {}, info() {}, warn: (text: string) => warnings.push(text), error() {} },
  };
}

/** A schema with `count` + 1 parts. */
const wide = (count: number) =>
  object(Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, {}])));

function nested(levels: number): object {
  let schema: object = { type: 'string' };
  for (let level = 0; level < levels; level += 1) schema = object({ a: schema });
  return schema;
}

/** Each definition refers to the next one twice. */
function doubling(levels: number): object {
  const $defs = Object.fromEntries(
    Array.from({ length: levels }, (_, level) => {
      const next = level + 1 < levels ? { $ref: `#/$defs/d${level + 1}` } : { type: 'string' };
      return [`d${level}`, { anyOf: [next, next] }];
    }),
  );
  return { ...object({ a: { $ref: '#/$defs/d0' } }), $defs };
}

const UNUSABLE: readonly (readonly [what: string, schema: object, warning: string])[] = [
  ['an unknown type', object({ a: { type: 'strng' } }), "properties.a.type is 'strng'"],
  ['an invalid pattern', object({ a: { pattern: '(' } }), "properties.a.pattern is '('"],
  ['a reference without a target', object({ a: { $ref: '#/$defs/gone' } }), 'leads nowhere'],
  ['$async', object({}, { $async: true }), '$async is true'],
  ['$async in a subschema', object({ a: { allOf: [{ $async: true }] } }), 'allOf.0.$async is true'],
  ['300 levels', nested(300), 'nested too deep'],
  ['3,001 parts', wide(3_000), 'parts'],
  ['600,000 characters', object({ a: { description: 'x'.repeat(600_000) } }), 'characters'],
  ['references that expand exponentially', doubling(40), 'expands'],
  [
    'a direct reference to itself',
    object(
      { a: { $ref: '#/$defs/b' } },
      { $defs: { b: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/b' }] } } },
    ),
    'refers to itself',
  ],
];

describe.each(UNUSABLE)('a tool whose schema has %s', (_what, schema, warning) => {
  test('is left out by mcpTools with a warning, and the other tools stay', async () => {
    const { warnings, logger } = listener();
    const onChange = jest.fn<(change: McpToolChange) => void>();
    const client = await serverWith([tool('bad', schema), good]);
    const tools = new ToolRegistry().register(...(await mcpTools(client, { logger, onChange })));
    expect(tools.list()).toEqual(['good']);
    expect(warnings).toEqual([expect.stringContaining('MCP tool "bad": it is not offered: its inputSchema')]);
    expect(warnings[0]).toContain(warning);
    expect(onChange).toHaveBeenCalledWith(
      expect.objectContaining({ kind: 'withheld', reason: 'malformed', name: 'bad' }),
    );
    expect(await tools.execute('good', { a: 'x' })).toMatchObject({ isError: false });
  });
});

test('mcpTools accepts a tool whose schema has 3,000 parts', async () => {
  const client = await serverWith([tool('large', wide(2_999))]);
  expect((await mcpTools(client)).map(({ name }) => name)).toEqual(['large']);
});

test('mcpTools leaves out a tool that is nested too deep to be parsed', async () => {
  const client = await serverWith([tool('bad', nested(10_000)), good]);
  expect((await mcpTools(client)).map(({ name }) => name)).toEqual(['good']);
});

test('followMcpTools leaves out a malformed tool and follows the others', async () => {
  const { warnings, logger } = listener();
  const tools = new ToolRegistry();
  const client = await serverWith([tool('bad', object({ a: { type: 'strng' } })), good]);
  const following = await followMcpTools(tools, client, { logger });
  expect(tools.list()).toEqual(['good']);
  expect(warnings).toHaveLength(1);
  await following.close();
});

describe('mcpTools with patterns', () => {
  const HOSTILE = ['^(a+)+$', '(a|a)*$', '^(a|aa)+$', '\\s*\\s*$', '^(\\S+\\s?)+$', '^(?:x+x+)+y$'];
  const HARMLESS = [
    '^[a-z]+$',
    '^\\d{4}-\\d{2}-\\d{2}$',
    '^[a-z0-9]+(?:-[a-z0-9]+)*$',
    '^https?://',
    '\\.pdf$',
    '^\\p{L}+$',
  ];

  test.each(HOSTILE)('leaves %s to the server, and logs a warning', async (pattern) => {
    const { warnings, logger } = listener();
    const client = await serverWith([tool('find', object({ a: { type: 'string', pattern } }))]);
    const tools = new ToolRegistry().register(...(await mcpTools(client, { logger })));
    const text = `${'a'.repeat(50_000)} `.repeat(2);
    expect(await tools.execute('find', { a: text })).toMatchObject({ isError: false });
    expect(await tools.execute('find', { a: 1.5 })).toMatchObject({ isError: true });
    expect(warnings).toEqual([expect.stringContaining(JSON.stringify(pattern))]);
    // The model receives the schema of the server.
    expect(tools.tools()[0]?.parameters.properties?.a).toEqual({ type: 'string', pattern });
  });

  test.each(HARMLESS)('checks %s', async (pattern) => {
    const { warnings, logger } = listener();
    const client = await serverWith([tool('find', object({ a: { type: 'string', pattern } }))]);
    const tools = new ToolRegistry().register(...(await mcpTools(client, { logger })));
    expect(await tools.execute('find', { a: '!?' })).toMatchObject({ isError: true });
    expect(warnings).toEqual([]);
  });

  test('accepts any property if patternProperties has an unsafe pattern', async () => {
    const { logger } = listener();
    const schema = {
      type: 'object',
      patternProperties: { '^(a+)+$': { type: 'string' } },
      additionalProperties: false,
    };
    const tools = new ToolRegistry().register(
      ...(await mcpTools(await serverWith([tool('put', schema)]), { logger })),
    );
    expect((await tools.execute('put', { aaa: 'x' })).forLLM).toBe('{"aaa":"x"}');
  });

  test('checks the properties of safe patterns in patternProperties', async () => {
    const { logger } = listener();
    const byPattern = { '^(a+)+$': { type: 'string' }, '^b': { type: 'integer' } };
    const schema = { type: 'object', patternProperties: byPattern };
    const tools = new ToolRegistry().register(
      ...(await mcpTools(await serverWith([tool('put', schema)]), { logger })),
    );
    expect((await tools.execute('put', { aaa: 'x', b1: 1 })).forLLM).toBe('{"aaa":"x","b1":1}');
    expect((await tools.execute('put', { aaa: 'x', b1: 'x' })).forLLM).toContain('b1: must be integer');
  });
});

describe('defaults of MCP tools', () => {
  const schema = object({
    duration: { type: 'number', default: null },
    limit: { type: 'integer', default: 10 },
  });

  test('are not filled in by mcpTools, because the server has them', async () => {
    const tools = new ToolRegistry().register(...(await mcpTools(await serverWith([tool('find', schema)]))));
    expect((await tools.execute('find', {})).forLLM).toBe('{}');
    expect((await tools.execute('find', { limit: '3' })).forLLM).toBe('{"limit":3}');
  });

  test('are filled in with fillDefaults, except for those that the schema rejects', async () => {
    const { logger, warnings } = listener();
    const server = await serverWith([tool('find', schema)]);
    const imported = await mcpTools(server, { fillDefaults: true, logger });
    expect(warnings).toEqual([
      'MCP tool "find": `properties.duration.default` of its `inputSchema` is null, which its own schema does not accept, so it is not applied (no default, or a type that includes null)',
    ]);
    expect((await new ToolRegistry().register(...imported).execute('find', {})).forLLM).toBe('{"limit":10}');
  });
});
