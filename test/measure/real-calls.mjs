// Compares validation with ajv on calls that a real model made of real MCP tools, without coercion.
// npm run measure:calls -- <folder with real-calls.jsonl and mcp-tool-lists/>
import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import { Server } from '@modelcontextprotocol/server';
import { Ajv } from 'ajv';
import { ToolRegistry } from '../../dist/src/index.js';
import { mcpTools } from '../../dist/src/surfaces/mcp/index.js';
import { readSuite } from './read-suite.mjs';

const rows = readSuite('real-calls.jsonl');
let agreed = 0;
let unnamedPaths = 0;
for (const { server, tool, arguments: args, ajv } of rows) {
  const registry = new ToolRegistry({ coerce: false });
  const { annotations: _, ...offered } = await importTool(tool.inputSchema);
  registry.register({ ...offered, execute: () => 'executed' });
  const { isError, forLLM } = await registry.execute('call', args);
  const verdict = isError ? 'invalid' : 'valid';
  if (verdict === ajv) agreed += 1;
  else console.log(`${server} ${tool.name}: ajv: ${ajv}, toolwright: ${verdict}: ${forLLM}`);
  const missing = isError
    ? failingPaths(tool.inputSchema, args).filter((path) => !forLLM.includes(`  - ${path}`))
    : [];
  unnamedPaths += missing.length;
  for (const path of missing) console.log(`${server} ${tool.name}: ${path} is not named in: ${forLLM}`);
}
console.log(`${agreed} of ${rows.length} agree with ajv; ${unnamedPaths} failing paths not named`);

/** Imports the tool over MCP, because schemas of real servers may break the rules for tools of an application. */
async function importTool(inputSchema) {
  const server = new Server({ name: 'measured', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => ({ tools: [{ name: 'call', inputSchema }] }));
  const [clientTransport, serverTransport] = InMemoryTransport.createLinkedPair();
  await server.connect(serverTransport);
  const client = new Client({ name: 'measure', version: '1' });
  await client.connect(clientTransport);
  const [tool] = await mcpTools(client);
  await client.close();
  return tool;
}

/** Returns the paths of ajv's errors in dot notation; a missing property is part of the path. */
function failingPaths(schema, args) {
  const { $schema: _, ...plain } = schema;
  const validate = new Ajv({ allErrors: true, strict: false, logger: false }).compile(plain);
  if (validate(args)) return [];
  const isInUnion = ({ schemaPath }) => /\/(anyOf|oneOf)\//.test(schemaPath);
  return validate.errors
    .filter((error) => !isInUnion(error))
    .map(({ instancePath, params }) =>
      [...instancePath.split('/').slice(1), params.missingProperty ?? params.additionalProperty ?? []]
        .flat()
        .join('.'),
    );
}
