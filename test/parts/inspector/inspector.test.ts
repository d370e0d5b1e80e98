import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request as httpRequest } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  type Budget,
  Conversation,
  Conversations,
  defineTool,
  resumeToolLoop,
  runToolLoop,
  ToolRegistry,
  type Usage,
} from 'toolwright';
import { createInspector, type Inspector, type InspectorOptions } from 'toolwright/inspector';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { shop } from './shop.js';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

interface Page {
  readonly inspector: Inspector;
  readonly url: string;
  get(path: string): Promise<Json>;
  post(path: string, body?: unknown): Promise<Json>;
}

/** The body of a response. */
interface Json {
  readonly code: number;
  readonly [key: string]: unknown;
}

async function open(tools: ToolRegistry, options: InspectorOptions = {}): Promise<Page> {
  const inspector = createInspector(tools, options);
  ends.push(() => inspector.close());
  const { url: address } = await inspector.listen();
  const url = address.replace(/#.*$/, '');
  const headers = { authorization: `Bearer ${inspector.token}`, 'content-type': 'application/json' };
  const ask = async (path: string, init: RequestInit) => {
    const response = await fetch(`${url}api/${path}`, { ...init, headers });
    return { code: response.status, ...((await response.json()) as object) } as unknown as Json;
  };
  return {
    ...{ inspector, url },
    get: (path) => ask(path, {}),
    post: (path, body = {}) => ask(path, { method: 'POST', body: JSON.stringify(body) }),
  };
}

/** A request with headers that `fetch` does not allow. */
function raw(url: string, headers: Readonly<Record<string, string>>, method = 'GET'): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on('error', reject).end(method === 'POST' ? '{}' : undefined);
  });
}

describe('access to an inspector', () => {
  test('createInspector responds only to requests with its token', async () => {
    const { url, inspector } = await open(shop());
    const statuses = ['', 'Bearer wrong', `Basic ${inspector.token}`, `Bearer ${inspector.token}`].map(
      (authorization) => raw(`${url}api/tools`, { authorization }),
    );
    expect(await Promise.all(statuses)).toEqual([401, 401, 401, 200]);
    expect((await fetch(url)).headers.get('content-security-policy')).toContain("default-src 'none'");
  });

  test('createInspector accepts only the exact token', async () => {
    const { url, inspector } = await open(shop());
    const { token } = inspector;
    const given = [
      token.slice(0, -1),
      token.slice(0, 8),
      `${token}x`,
      token.toUpperCase(),
      token.slice(1),
      'é',
    ];
    for (const text of given)
      expect([text, await raw(`${url}api/tools`, { authorization: `Bearer ${encodeURI(text)}` })]).toEqual([
        text,
        401,
      ]);
    // As long as the token; then as long in characters but not in bytes.
    expect(await raw(`${url}api/tools`, { authorization: `Bearer ${'x'.repeat(token.length)}` })).toBe(401);
    const chosen = createInspector(shop(), { token: 'é'.repeat(16) });
    ends.push(() => chosen.close());
    const asked = (text: string) =>
      chosen.fetch(
        new Request('http://localhost/api/tools', { headers: { authorization: `Bearer ${text}` } }),
      );
    expect((await asked('x'.repeat(16))).status).toBe(401);
    expect((await asked('x'.repeat(32))).status).toBe(401);
  });

  test('inspector.node refuses other host names over HTTP/2', async () => {
    const inspector = createInspector(shop());
    const server = createHttp2Server(inspector.node as never).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    ends.push(
      () => inspector.close(),
      () => server.close(),
      () => session.close(),
    );
    const from = async (authority: string) => {
      const headers = { ':path': '/api/tools', authorization: `Bearer ${inspector.token}` };
      const stream = session.request({ ...headers, ':authority': authority }).resume();
      const [answer] = await once(stream, 'response');
      return answer[':status'];
    };
    expect([await from('localhost'), await from('evil.example')]).toEqual([200, 403]);
  });

  test('inspector.node refuses requests from other machines, unless allowedHosts is given', async () => {
    const from = async (address: string, options: InspectorOptions = {}) => {
      const inspector = createInspector(shop(), options);
      const server = createServer(inspector.node).listen(0, '127.0.0.1');
      ends.push(
        () => inspector.close(),
        () => server.close(),
      );
      server.on('connection', (socket) => Object.defineProperty(socket, 'remoteAddress', { value: address }));
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const headers = { authorization: `Bearer ${inspector.token}`, connection: 'close' };
      return raw(`http://127.0.0.1:${port}/api/tools`, headers);
    };
    for (const address of [
      '192.0.2.7',
      '10.0.0.7',
      '::2',
      '2001:db8::1',
      '::ffff:10.0.0.7',
      '1127.0.0.1',
      '',
    ])
      expect([address, await from(address)]).toEqual([address, 403]);
    for (const address of ['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1'])
      expect([address, await from(address)]).toEqual([address, 200]);
    expect(await from('192.0.2.7', { allowedHosts: ['dev.example'] })).toBe(200);
  });

  test('createInspector accepts bodies of at most 4 MiB', async () => {
    const { url, inspector } = await open(shop());
    const headers = { authorization: `Bearer ${inspector.token}`, 'content-type': 'application/json' };
    const sent = async (bytes: number) => {
      const body = JSON.stringify({ text: '' });
      const filled = body.replace('""', `"${'x'.repeat(bytes - body.length)}"`);
      const response = await fetch(`${url}api/calls`, { method: 'POST', headers, body: filled });
      return { status: response.status, ...((await response.json()) as object) };
    };
    expect(await sent(4 * 2 ** 20)).toEqual({ status: 400, error: 'tool is missing' });
    expect(await sent(4 * 2 ** 20 + 1)).toEqual({
      status: 400,
      error: 'the body has more than 4194304 bytes',
    });
  });

  test.each(['tools/%ff', 'tools/%', 'runs/%E0%A4', 'calls/%c0%af'])('GET %s returns 400', async (path) => {
    const { get } = await open(shop());
    expect(await get(path)).toEqual({
      code: 400,
      error: expect.stringContaining('the path cannot be decoded'),
    });
  });

  test('a failing store or scope function returns 500, and an invalid request still returns 400', async () => {
    const fail = async () => {
      throw new Error('out of order');
    };
    const store = Object.assign(new MemoryRunStore(), { list: fail });
    const { get, post } = await open(shop(), { store, scope: fail });
    const failed = { code: 500, error: 'out of order' };
    expect(await get('runs')).toEqual(failed);
    expect(await get('pending')).toEqual(failed);
    expect(await post('answers', { runId: 'r1', answers: [] })).toEqual(failed);
    expect(await post('calls', { tool: 'find_orders', arguments: {} })).toEqual(failed);
    expect(await post('chats/one', { text: 'Hello' })).toEqual(failed);
    expect(await post('calls', { scope: 'Ada' })).toEqual({ code: 400, error: 'scope must be an object' });
  });

  test('createInspector refuses calls from pages of other origins, even with the token', async () => {
    const { url, inspector } = await open(shop());
    const token = { authorization: `Bearer ${inspector.token}`, 'content-type': 'application/json' };
    const own = new URL(url).origin;
    const from = (headers: Readonly<Record<string, string>>) =>
      raw(`${url}api/calls`, { ...token, ...headers }, 'POST');
    expect(await from({ origin: 'http://evil.example' })).toBe(403);
    expect(await from({ origin: 'null' })).toBe(403);
    expect(await from({ origin: 'http://localhost:1' })).toBe(403);
    expect(await from({ 'sec-fetch-site': 'cross-site' })).toBe(403);
    expect(await from({ 'sec-fetch-site': 'same-site' })).toBe(403);
    expect(await from({ origin: own, 'sec-fetch-site': 'same-site' })).toBe(403);
    expect(await from({ origin: own, 'content-type': 'text/plain' })).toBe(415);
    expect(await from({ origin: own, 'sec-fetch-site': 'same-origin' })).toBe(400);
  });

  test('createInspector refuses requests with other host names, unless they are allowed', async () => {
    const { url, inspector } = await open(shop());
    const as = (host: string) => raw(`${url}api/tools`, { host, authorization: `Bearer ${inspector.token}` });
    expect(await as('evil.example')).toBe(403);
    expect(await as('127.0.0.1.evil.example')).toBe(403);
    expect(await as('localhost')).toBe(200);
    const other = await open(shop(), { allowedHosts: ['dev.example:8080'] });
    const allowed = { host: 'dev.example:8080', authorization: `Bearer ${other.inspector.token}` };
    expect(await raw(`${other.url}api/tools`, allowed)).toBe(200);
  });

  test.each(['production', 'staging', 'Development', '', undefined])(
    'createInspector throws if NODE_ENV is %s, unless it is allowed',
    (place) => {
      const { NODE_ENV } = process.env;
      if (place === undefined) delete process.env.NODE_ENV;
      else process.env.NODE_ENV = place;
      try {
        expect(() => createInspector(shop())).toThrow(`NODE_ENV is ${place || 'not set'}`);
        expect(() => createInspector(shop(), { allowInProduction: false })).toThrow('NODE_ENV');
        const allowed = createInspector(shop(), { allowInProduction: true });
        ends.push(() => allowed.close());
        process.env.NODE_ENV = 'development';
        const inDevelopment = createInspector(shop());
        ends.push(() => inDevelopment.close());
      } finally {
        process.env.NODE_ENV = NODE_ENV;
      }
    },
  );

  test('createInspector refuses unknown options and short tokens', () => {
    expect(() => createInspector(shop(), { port: 1 } as never)).toThrow('inspector.listen({ port })');
    expect(() => createInspector(shop(), { token: 'short' })).toThrow('token');
    expect(() => createInspector({} as never)).toThrow('ToolRegistry');
  });

  test('inspector.close stops watching, so that another inspector can start', async () => {
    const tools = shop();
    const { inspector } = await open(tools);
    expect(() => createInspector(tools)).toThrow('already has an inspector');
    await inspector.close();
    await open(tools);
  });
});

describe('tools in an inspector', () => {
  test('GET tools lists them with their sizes, whose shares add up to 1', async () => {
    const { get } = await open(shop());
    const { tools } = (await get('tools')) as unknown as {
      tools: { name: string; share: number; marks: string[] }[];
    };
    expect(tools.map(({ name }) => name)).toEqual([
      'find_orders',
      'place_order',
      'book',
      'plant',
      'secret',
      'hostile',
    ]);
    expect(tools.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
    expect(tools.map(({ marks }) => marks.join())).toEqual(['reads only', 'needs approval', '', '', '', '']);
  });

  test('GET tools/name returns the origin of the tool and what each API receives', async () => {
    const { get } = await open(shop());
    const card = await get('tools/find_orders');
    expect(card).toMatchObject({
      method: 'ShopTools.findOrders',
      origins: ['@Param', 'metadata'],
      surroundings: [{ kind: 'policy', name: 'onlyForUsers' }],
      strict: { isStrict: true },
    });
    const surfaces = card.surfaces as unknown as { name: string; sent?: object; problem?: string }[];
    expect(surfaces.map(({ name, problem }) => [name, problem])).toEqual([
      ['OpenAI, Chat Completions', undefined],
      ['OpenAI, Responses', undefined],
      ['OpenAI, strict', undefined],
      ['MCP', undefined],
      ['AI SDK', undefined],
    ]);
    expect(surfaces[3]?.sent).toMatchObject({ name: 'find_orders', annotations: { readOnlyHint: true } });
    expect((await get('tools/constructor')).code).toBe(404);
  });

  test('GET tools/name returns the hooks around its calls, and when they run', async () => {
    const hooks = [
      { name: 'stamp', afterCall: () => undefined, beforeCall: () => undefined },
      { name: 'requests only', beforeRequest: () => undefined },
      { onError: () => undefined },
    ];
    const tools = new ToolRegistry({ hooks }).register(
      defineTool({ name: 'greet', description: 'Greet', execute: () => 'Hi' }),
    );
    const { get } = await open(tools);
    expect((await get('tools/greet')).surroundings).toEqual([
      { kind: 'hook', name: 'stamp (beforeCall, afterCall)' },
      { kind: 'hook', name: 'hook 3 (onError)' },
    ]);
  });
});

describe('warnings about tools', () => {
  const warningsOf = async (...tools: readonly object[]) => {
    const registry = new ToolRegistry().register(...(tools as never[]));
    const { tools: listed, warnings } = (await (await open(registry)).get('tools')) as unknown as {
      tools: { warnings: string[] }[];
      warnings: string[];
    };
    return { list: warnings, first: listed[0]?.warnings };
  };
  const tool = (name: string, properties: object, description = 'Does it') => ({
    ...{ name, description, execute: () => 'done' },
    parameters: { type: 'object', properties },
  });
  const described = { description: 'A thing' };

  test('a tool with descriptions and closed arguments has no warnings', async () => {
    const properties = {
      name: { type: 'string', ...described },
      at: { $ref: '#/$defs/at' },
      counts: { type: 'object', additionalProperties: { type: 'number' }, ...described },
    };
    const given = tool('one', properties);
    const $defs = { at: { type: 'object', properties: { x: { type: 'number' } }, ...described } };
    const { first, list } = await warningsOf({ ...given, parameters: { ...given.parameters, $defs } });
    expect({ first, list }).toEqual({ first: [], list: [] });
  });

  test('open arguments, missing descriptions and ineffective keywords are reported', async () => {
    const properties = {
      ...{ any: { ...described }, keys: { type: 'object', ...described } },
      list: { type: 'array', items: { type: 'object', additionalProperties: true }, ...described },
      size: { type: 'integer' },
      day: { type: 'string', format: 'dat', ...described },
    };
    expect((await warningsOf(tool('one', properties))).first).toEqual([
      'Without a description: size.',
      'Any value or any keys are allowed, so models have to guess: any, keys, list[].',
      'parameters.properties.day.format is dat, which is not checked.',
    ]);
  });

  test('exceeded limits of a provider are reported', async () => {
    const deep = (levels: number): object =>
      levels === 0
        ? { type: 'string', ...described }
        : { type: 'object', properties: { in: deep(levels - 1) }, ...described };
    const first = tool('one', { in: deep(10) }, 'x'.repeat(1_025));
    const others = Array.from({ length: 128 }, (_, index) => tool(`other_${index}`, {}));
    const { first: told, list } = await warningsOf(first, ...others);
    expect(told).toEqual([
      'The description has 1025 characters; OpenAI accepts 1024.',
      'The schema is nested 11 levels deep; OpenAI accepts 10 in strict mode.',
    ]);
    expect(list).toEqual(['There are 129 tools; OpenAI accepts 128 in a request.']);
    const fine = tool('one', { in: deep(9) }, 'x'.repeat(1_024));
    expect(await warningsOf(fine, ...others.slice(1))).toEqual({ list: [], first: [] });
  });
});

describe('calls from the page', () => {
  test('POST call-texts returns code for a call without making it', async () => {
    const setup = "import { tools } from '../tools.js';";
    const { post, get } = await open(shop(), { tests: { folder: 'test', setup } });
    const texts = await post('call-texts', { tool: 'find_orders', arguments: { customerId: "o'neill" } });
    expect(texts.curl).toContain(`'{"tool":"find_orders","arguments":{"customerId":"o'\\''neill"}}'`);
    expect(texts.script).toBe(
      `${setup}\n\nconst result = await tools.execute("find_orders", {\n  "customerId": "o'neill"\n});\nconsole.log(result.forLLM);`,
    );
    expect((await get('calls')).calls).toEqual([]);
  });

  test('POST calls makes a call through the pipeline, in the chosen scope', async () => {
    const { post, get } = await open(shop());
    const call = await post('calls', {
      tool: 'find_orders',
      arguments: '{"customerId": "cus_1", "limit": "5", "extra": 1,}',
      scope: { data: { user: 'ann' } },
    });
    expect(call).toMatchObject({ status: 'success', removed: ['extra'], checked: { limit: 5 } });
    expect(JSON.parse(call.forLLM as string)).toEqual({ customerId: 'cus_1', limit: 5, user: 'ann' });
    expect(call.repairs).toContain('coerced limit');
    const steps = call.steps as unknown as { step: string }[];
    expect(steps.map(({ step }) => step)).toEqual(['read', 'find', 'check', 'allow', 'run', 'write']);
    const { texts } = (await get(`calls/${call.key as string}`)) as unknown as {
      texts: Record<string, string>;
    };
    expect(texts.curl).toContain('"tool":"find_orders"');
    expect(texts.curl).not.toContain((await open(shop())).inspector.token);
  });

  test('POST calls passes the chosen data to the policy', async () => {
    const { post } = await open(shop());
    expect(await post('calls', { tool: 'secret', arguments: {} })).toMatchObject({ status: 'refused' });
    const scope = { data: { user: 'admin' } };
    expect(await post('calls', { tool: 'secret', arguments: {}, scope })).toMatchObject({ forLLM: 'told' });
  });

  test('POST call-answers approves, also with edited arguments, refuses, and answers questions', async () => {
    const { post } = await open(shop());
    const order = { tool: 'place_order', arguments: { sku: 'a', amount: 1 } };
    const waiting = await post('calls', order);
    expect(waiting).toMatchObject({ status: 'suspended', canAnswer: true, waits: [{ kind: 'approval' }] });
    expect(await post(`call-answers/${waiting.key as string}`, { approved: true })).toMatchObject({
      status: 'success',
      forLLM: 'Placed 1 of a',
    });
    const second = await post('calls', order);
    const edited = { approved: true, arguments: { sku: 'a', amount: 7 } };
    expect(await post(`call-answers/${second.key as string}`, edited)).toMatchObject({
      forLLM: 'Placed 7 of a',
    });
    const third = await post('calls', order);
    expect(
      await post(`call-answers/${third.key as string}`, { approved: false, reason: 'no' }),
    ).toMatchObject({
      status: 'refused',
    });
    const asked = await post('calls', { tool: 'book', arguments: { city: 'Rome' } });
    expect(asked).toMatchObject({ waits: [{ kind: 'question', message: 'Rome, sure?' }] });
    expect(await post(`call-answers/${asked.key as string}`, { value: true })).toMatchObject({
      forLLM: 'Booked Rome',
    });
    expect(await post(`call-answers/${asked.key as string}`, { value: true })).toMatchObject({ code: 400 });
  });

  test('GET calls includes the calls of the application', async () => {
    const tools = shop();
    const { get } = await open(tools);
    await tools.execute('find_orders', { customerId: 'cus_2' });
    expect((await get('calls')).calls).toMatchObject([
      { tool: 'find_orders', status: 'success', isTrial: false },
    ]);
  });

  test('breakpoints hold the calls of a tool until the page releases or refuses them', async () => {
    const tools = shop();
    const { get, post } = await open(tools);
    await post('breakpoints/find_orders', { state: 'on' });
    const calls = [1, 2].map((limit) => tools.execute('find_orders', { customerId: 'c', limit }));
    const { held } = (await get('held')) as unknown as { held: { key: string }[] };
    expect(held).toMatchObject([{ tool: 'find_orders' }, { tool: 'find_orders' }]);
    await post(`held/${held[0]?.key}`, { how: 'go' });
    await post(`held/${held[1]?.key}`, { how: 'refuse', reason: 'not today' });
    const [gone, refused] = await Promise.all(calls);
    expect(JSON.parse(gone?.forLLM ?? '')).toMatchObject({ limit: 1 });
    expect(refused?.forLLM).toContain('not today');
    expect(await post('held/99', { how: 'go' })).toMatchObject({ code: 404 });
    const third = tools.execute('find_orders', { customerId: 'c' });
    await post('breakpoints/find_orders', { state: 'off' });
    expect((await third).isError).toBe(false);
  });

  test('a held call ends when its run is aborted, and continues when the inspector closes', async () => {
    const tools = shop();
    const { get, post, inspector } = await open(tools);
    await post('breakpoints/find_orders', { state: 'on' });
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'find_orders', arguments: { customerId: 'c' } }] },
    ]);
    const aborted = new AbortController();
    const config = { provider, model: 'm', tools, signal: aborted.signal, toolTimeoutMs: 1 };
    const run = runToolLoop(config, [{ role: 'user', content: 'Orders?' }]);
    await settled(async () => ((await get('held')).held as unknown[]).length === 1);
    aborted.abort();
    expect(await run).toMatchObject({ status: 'aborted', toolCalls: [{ status: 'aborted' }] });
    expect((await get('held')).held).toEqual([]);
    const held = tools.execute('find_orders', { customerId: 'c' });
    await inspector.close();
    expect((await held).isError).toBe(false);
  });
});

const USER = [{ role: 'user', content: 'Two of a, please' }] as const;

function orderScript() {
  return new ScriptedProvider([
    { toolCalls: [{ name: 'place_order', arguments: { sku: 'a', amount: 2 } }] },
    { content: 'Ordered.', usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } },
  ]);
}

describe('runs', () => {
  test('a run of the application is shown with its spans, and can be answered from the page', async () => {
    const tools = shop();
    const { get, post } = await open(tools);
    const run = await runToolLoop({ provider: orderScript(), model: 'm', tools }, USER);
    const runId = run.state?.runId ?? '';
    expect((await get('runs')).runs).toMatchObject([
      { runId, status: 'suspended', place: 'process', calls: 1 },
    ]);
    const { runs } = (await get('pending')) as unknown as { runs: { pending: { id: string }[] }[] };
    expect(runs).toMatchObject([{ runId, place: 'process', goesOn: ['here'] }]);
    const answers = [{ id: runs[0]?.pending[0]?.id, approved: true }];
    expect(await post('answers', { runId, answers: [{ id: 'other', approved: true }] })).toMatchObject({
      code: 400,
    });
    expect(await post('answers', { runId, answers })).toMatchObject({ code: 200 });
    await settled(async () => (await get(`runs/${runId}`)).status === 'completed');
    const seen = await get(`runs/${runId}`);
    expect(seen).toMatchObject({ content: 'Ordered.', usage: { totalTokens: 15 } });
    const spans = seen.spans as unknown as { kind: string; begin: number; end: number }[];
    expect(spans.map(({ kind }) => kind)).toEqual(['request', 'call', 'wait', 'call', 'request']);
    expect(spans.every(({ begin, end }) => end >= begin)).toBe(true);
    expect((await get('pending')).runs).toEqual([]);
  });

  test('the cost of a run comes from its budget or list prices, and is left out if it is unknown', async () => {
    const tools = shop();
    const { get } = await open(tools);
    const used = { inputTokens: 1_000_000, outputTokens: 100_000, totalTokens: 1_100_000 };
    const costOf = async (model: string, more: { readonly budget?: Budget } = {}, usage: Usage = used) => {
      const provider = new ScriptedProvider([{ content: 'Hello', usage }]);
      await runToolLoop({ provider, model, tools, ...more }, USER);
      const [{ runId }] = (await get('runs')).runs as [{ runId: string }];
      const { cost, isEstimate } = await get(`runs/${runId}`);
      return { cost, isEstimate };
    };
    expect(await costOf('gpt-5-2025-08-07')).toEqual({ cost: 2.25, isEstimate: true });
    expect(await costOf('a-model')).toEqual({});
    const none = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };
    expect(await costOf('gpt-5', {}, none)).toEqual({});
    const budget = { cost: 100, prices: { 'a-model': { input: 3, output: 10, maxOutputTokens: 10 } } };
    expect(await costOf('a-model', { budget })).toEqual({ cost: 4 });
  });

  test('stored runs of other processes are shown and can be answered, and continue here or in a worker', async () => {
    const store = new MemoryRunStore();
    const elsewhere = shop();
    const config = {
      provider: orderScript(),
      model: 'm',
      tools: elsewhere,
      store,
      checkpoint: 'step',
    } as const;
    const owner = { user: 'u1' };
    const run = await runToolLoop(config, USER, { owner });
    const provider = new ScriptedProvider([{ content: 'Ordered.' }]);
    const { get, post } = await open(shop(), { store, provider, model: 'm' });
    const runId = run.state?.runId ?? '';
    const { runs } = (await get('pending')) as unknown as { runs: { pending: { id: string }[] }[] };
    expect(runs).toMatchObject([{ runId, owner, place: 'store', goesOn: ['here', 'worker'] }]);
    expect(await get(`runs/${runId}`)).toMatchObject({
      ...{ status: 'suspended', isStored: true, title: 'Two of a, please' },
      spans: [
        { kind: 'request', iteration: 1 },
        { kind: 'wait', tool: 'place_order', arguments: { sku: 'a', amount: 2 } },
      ],
    });
    const answers = [{ id: runs[0]?.pending[0]?.id, approved: true }];
    await post('answers', { runId, answers, goesOn: 'here' });
    await settled(async () => (await get(`runs/${runId}`)).status === 'completed');
    expect(provider.requests).toHaveLength(1);

    const second = await runToolLoop({ ...config, provider: orderScript() }, USER, { owner });
    const other = second.state?.runId ?? '';
    const waits = (await get('pending')) as unknown as { runs: { pending: { id: string }[] }[] };
    const given = [{ id: waits.runs[0]?.pending[0]?.id, approved: true }];
    expect(await post('answers', { runId: other, answers: given, goesOn: 'worker' })).toMatchObject({
      code: 200,
    });
    expect(await store.read(other)).toMatchObject({ status: 'running' });
  });

  test('a stored run contains its requests with their texts, each followed by its calls', async () => {
    const store = new MemoryRunStore();
    const provider = new ScriptedProvider([
      { content: 'I look.', toolCalls: [{ name: 'find_orders', arguments: { customerId: 'c' } }] },
      { content: 'None.' },
    ]);
    const history = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hello!' },
      { role: 'user', content: 'Any orders?' },
    ] as const;
    const config = { provider, model: 'm', tools: shop(), store, checkpoint: 'step' } as const;
    await runToolLoop({ ...config, runId: 'r1' }, history);
    const { get } = await open(shop(), { store });
    expect(await get('runs/r1')).toMatchObject({
      title: 'Any orders?',
      spans: [
        { kind: 'request', iteration: 1, text: 'I look.' },
        { kind: 'call', tool: 'find_orders', status: 'success', checked: { customerId: 'c' } },
        { kind: 'request', iteration: 2, text: 'None.' },
      ],
    });
  });
});

describe('runs of conversations', () => {
  test('an open turn can only be answered through its conversation', async () => {
    const store = new MemoryRunStore();
    const tools = shop();
    const config = { provider: orderScript(), model: 'm', tools };
    const conversations = new Conversations({ store, config });
    ends.push(() => conversations.close());
    const { get, post } = await open(tools, { store, provider: orderScript(), model: 'm' });
    await conversations.prompt('c1', 'Two of a');
    await settled(async () => (await conversations.snapshot('c1'))?.status === 'suspended');
    type Waiting = { runs: { runId: string; goesOn: string[]; pending: { id: string }[] }[] };
    const { runs } = (await get('pending')) as unknown as Waiting;
    expect(runs).toMatchObject([{ runId: 'c1.1', goesOn: ['conversation'] }]);
    const answers = [{ id: runs[0]?.pending[0]?.id, approved: true }];
    expect(await post('answers', { runId: 'c1.1', answers, goesOn: 'here' })).toMatchObject({ code: 400 });
    await post('answers', { runId: 'c1.1', answers, goesOn: 'conversation' });
    await settled(async () => (await conversations.snapshot('c1'))?.status === 'idle');
    expect((await conversations.snapshot('c1'))?.messages.at(-1)).toMatchObject({ content: 'Ordered.' });

    const alone = new Conversation({ ...config, provider: orderScript() });
    await alone.prompt('Two of a');
    const waiting = (await get('pending')) as unknown as Waiting;
    expect(waiting.runs).toMatchObject([{ place: 'process', goesOn: [] }]);
    await alone.answer(alone.pending.map(({ id }) => ({ id, approved: true })));
    expect((await get('pending')).runs).toEqual([]);
  });
});

describe('two answers to a conversation', () => {
  test('if both answer the same question, one is accepted and the other is refused with the reason', async () => {
    const store = new MemoryRunStore();
    const tools = shop();
    const conversations = new Conversations({
      store,
      config: { provider: orderScript(), model: 'm', tools },
    });
    await conversations.prompt('c1', 'Two of a');
    const { pending = [] } = (await conversations.idle('c1')) ?? {};
    // From here on, answers stay in the inbox.
    await conversations.close();
    const { post } = await open(tools, { store });
    const id = pending[0]?.id;
    const give = (approved: boolean) =>
      post('answers', { runId: 'c1.1', answers: [{ id, approved }], goesOn: 'conversation' });
    const told = {
      code: 400,
      error: `c1.1 is not waiting for an answer to '${id}': it was already answered, by {"inspector":true}`,
    };
    const said = await Promise.all([give(true), give(false)]);
    expect(said.toSorted((one, other) => one.code - other.code)).toEqual([{ code: 200 }, told]);
    expect(await give(true)).toEqual(told);
    expect((await conversations.snapshot('c1'))?.inbox).toMatchObject([{ key: `answer 1 to ${id}` }]);
  });
});

describe('an inspector in the application’s server', () => {
  test('inspector.fetch and inspector.node serve only their path', async () => {
    const { inspector } = await open(shop(), { path: '/tools/inspector' });
    const at = (path: string) => inspector.fetch(new Request(`http://localhost${path}`));
    const moved = await at('/tools/inspector');
    expect([moved.status, moved.headers.get('location')]).toEqual([308, '/tools/inspector/']);
    expect(await (await at('/tools/inspector/')).text()).toContain('page.js');
    expect((await at('/page.js')).status).toBe(404);
    expect((await at('/tools/inspector/../../package.json')).status).toBe(404);
    const server = createServer(inspector.node).listen(0, '127.0.0.1');
    ends.push(() => server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    expect((await fetch(`http://127.0.0.1:${port}/tools/inspector/page.css`)).status).toBe(200);
  });
});

describe('chats on the page', () => {
  test('POST chats sends a text to the offline model or to the configured model', async () => {
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'place_order', arguments: { sku: 'b', amount: 3 } }] },
      { content: 'Three of b.' },
    ]);
    const { get, post } = await open(shop(), { provider, model: 'm', systemPrompt: 'Be brief.' });
    await post('chats/one', { text: 'find orders of customer cus_1', with: 'offline' });
    await settled(async () => (await get('chats/one')).status === 'completed');
    const { messages } = (await get('chats/one')) as unknown as { messages: { role: string }[] };
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);

    await post('chats/two', { text: 'Three of b', with: 'configured' });
    await settled(async () => (await get('chats/two')).status === 'suspended');
    expect(await post('chats/two', { text: 'Hello?', with: 'configured' })).toMatchObject({ code: 400 });
    const { runs } = (await get('pending')) as unknown as {
      runs: { runId: string; pending: { id: string }[] }[];
    };
    const answers = [{ id: runs[0]?.pending[0]?.id, approved: true }];
    await post('answers', { runId: runs[0]?.runId, answers });
    await settled(async () => (await get('chats/two')).status === 'completed');
    expect(provider.requests[0]?.messages[0]).toEqual({ role: 'system', content: 'Be brief.' });
  });

  test('POST chat-retries removes the last turn and sends the same message again', async () => {
    const provider = new ScriptedProvider([{ content: 'One.' }, { content: 'Two.' }, { content: 'Three.' }]);
    const { get, post } = await open(shop(), { provider, model: 'm' });
    const chat = async () => {
      await settled(async () => (await get('chats/one')).status === 'completed');
      return get('chats/one');
    };
    expect(await post('chat-retries/one', { with: 'configured' })).toMatchObject({
      code: 400,
      error: 'there is nothing to retry',
    });
    await post('chats/one', { text: 'First', with: 'configured' });
    const { turns } = await chat();
    await post('chats/one', { text: 'Second', with: 'configured' });
    await chat();
    await post('chat-retries/one', { with: 'configured' });
    const again = await chat();
    expect(again.messages).toMatchObject([
      { role: 'user', content: 'First' },
      { role: 'assistant', content: 'One.' },
      { role: 'user', content: 'Second' },
      { role: 'assistant', content: 'Three.' },
    ]);
    expect(again.turns).toMatchObject([...(turns as object[]), { asked: 'Second', from: 2 }]);
    expect(provider.requests.at(-1)?.messages).toHaveLength(3);
  });

  test('POST chat-retries refuses a suspended chat', async () => {
    const { get, post } = await open(shop(), { provider: orderScript(), model: 'm' });
    await post('chats/one', { text: 'Order', with: 'configured' });
    await settled(async () => (await get('chats/one')).status === 'suspended');
    expect(await post('chat-retries/one', { with: 'configured' })).toMatchObject({ code: 400 });
    expect(await get('chats/one')).toMatchObject({ status: 'suspended', turns: [{ asked: 'Order' }] });
  });

  test('POST chat-aborts aborts a suspended chat', async () => {
    const { get, post } = await open(shop(), { provider: orderScript(), model: 'm' });
    await post('chats/one', { text: 'Order', with: 'configured' });
    await settled(async () => (await get('chats/one')).status === 'suspended');
    await post('chat-aborts/one');
    expect(await get('chats/one')).toMatchObject({ status: 'aborted', messages: [] });
    expect((await get('pending')).runs).toEqual([]);
  });
});

describe('replays and tests', () => {
  test('a recording is available in later processes, and its replay shows the effect of a code change', async () => {
    const recordings = mkdtempSync(join(tmpdir(), 'recordings-'));
    ends.push(() => rmSync(recordings, { recursive: true }));
    const tools = shop();
    const first = await open(tools, { recordings });
    const config = { provider: orderScript(), model: 'm', tools };
    const { state, pending = [] } = await runToolLoop(config, USER);
    await resumeToolLoop(config, state, [{ id: pending[0]?.id ?? '', approved: true }]);
    const { id } = await first.post('recordings', { runId: state?.runId });
    const same = (await first.post('replays', { recording: id })) as unknown as {
      before: object;
      after: object;
    };
    expect(same.after).toEqual(same.before);
    await first.inspector.close();

    const changed = new ToolRegistry().register(...shop().tools());
    const { name, description, parameters } = changed.offered('place_order') ?? never();
    changed.register({ name, description, parameters, approval: true, execute: () => 'Changed' } as never);
    const second = await open(changed, { recordings });
    const replayed = await second.post('replays', { recording: id });
    expect(replayed).toMatchObject({
      before: { status: 'completed', calls: [{ forLLM: 'Placed 2 of a' }] },
      after: { status: 'completed', calls: [{ forLLM: 'Changed' }] },
    });
  });

  test('POST tests writes a new test without overwriting another', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tests-'));
    ends.push(() => rmSync(folder, { recursive: true }));
    const setup = "import { tools } from '../tools.js';";
    const { post } = await open(shop(), { tests: { folder, setup } });
    const call = await post('calls', { tool: 'find_orders', arguments: { customerId: 'c' } });
    const first = await post('tests', { key: call.key, save: true });
    const second = await post('tests', { key: call.key, save: true });
    expect(first.path).not.toBe(second.path);
    expect(readFileSync(first.path as string, 'utf8')).toContain(setup);
    expect(readFileSync(first.path as string, 'utf8')).toContain('new ScriptedProvider(');
  });
});

/** Resolves when the condition holds. */
async function settled(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10));
}

function never(): never {
  throw new Error('this is not reached');
}
