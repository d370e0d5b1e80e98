// Runs the same scenarios with the clients of the official SDK, versions 1 and 2, and their own OAuth clients.
import * as sdk2 from '@modelcontextprotocol/client';
import { UnauthorizedError as UnauthorizedError1 } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { browse, CANCEL, expect, HOURS, PAY, READ, startPlain, startProtected } from './servers.mjs';

const CALLBACK = 'http://127.0.0.1:33334/callback';
const clientInfo = { name: 'a-client', version: '1' };
const capabilities = { elicitation: {} };

/** The differences between the clients. */
const SDKS = {
  'SDK 1': {
    createClient: () => new Client1(clientInfo, { capabilities }),
    transport: (url, authProvider) => new Transport1(url, { authProvider }),
    onElicit: (client, answer) => client.setRequestHandler(ElicitRequestSchema, answer),
    finish: (transport, callback) => transport.finishAuth(callback.get('code')),
    isUnauthorized: (error) => error instanceof UnauthorizedError1,
  },
  'SDK 2, 2025-11-25': sdk2Client({}),
  'SDK 2, 2026-07-28': sdk2Client({ versionNegotiation: { mode: { pin: '2026-07-28' } } }),
};

function sdk2Client(options) {
  return {
    createClient: () => new sdk2.Client(clientInfo, { capabilities, ...options }),
    transport: (url, authProvider) => new sdk2.StreamableHTTPClientTransport(url, { authProvider }),
    onElicit: (client, answer) => client.setRequestHandler('elicitation/create', answer),
    finish: (transport, callback) => transport.finishAuth(callback),
    isUnauthorized: (error) => error instanceof sdk2.UnauthorizedError,
  };
}

/** Creates an OAuth provider that stores everything in memory, with a user who always agrees. */
function createProvider() {
  const stored = {};
  const scopes = [];
  let callback;
  return {
    scopes,
    callback: () => callback,
    provider: {
      redirectUrl: CALLBACK,
      clientMetadata: {
        client_name: 'a client',
        redirect_uris: [CALLBACK],
        token_endpoint_auth_method: 'none',
        application_type: 'native',
      },
      clientInformation: () => stored.client,
      saveClientInformation: (client) => Object.assign(stored, { client }),
      discoveryState: () => stored.discovery,
      saveDiscoveryState: (discovery) => Object.assign(stored, { discovery }),
      tokens: () => stored.tokens,
      saveTokens: (tokens) => Object.assign(stored, { tokens }),
      codeVerifier: () => stored.verifier,
      saveCodeVerifier: (verifier) => Object.assign(stored, { verifier }),
      async redirectToAuthorization(url) {
        scopes.push(url.searchParams.get('scope'));
        callback = (await browse(url, CALLBACK)).searchParams;
      },
    },
  };
}

const textOf = ({ content }) => content[0].text;

function scenarios(sdk) {
  /** Does the work, and repeats it after each sign-in that it requires. */
  const withSignIn = async (oauth, transportOf, work) => {
    for (let attempts = 0; ; attempts += 1)
      try {
        return await work();
      } catch (error) {
        if (!sdk.isUnauthorized(error) || attempts === 2) throw error;
        await sdk.finish(transportOf(), oauth.callback());
      }
  };
  const connect = async (url) => {
    const oauth = createProvider();
    let client;
    let transport;
    await withSignIn(
      oauth,
      () => transport,
      async () => {
        client = sdk.createClient();
        transport = sdk.transport(url, oauth.provider);
        await client.connect(transport);
      },
    );
    const call = (name) =>
      withSignIn(
        oauth,
        () => transport,
        async () => textOf(await client.callTool({ name, arguments: {} })),
      );
    return { client, oauth, call };
  };
  return {
    'lists and calls without sign-in': async () => {
      await using server = await startPlain(HOURS, READ);
      const { client, oauth, call } = await connect(server.url);
      const { tools } = await client.listTools();
      expect(tools.length === 2, tools);
      expect((await call('hours')) === 'hours for anonymous' && oauth.scopes.length === 0, oauth.scopes);
      await client.close();
    },
    'signs in when it connects': async () => {
      await using server = await startProtected(READ);
      const { client, oauth, call } = await connect(server.url);
      const { tools } = await client.listTools();
      expect(tools[0].name === 'read', tools);
      expect((await call('read')) === 'read for ada', oauth.scopes);
      await client.close();
    },
    'signs in at the first call that requires it, and again for more scopes': async () => {
      await using server = await startProtected(HOURS, READ, CANCEL);
      const { client, oauth, call } = await connect(server.url);
      expect((await call('hours')) === 'hours for anonymous' && oauth.scopes.length === 0, oauth.scopes);
      expect((await call('read')) === 'read for ada', oauth.scopes);
      expect((await call('cancel')) === 'cancel for ada', oauth.scopes);
      expect(oauth.scopes.length === 2 && oauth.scopes[1].includes('orders:write'), oauth.scopes);
      await client.close();
    },
    'shows an approval to its user': async () => {
      await using server = await startProtected(PAY);
      const { client, call } = await connect(server.url);
      const messages = [];
      sdk.onElicit(client, ({ params }) => {
        messages.push(params.message);
        return { action: 'accept', content: {} };
      });
      const text = await call('pay');
      expect(text === 'pay for ada' && messages.length === 1, { text, messages });
      await client.close();
    },
  };
}

export const sdkClients = Object.fromEntries(
  Object.entries(SDKS).flatMap(([name, sdk]) =>
    Object.entries(scenarios(sdk)).map(([title, run]) => [`${name} ${title}`, run]),
  ),
);
