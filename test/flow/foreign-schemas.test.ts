import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { type Client, InMemoryTransport, Client as SdkClient } from '@modelcontextprotocol/client';
import { type Tool as McpTool, Server } from '@modelcontextprotocol/server';
import { ToolRegistry } from 'toolwright';
import { followMcpTools, type McpToolChange, mcpTools } from 'toolwright/mcp';

const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

/** A server that offers what it is told to, and answers with the arguments that it gets. */
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

/** One part, and one for each property. */
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
  ['a type that is none', object({ a: { type: 'strng' } }), "properties.a.type is 'strng'"],
  ['a pattern that is none', object({ a: { pattern: '(' } }), "properties.a.pattern is '('"],
  ['a reference to nothing', object({ a: { $ref: '#/$defs/gone' } }), 'leads nowhere'],
  ['$async', object({}, { $async: true }), '$async is true'],
  ['$async further down', object({ a: { allOf: [{ $async: true }] } }), 'allOf.0.$async is true'],
  ['300 levels', nested(300), 'nested too deep'],
  ['3,001 parts', wide(3_000), 'parts'],
  ['600,000 characters', object({ a: { description: 'x'.repeat(600_000) } }), 'characters'],
  ['references that unfold without bounds', doubling(40), 'unfolds'],
  [
    'a schema that refers to itself at once',
    object(
      { a: { $ref: '#/$defs/b' } },
      { $defs: { b: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/b' }] } } },
    ),
    'refers to itself',
  ],
];

describe.each(UNUSABLE)('a tool whose schema has %s is left out', (_what, schema, warning) => {
  test('by mcpTools with a warning, and its siblings stay', async () => {
    const { warnings, logger } = listener();
    const onChange = jest.fn<(change: McpToolChange) => void>();
    const client = await serverWith([tool('bad', schema), good]);
    const tools = new ToolRegistry().register(...(await mcpTools(client, { logger, onChange })));
    expect(tools.list()).toEqual(['good']);
    expect(warnings).toEqual([expect.stringContaining('MCP tool "bad": it is left out: its inputSchema')]);
    expect(warnings[0]).toContain(warning);
    expect(onChange).toHaveBeenCalledWith(
      expect.objectContaining({ kind: 'withheld', reason: 'malformed', name: 'bad' }),
    );
    expect(await tools.execute('good', { a: 'x' })).toMatchObject({ isError: false });
  });
});

test('mcpTools takes a tool whose schema has 3,000 parts', async () => {
  const client = await serverWith([tool('large', wide(2_999))]);
  expect((await mcpTools(client)).map(({ name }) => name)).toEqual(['large']);
});

test('mcpTools passes over a tool that is nested too deep to be read at all', async () => {
  const client = await serverWith([tool('bad', nested(10_000)), good]);
  expect((await mcpTools(client)).map(({ name }) => name)).toEqual(['good']);
});

test('followMcpTools leaves a malformed tool out and follows its siblings', async () => {
  const { warnings, logger } = listener();
  const tools = new ToolRegistry();
  const client = await serverWith([tool('bad', object({ a: { type: 'strng' } })), good]);
  const following = await followMcpTools(tools, client, { logger });
  expect(tools.list()).toEqual(['good']);
  expect(warnings).toHaveLength(1);
  await following.close();
});

describe('mcpTools and patterns', () => {
  const HOSTILE = ['^(a+)+$', '(a|a)*$', '^(a|aa)+$', '\\s*\\s*$', '^(\\S+\\s?)+$', '^(?:x+x+)+y$'];
  const HARMLESS = [
    '^[a-z]+$',
    '^\\d{4}-\\d{2}-\\d{2}$',
    '^[a-z0-9]+(?:-[a-z0-9]+)*$',
    '^https?://',
    '\\.pdf$',
    '^\\p{L}+$',
  ];

  test.each(HOSTILE)('leave %s to the server, and say so', async (pattern) => {
    const { warnings, logger } = listener();
    const client = await serverWith([tool('find', object({ a: { type: 'string', pattern } }))]);
    const tools = new ToolRegistry().register(...(await mcpTools(client, { logger })));
    const text = `${'a'.repeat(50_000)} `.repeat(2);
    expect(await tools.execute('find', { a: text })).toMatchObject({ isError: false });
    expect(await tools.execute('find', { a: 1.5 })).toMatchObject({ isError: true });
    expect(warnings).toEqual([expect.stringContaining(JSON.stringify(pattern))]);
    // The model is shown what the server wrote.
    expect(tools.tools()[0]?.parameters.properties?.a).toEqual({ type: 'string', pattern });
  });

  test.each(HARMLESS)('check %s', async (pattern) => {
    const { warnings, logger } = listener();
    const client = await serverWith([tool('find', object({ a: { type: 'string', pattern } }))]);
    const tools = new ToolRegistry().register(...(await mcpTools(client, { logger })));
    expect(await tools.execute('find', { a: '!?' })).toMatchObject({ isError: true });
    expect(warnings).toEqual([]);
  });

  test('let any property pass where one is told by an unsafe pattern', async () => {
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

  test('check the properties that are told by other patterns', async () => {
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

describe('defaults of a server’s tools', () => {
  const schema = object({
    duration: { type: 'number', default: null },
    limit: { type: 'integer', default: 10 },
  });

  test('are not filled in by mcpTools: the server knows its own', async () => {
    const tools = new ToolRegistry().register(...(await mcpTools(await serverWith([tool('find', schema)]))));
    expect((await tools.execute('find', {})).forLLM).toBe('{}');
    expect((await tools.execute('find', { limit: '3' })).forLLM).toBe('{"limit":3}');
  });

  test('are filled in where asked, but for those that the schema refuses', async () => {
    const { logger, warnings } = listener();
    const server = await serverWith([tool('find', schema)]);
    const imported = await mcpTools(server, { fillDefaults: true, logger });
    expect(warnings).toEqual([
      'MCP tool "find": `properties.duration.default` of its `inputSchema` is null, which its own schema does not take, so that it is not filled in (no default, or a type that takes null)',
    ]);
    expect((await new ToolRegistry().register(...imported).execute('find', {})).forLLM).toBe('{"limit":10}');
  });
});
