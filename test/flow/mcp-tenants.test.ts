import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { defineTool, type Logger, ToolRegistry } from 'toolwright';
import { createMcpServer, jwks, type McpToolServer } from 'toolwright/mcp';
import { tokenIssuer } from '../parts/mcp/token-issuer.js';
import { disableTimeouts } from '../setup/loopback.js';
import { ask, beginSession, callIn, messagesOf, post, type Sender, type WireMessage } from './mcp-bank.js';

/** `MCP_TENANTS=10000` for a longer run. */
const TENANTS = Number(process.env.MCP_TENANTS ?? 1_000);
const RESOURCE = 'https://crowd.example.org/mcp';
const CANARY = /canary-\d+-/g;
const canaryOf = (tenant: number) => `canary-${tenant}-`;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A tool that exposes everything about its caller: in progress, log, question and result. */
const everything = (running: { now: number; most: number }) =>
  defineTool({
    name: 'everything',
    description: 'Shows the caller',
    parameters: { type: 'object', properties: { mine: { type: 'string' } }, required: ['mine'] } as const,
    async execute({ mine }, context) {
      const { data, owner, scopes, logger } = context;
      running.now += 1;
      running.most = Math.max(running.most, running.now);
      const seen = JSON.stringify({
        mine,
        owner,
        scopes,
        tenant: data.tenant,
        sub: data.mcp?.authInfo?.extra?.sub,
      });
      try {
        context.progress({ progress: 1, message: `asking ${seen}` });
        logger.info('asking', { seen });
        // Other tenants run between all steps.
        await new Promise(setImmediate);
        const answer = await context.ask({ message: `Who are you, ${String(data.tenant)}?` });
        await new Promise(setImmediate);
        context.progress({ progress: 2, message: `answered ${seen}` });
        logger.info('answered', { seen, answer: String(answer) });
        return `${String(answer)} ${seen}`;
      } finally {
        running.now -= 1;
      }
    },
  });

async function openCrowd() {
  const issuer = await tokenIssuer(RESOURCE);
  const running = { now: 0, most: 0 };
  const log: string[] = [];
  const write = (...entry: unknown[]): void => void log.push(JSON.stringify(entry));
  const logger: Logger = { debug: write, info: write, warn: write, error: write };
  const registry = new ToolRegistry({ logger }).register(everything(running));
  const mcp: McpToolServer = createMcpServer(registry, {
    oauth: { resource: RESOURCE, issuer: issuer.issuer, verify: jwks(issuer.keys) },
    sessions: { max: 2 * TENANTS },
    onError: (error) => write(String(error)),
    scope: ({ authInfo }) => {
      const tenant = String(authInfo?.extra?.tenant);
      return { owner: { tenant }, data: { tenant } };
    },
  });
  // All connect at the same time, which may exceed the default timeouts on a busy machine.
  const http = disableTimeouts(createServer({ headersTimeout: 0, requestTimeout: 0 }, mcp.node));
  http.listen({ port: 0, host: '127.0.0.1', backlog: 4 * TENANTS });
  await once(http, 'listening');
  closing.push(
    () => mcp.close(),
    async () => {
      http.closeAllConnections();
      http.close();
      await once(http, 'close');
    },
  );
  const url = new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`);
  const tokenOf = (tenant: number) => {
    const canary = canaryOf(tenant);
    const claims = { sub: `${canary}sub`, scope: `${canary}scope`, others: { tenant: canary } };
    return issuer.issue({ ...claims, expiresIn: 3_600 });
  };
  return { url, running, log, tokenOf };
}

/** Everything that a tenant has received. */
type Received = unknown[];

/** Equal for all tenants: a server that only uses ids would mix them up. */
const SAME_ID = 1;
const _meta = { progressToken: 'same' };

async function playModern(sender: Sender, canary: string, received: Received): Promise<WireMessage> {
  const call = { name: 'everything', arguments: { mine: `${canary}argument` }, _meta };
  let last: WireMessage = {};
  const send = async (more: object): Promise<void> => {
    const response = await ask(sender, 'tools/call', { ...call, ...more }, { id: SAME_ID });
    received.push([...response.headers]);
    for await (const message of messagesOf(response)) {
      received.push(message);
      last = message;
    }
  };
  await send({});
  const { inputRequests = {}, requestState } = last.result ?? {};
  const content = { answer: `${canary}answer` };
  const [key = ''] = Object.keys(inputRequests);
  await send({ requestState, inputResponses: { [key]: { action: 'accept', content } } });
  return last;
}

async function playSession(given: Sender, canary: string, received: Received): Promise<WireMessage> {
  const session = await beginSession(given);
  const sender = { ...given, session };
  const list = await post(sender, { jsonrpc: '2.0', id: SAME_ID, method: 'tools/list' });
  received.push(await list.text());
  const args = { mine: `${canary}argument` };
  const response = await callIn(sender, 'everything', args, { id: SAME_ID, _meta });
  received.push([...response.headers]);
  let last: WireMessage = {};
  for await (const message of messagesOf(response)) {
    received.push(message);
    last = message;
    if (message.method !== 'elicitation/create') continue;
    const result = { action: 'accept', content: { answer: `${canary}answer` } };
    await (await post(sender, { jsonrpc: '2.0', id: message.id, result })).text();
  }
  return last;
}

test(`each of ${TENANTS} concurrent tenants receives only its own data, and log lines never mix tenants`, async () => {
  const { url, running, log, tokenOf } = await openCrowd();
  const tokens = await Promise.all(Array.from({ length: TENANTS }, (_, tenant) => tokenOf(tenant)));
  const leaks: string[] = [];
  let answered = 0;
  await Promise.all(
    tokens.map(async (token, tenant) => {
      const canary = canaryOf(tenant);
      const received: Received = [];
      const play = tenant % 2 === 0 ? playModern : playSession;
      const { result } = await play({ url, token }, canary, received);
      const seen = { mine: `${canary}argument`, owner: { tenant: canary }, scopes: [`${canary}scope`] };
      const whole = JSON.stringify({ ...seen, tenant: canary, sub: `${canary}sub` });
      if (result?.content?.[0]?.text === `${canary}answer ${whole}`) answered += 1;
      const text = JSON.stringify(received);
      // Progress, question and result have arrived, with the data of this tenant only.
      if (!text.includes('asking {') || !text.includes('Who are you'))
        leaks.push(`${canary} misses something: ${text.slice(0, 500)}`);
      for (const [other] of text.matchAll(CANARY))
        if (other !== canary) leaks.push(`${other} reached ${canary}`);
      if (text.includes(token)) leaks.push(`the token of ${canary}`);
    }),
  );
  expect(leaks).toEqual([]);
  expect(answered).toBe(TENANTS);
  expect(running.most).toBeGreaterThan(1);
  const signatures = tokens.map((token) => token.slice(token.lastIndexOf('.')));
  for (const line of log) {
    expect(new Set(line.match(CANARY)).size).toBeLessThanOrEqual(1);
    if (line.includes('eyJ')) expect(signatures.some((signature) => line.includes(signature))).toBe(false);
  }
  expect(log.filter((line) => line.includes('answered'))).toHaveLength(TENANTS);
}, 600_000);
