// Calls that a real model made of real MCP tools: agreement with ajv on the tools' own schemas, coercion off.
// npm run measure:calls -- <folder with real-calls.jsonl and mcp-tool-lists/>
import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import { Server } from '@modelcontextprotocol/server';
import { Ajv } from 'ajv';
import { ToolRegistry } from '../../dist/src/index.js';
import { mcpTools } from '../../dist/src/surfaces/mcp/index.js';
import { readSuite } from './read-suite.mjs';

const rows = readSuite('real-calls.jsonl');
let agreed = 0;
let unnamed = 0;
for (const { server, tool, arguments: args, ajv } of rows) {
  const registry = new ToolRegistry({ coerce: false });
  const { annotations: _, ...offered } = await imported(tool.inputSchema);
  registry.register({ ...offered, execute: () => 'ran' });
  const { isError, forLLM } = await registry.execute('call', args);
  const verdict = isError ? 'invalid' : 'valid';
  if (verdict === ajv) agreed += 1;
  else console.log(`${server} ${tool.name}: ajv says ${ajv}, we say ${verdict}: ${forLLM}`);
  const missing = isError
    ? failingPaths(tool.inputSchema, args).filter((path) => !forLLM.includes(`  - ${path}`))
    : [];
  unnamed += missing.length;
  for (const path of missing) console.log(`${server} ${tool.name}: ${path} is not named in: ${forLLM}`);
}
console.log(`${agreed} of ${rows.length} agree with ajv; ${unnamed} failing paths not named`);

/** A tool as its server offers it: schemas of real servers are not always what an author may write. */
async function imported(inputSchema) {
  const server = new Server({ name: 'measured', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => ({ tools: [{ name: 'call', inputSchema }] }));
  const [near, far] = InMemoryTransport.createLinkedPair();
  await server.connect(far);
  const client = new Client({ name: 'measure', version: '1' });
  await client.connect(near);
  const [tool] = await mcpTools(client);
  await client.close();
  return tool;
}

/** The places that ajv complains about, with dots; a missing property counts as the place itself. */
function failingPaths(schema, args) {
  const { $schema: _, ...plain } = schema;
  const validate = new Ajv({ allErrors: true, strict: false, logger: false }).compile(plain);
  if (validate(args)) return [];
  const union = ({ schemaPath }) => /\/(anyOf|oneOf)\//.test(schemaPath);
  return validate.errors
    .filter((error) => !union(error))
    .map(({ instancePath, params }) =>
      [...instancePath.split('/').slice(1), params.missingProperty ?? params.additionalProperty ?? []]
        .flat()
        .join('.'),
    );
}
