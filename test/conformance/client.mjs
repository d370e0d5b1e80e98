// The client for the client scenarios of the official suite: imports the tools of the server with `mcpTools` and calls
// each of them. The suite passes the address as the last argument and other settings in the environment.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { ToolRegistry } from '../../dist/src/index.js';
import { connectMcp, mcpTools } from '../../dist/src/surfaces/mcp/index.js';

const address = process.argv.at(-1);
const revision = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? '2025-11-25';
const { toolCalls, ...context } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');

const client = process.env.MCP_CONFORMANCE_SCENARIO?.startsWith('auth/')
  ? await connectWithSignIn()
  : await connectWithoutSignIn();
const tools = await mcpTools(client);
const registry = new ToolRegistry().register(...tools);
const calls =
  toolCalls ?? tools.map(({ name, parameters }) => ({ name, arguments: argumentsFor(parameters) }));
for (const call of calls) {
  const result = await registry.execute(call.name, call.arguments);
  console.log(`${call.name}: ${result.forLLM}`);
}
await client.close();

/** The authorization servers of the suite redirect at once, as if a user had agreed. */
function connectWithSignIn() {
  const { client_id: clientId, client_secret: clientSecret, issuer } = context;
  const usesClientCredentials = process.env.MCP_CONFORMANCE_SCENARIO.includes('client-credentials');
  const connect = connectMcp({
    url: address,
    auth: {
      ...(!usesClientCredentials && { redirectUrl: 'http://localhost:3000/callback' }),
      clientMetadataUrl: 'https://conformance-test.local/client-metadata.json',
      ...(clientId && { clientId }),
      ...(clientSecret && { clientSecret }),
      ...(issuer && { issuer }),
      onSignIn: async (page) => {
        const response = await fetch(page, { redirect: 'manual' });
        return response.headers.get('location') ?? '';
      },
    },
  });
  return connect();
}

async function connectWithoutSignIn() {
  const client = new Client(
    { name: 'toolwright-conformance', version: '0.0.0' },
    {
      capabilities: {
        elicitation: { form: { applyDefaults: true } },
        sampling: {},
        roots: { listChanged: true },
      },
      ...(revision === '2026-07-28' ? { versionNegotiation: { mode: 'auto' } } : {}),
    },
  );
  client.setRequestHandler('elicitation/create', ({ params }) => {
    const fields = Object.entries(params.requestedSchema?.properties ?? {});
    const required = fields.filter(
      ([, { type, default: preset }]) => type === 'boolean' && preset === undefined,
    );
    return { action: 'accept', content: Object.fromEntries(required.map(([name]) => [name, true])) };
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(address)));
  return client;
}

/** A sample value for each required property; for a property `schema`, the schema of another tool. */
function argumentsFor({ properties = {}, required = [] }) {
  const samples = { string: 'us-west1', number: 5, integer: 3, boolean: true, array: [], object: {} };
  const sampleOf = (name) => {
    if (name === 'schema') return tools.find((tool) => tool.parameters.$defs !== undefined)?.parameters;
    return samples[properties[name]?.type] ?? 'a-1';
  };
  return Object.fromEntries(required.map((name) => [name, sampleOf(name)]));
}
