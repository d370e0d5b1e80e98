// The clients of the official SDK, version 1 and 2: the same scenarios, with the OAuth client that each has itself.
import * as sdk2 from '@modelcontextprotocol/client';
import { UnauthorizedError as UnauthorizedError1 } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { browse, CANCEL, expect, HOURS, PAY, READ, startPlain, startProtected } from './servers.mjs';

const CALLBACK = 'http://127.0.0.1:33334/callback';
const about = { name: 'a-client', version: '1' };
const capabilities = { elicitation: {} };

/** What differs between the clients. */
const SDKS = {
  'SDK 1': {
    connectable: () => new Client1(about, { capabilities }),
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
    connectable: () => new sdk2.Client(about, { capabilities, ...options }),
    transport: (url, authProvider) => new sdk2.StreamableHTTPClientTransport(url, { authProvider }),
    onElicit: (client, answer) => client.setRequestHandler('elicitation/create', answer),
    finish: (transport, callback) => transport.finishAuth(callback),
    isUnauthorized: (error) => error instanceof sdk2.UnauthorizedError,
  };
}

/** A provider that keeps everything in memory, and a user who agrees. */
function createProvider() {
  const kept = {};
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
      clientInformation: () => kept.client,
      saveClientInformation: (client) => Object.assign(kept, { client }),
      discoveryState: () => kept.discovery,
      saveDiscoveryState: (discovery) => Object.assign(kept, { discovery }),
      tokens: () => kept.tokens,
      saveTokens: (tokens) => Object.assign(kept, { tokens }),
      codeVerifier: () => kept.verifier,
      saveCodeVerifier: (verifier) => Object.assign(kept, { verifier }),
      async redirectToAuthorization(url) {
        scopes.push(url.searchParams.get('scope'));
        callback = (await browse(url, CALLBACK)).searchParams;
      },
    },
  };
}

const textOf = ({ content }) => content[0].text;

function scenarios(sdk) {
  /** Does something, and once more after each sign-in that it needs. */
  const signingIn = async (sign, transportOf, work) => {
    for (let attempts = 0; ; attempts += 1)
      try {
        return await work();
      } catch (error) {
        if (!sdk.isUnauthorized(error) || attempts === 2) throw error;
        await sdk.finish(transportOf(), sign.callback());
      }
  };
  const connect = async (url) => {
    const sign = createProvider();
    let client;
    let transport;
    await signingIn(
      sign,
      () => transport,
      async () => {
        client = sdk.connectable();
        transport = sdk.transport(url, sign.provider);
        await client.connect(transport);
      },
    );
    const call = (name) =>
      signingIn(
        sign,
        () => transport,
        async () => textOf(await client.callTool({ name, arguments: {} })),
      );
    return { client, sign, call };
  };
  return {
    'lists and calls without sign-in': async () => {
      await using server = await startPlain(HOURS, READ);
      const { client, sign, call } = await connect(server.url);
      const { tools } = await client.listTools();
      expect(tools.length === 2, tools);
      expect((await call('hours')) === 'hours for everybody' && sign.scopes.length === 0, sign.scopes);
      await client.close();
    },
    'signs in when it connects': async () => {
      await using server = await startProtected(READ);
      const { client, sign, call } = await connect(server.url);
      const { tools } = await client.listTools();
      expect(tools[0].name === 'read', tools);
      expect((await call('read')) === 'read for ada', sign.scopes);
      await client.close();
    },
    'signs in at the call that needs it, and for more scopes at the next': async () => {
      await using server = await startProtected(HOURS, READ, CANCEL);
      const { client, sign, call } = await connect(server.url);
      expect((await call('hours')) === 'hours for everybody' && sign.scopes.length === 0, sign.scopes);
      expect((await call('read')) === 'read for ada', sign.scopes);
      expect((await call('cancel')) === 'cancel for ada', sign.scopes);
      expect(sign.scopes.length === 2 && sign.scopes[1].includes('orders:write'), sign.scopes);
      await client.close();
    },
    'shows an approval to its user': async () => {
      await using server = await startProtected(PAY);
      const { client, call } = await connect(server.url);
      const asked = [];
      sdk.onElicit(client, ({ params }) => {
        asked.push(params.message);
        return { action: 'accept', content: {} };
      });
      const text = await call('pay');
      expect(text === 'pay for ada' && asked.length === 1, { text, asked });
      await client.close();
    },
  };
}

export const sdkClients = Object.fromEntries(
  Object.entries(SDKS).flatMap(([name, sdk]) =>
    Object.entries(scenarios(sdk)).map(([what, use]) => [`${name} ${what}`, use]),
  ),
);
