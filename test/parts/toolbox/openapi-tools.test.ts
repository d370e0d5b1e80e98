import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type ToolRegistry as Registry, ToolDeclarationError, ToolRegistry } from 'toolwright';
import { type OpenApiOptions, toolsFromOpenApi } from 'toolwright/toolbox/openapi';
import { Permissions } from 'toolwright/toolbox/permissions';

interface Heard {
  readonly method?: string;
  readonly url?: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

let server: string;
let heard: Heard[];
let close: () => void;
let answer: { status: number; body: string; type?: string; location?: string };

beforeAll(async () => {
  const http = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { method, url, headers } = request;
    heard.push({ method, url, headers, body });
    if (answer.location !== undefined) response.setHeader('location', answer.location);
    response.writeHead(answer.status, { 'content-type': answer.type ?? 'application/json' }).end(answer.body);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => http.once('listening', resolve));
  server = `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1`;
  close = () => http.close();
});
afterAll(() => close());
beforeEach(() => {
  heard = [];
  answer = { status: 200, body: '{"ok":true}' };
});

const text = { type: 'string' };
const id = { name: 'id', in: 'path', required: true, schema: { type: 'integer' } };

/** A document with these paths. */
function documentOf(paths: object, others: object = {}) {
  return { openapi: '3.1.0', info: { title: 'Shop', version: '1' }, paths, ...others };
}

function registryOf(paths: object, others: object = {}, options: OpenApiOptions = {}): Registry {
  return new ToolRegistry().register(...toolsFromOpenApi(documentOf(paths, others), { server, ...options }));
}

/** The operation `call` of one path, and the request that a call of it sends. */
async function requestOf(operation: object, args: object, path = '/orders'): Promise<Heard> {
  const registry = registryOf({ [path]: { get: { operationId: 'call', ...operation } } });
  const { isError, forLLM } = await registry.execute('call', args);
  expect([isError, forLLM]).toEqual([false, '{"ok":true}']);
  return heard[0] as Heard;
}

function faultsOf(document: unknown, options: OpenApiOptions = {}): readonly string[] {
  try {
    toolsFromOpenApi(document, { server, ...options });
  } catch (error) {
    if (error instanceof ToolDeclarationError)
      return error.faults.map(({ where, problem }) => `${where}: ${problem}`);
    throw error;
  }
  return [];
}

describe('tool definitions of toolsFromOpenApi', () => {
  test('operations become tools with names, descriptions, schemas and annotations of their methods', () => {
    const Order = {
      type: 'object',
      properties: { item: text, next: { $ref: '#/components/schemas/Order' } },
    };
    const tools = toolsFromOpenApi(
      documentOf(
        {
          '/orders': {
            get: { operationId: 'listOrders', summary: 'List orders', description: 'Newest first' },
            post: {
              operationId: 'orders.create',
              requestBody: {
                required: true,
                content: { 'application/json': { schema: { $ref: '#/components/schemas/Order' } } },
              },
            },
          },
          '/orders/{id}': {
            parameters: [id],
            put: {
              operationId: 'replace',
              parameters: [{ name: 'id', in: 'header', schema: text, description: 'Of the sender' }],
            },
            delete: {},
          },
        },
        { components: { schemas: { Order } } },
      ),
      { server },
    );
    const shown = tools.map(({ name, description, parameters, annotations }) => ({
      name,
      description,
      parameters,
      annotations,
    }));
    expect(shown).toEqual([
      {
        name: 'listOrders',
        description: 'List orders\n\nNewest first',
        parameters: { type: 'object', properties: {}, required: [] },
        annotations: { title: 'List orders', readOnly: true, idempotent: true, openWorld: true },
      },
      {
        name: 'orders_create',
        description: 'POST /orders',
        parameters: {
          type: 'object',
          properties: { body: { $ref: '#/$defs/Order' } },
          required: ['body'],
          $defs: { Order: { type: 'object', properties: { item: text, next: { $ref: '#/$defs/Order' } } } },
        },
        annotations: { readOnly: false, destructive: false, idempotent: false, openWorld: true },
      },
      {
        name: 'replace',
        description: 'PUT /orders/{id}',
        parameters: {
          type: 'object',
          properties: {
            id: { type: 'integer' },
            header_id: { type: 'string', description: 'Of the sender' },
          },
          required: ['id'],
        },
        annotations: { readOnly: false, destructive: false, idempotent: true, openWorld: true },
      },
      {
        name: 'delete_orders_id',
        description: 'DELETE /orders/{id}',
        parameters: { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] },
        annotations: { readOnly: false, destructive: true, idempotent: true, openWorld: true },
      },
    ]);
  });

  test('schemas of OpenAPI 3.0 are converted to current JSON Schema without readOnly properties', async () => {
    const schema = {
      type: 'object',
      required: ['id', 'price'],
      properties: {
        id: { type: 'string', readOnly: true },
        price: { type: 'number', minimum: 0, exclusiveMinimum: true, example: 3 },
        size: { type: 'string', enum: ['s', 'l'], nullable: true },
        rest: { allOf: [{ type: 'object' }], nullable: true, 'x-internal': 1 },
      },
    };
    const [tool] = toolsFromOpenApi(
      {
        ...documentOf({
          '/o': { post: { operationId: 'o', requestBody: { content: { 'application/json': { schema } } } } },
        }),
        openapi: '3.0.3',
      },
      { server },
    );
    expect(tool?.parameters).toEqual({
      type: 'object',
      properties: {
        body: {
          type: 'object',
          required: ['price'],
          properties: {
            price: { type: 'number', exclusiveMinimum: 0 },
            size: { type: ['string', 'null'], enum: ['s', 'l', null] },
            rest: { anyOf: [{ allOf: [{ type: 'object' }] }, { type: 'null' }] },
          },
        },
      },
      required: [],
    });
  });

  test('include selects operations by id or function; deprecated ones are omitted by default', () => {
    const paths = {
      '/a': { get: { operationId: 'a', tags: ['x'] }, post: { operationId: 'b', deprecated: true } },
    };
    expect(registryOf(paths).list()).toEqual(['a']);
    expect(registryOf(paths, {}, { include: ['b'] }).list()).toEqual(['b']);
    const tagged = registryOf(paths, {}, { include: ({ tags }) => tags.includes('x'), prefix: 'shop' });
    expect(tagged.list()).toEqual(['shop_a']);
  });
});

describe('requests of toolsFromOpenApi', () => {
  const query = (name: string, others: object) => ({
    parameters: [{ name, in: 'query', schema: {}, ...others }],
  });

  test.each([
    [query('q', {}), { q: 'a b&c=d' }, '/v1/orders?q=a%20b%26c%3Dd'],
    [query('q', {}), { q: ['a', 'b'] }, '/v1/orders?q=a&q=b'],
    [query('q', { explode: false }), { q: ['a', 'b'] }, '/v1/orders?q=a%2Cb'],
    [query('q', { style: 'pipeDelimited', explode: false }), { q: ['a', 'b'] }, '/v1/orders?q=a%7Cb'],
    [
      query('q', { style: 'deepObject', explode: true }),
      { q: { a: 1, b: true } },
      '/v1/orders?q%5Ba%5D=1&q%5Bb%5D=true',
    ],
    [query('q', {}), { q: { a: 1, b: 2 } }, '/v1/orders?a=1&b=2'],
    [query('q', { allowReserved: true }), { q: 'a/b:c' }, '/v1/orders?q=a/b:c'],
    [
      { parameters: [{ name: 'q', in: 'query', content: { 'application/json': {} } }] },
      { q: { a: 1 } },
      '/v1/orders?q=%7B%22a%22%3A1%7D',
    ],
    [query('q', {}), {}, '/v1/orders'],
  ])('the query of %j is serialized from %j', async (operation, args, url) => {
    expect((await requestOf(operation, args)).url).toBe(url);
  });

  test.each([
    ['simple', false, [1, 2], '1,2'],
    ['simple', false, 'a/b?c#d', 'a%2Fb%3Fc%23d'],
    ['simple', true, { a: 1 }, 'a=1'],
    ['label', true, [1, 2], '.1.2'],
    ['matrix', true, [1, 2], ';id=1;id=2'],
    ['matrix', false, 5, ';id=5'],
  ])('a path in style %s with explode %j is serialized from %j', async (style, explode, value, part) => {
    const parameters = [{ name: 'id', in: 'path', required: true, schema: {}, style, explode }];
    expect((await requestOf({ parameters }, { id: value }, '/orders/{id}/x')).url).toBe(
      `/v1/orders/${part}/x`,
    );
  });

  test('headers and cookies cannot contain line breaks or further values', async () => {
    const parameters = [
      { name: 'X-Note', in: 'header', schema: text },
      { name: 'Authorization', in: 'header', schema: text },
      { name: 'session', in: 'cookie', schema: text },
    ];
    const { headers } = await requestOf({ parameters }, { 'X-Note': 'a\r\nx-evil: 1', session: 'a; b=c' });
    expect([headers['x-note'], headers['x-evil'], headers.cookie]).toEqual([
      'a x-evil: 1',
      undefined,
      'session=a%3B%20b%3Dc',
    ]);
  });

  test('no argument can leave its segment of the path', async () => {
    const registry = registryOf({
      '/orders/{id}/lines': { get: { operationId: 'call', parameters: [{ ...id, schema: text }] } },
    });
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string(),
          fc.constantFrom('..', '.', '%2e%2e', '../admin', '..\\admin', '//evil.test', '', '?x', '#'),
        ),
        async (given) => {
          heard = [];
          const { isError, forLLM } = await registry.execute('call', { id: given });
          if (isError) {
            expect(forLLM).toContain('part of a URL path');
            expect(heard).toEqual([]);
          } else expect(heard[0]?.url).toMatch(/^\/v1\/orders\/[^/?#]+\/lines$/);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('bodies are sent as JSON, form or text', async () => {
    const post = (type: string) => ({
      post: { operationId: 'call', requestBody: { required: true, content: { [type]: { schema: {} } } } },
    });
    const bodies: unknown[] = [];
    for (const [type, body] of [
      ['application/json', { a: [1] }],
      ['application/merge-patch+json', { a: null }],
      ['application/x-www-form-urlencoded', { a: 'b c', d: [1, 2] }],
      ['text/plain', 'hello'],
    ] as const) {
      heard = [];
      await registryOf({ '/x': post(type) }).execute('call', { body });
      bodies.push([heard[0]?.method, heard[0]?.headers['content-type'], heard[0]?.body]);
    }
    expect(bodies).toEqual([
      ['POST', 'application/json', '{"a":[1]}'],
      ['POST', 'application/merge-patch+json', '{"a":null}'],
      ['POST', 'application/x-www-form-urlencoded', 'a=b+c&d=1&d=2'],
      ['POST', 'text/plain', 'hello'],
    ]);
  });

  test('credentials are sent as their schemes require and never shown to the model', async () => {
    const components = {
      securitySchemes: {
        key: { type: 'apiKey', in: 'query', name: 'api key' },
        token: { type: 'http', scheme: 'bearer' },
        login: { type: 'http', scheme: 'basic' },
        web: { type: 'oauth2', flows: {} },
      },
    };
    const operation = (security: object[]) => ({ '/x': { get: { operationId: 'call', security } } });
    const sent = async (security: object[], auth: OpenApiOptions['auth']) => {
      heard = [];
      const registry = registryOf(operation(security), { components }, { auth });
      expect(JSON.stringify(registry.toProviderDefs())).not.toContain('secret');
      await registry.execute('call', {});
      return [heard[0]?.url, heard[0]?.headers.authorization];
    };
    expect(await sent([{ key: [] }], { key: 'secret&1' })).toEqual(['/v1/x?api%20key=secret%261', undefined]);
    expect(await sent([{ key: [] }, { token: [] }], { token: 'secret' })).toEqual(['/v1/x', 'Bearer secret']);
    expect(await sent([{ login: [] }], { login: 'u:secret' })).toEqual([
      '/v1/x',
      `Basic ${btoa('u:secret')}`,
    ]);
    expect(await sent([{ web: [] }], { web: async () => 'secret-2' })).toEqual(['/v1/x', 'Bearer secret-2']);
    expect(await sent([{}], {})).toEqual(['/v1/x', undefined]);
  });

  test('no argument adds a value to a configured credential or header', async () => {
    const components = {
      securitySchemes: {
        key: { type: 'apiKey', in: 'query', name: 'api key' },
        session: { type: 'apiKey', in: 'cookie', name: 'session' },
        token: { type: 'apiKey', in: 'header', name: 'X-Token' },
      },
    };
    const parameters = [
      { name: 'filter', in: 'query', schema: { type: 'object', additionalProperties: text } },
      { name: 'api key', in: 'query', schema: text },
      { name: 'session', in: 'cookie', schema: text },
      { name: 'crumbs', in: 'cookie', schema: { type: 'object', additionalProperties: text } },
      { name: 'x-token', in: 'header', schema: text },
      { name: 'X-Tenant', in: 'header', schema: text },
    ];
    const registry = registryOf(
      { '/x': { get: { operationId: 'call', parameters, security: [{ key: [], session: [], token: [] }] } } },
      { components },
      {
        auth: { key: 'our-key', session: 'our-session', token: 'our-token' },
        headers: { 'X-Tenant': 'ours' },
      },
    );
    const theirs = { 'api key': 'theirs', session: 'theirs', 'x-token': 'theirs', 'X-Tenant': 'theirs' };
    await registry.execute('call', {
      ...theirs,
      filter: { 'api key': 'theirs', color: 'red' },
      crumbs: { session: 'theirs', theme: 'dark' },
    });
    const { url, headers = {} } = heard[0] ?? {};
    expect([url, headers.cookie, headers['x-token'], headers['x-tenant']]).toEqual([
      '/v1/x?color=red&api%20key=our-key',
      'theme=dark; session=our-session',
      'our-token',
      'ours',
    ]);
  });

  test('parameters for headers of the connection or the message are left out', () => {
    const names = ['Accept', 'Host', 'Content-Length', 'transfer-encoding', 'Connection', 'TE', 'Trailer'];
    const others = ['Keep-Alive', 'Upgrade', 'Expect', 'Proxy-Authorization', 'X-Host'];
    const parameters = [...names, ...others].map((name) => ({
      name,
      in: 'header',
      required: true,
      schema: text,
    }));
    const [tool] = toolsFromOpenApi(documentOf({ '/x': { get: { operationId: 'call', parameters } } }), {
      server,
    });
    expect(tool?.parameters).toMatchObject({ properties: { 'X-Host': text }, required: ['X-Host'] });
    expect(Object.keys(tool?.parameters.properties ?? {})).toEqual(['X-Host']);
  });

  test('a credential that is missing is refused, and never sent as a text', async () => {
    const components = { securitySchemes: { api_key: { type: 'http', scheme: 'bearer' } } };
    const paths = { '/x': { get: { operationId: 'call', security: [{ api_key: [] }] } } };
    for (const [source, problem] of [
      [undefined, 'auth.api_key is undefined'],
      [null, 'auth.api_key is null'],
      ['', 'auth.api_key is empty'],
      [7, 'auth.api_key is a number'],
      [['k-1'], 'auth.api_key is a list'],
      [{ token: 'k-1' }, 'auth.api_key is an object'],
    ])
      expect(() => registryOf(paths, { components }, { auth: { api_key: source as never } })).toThrow(
        expect.objectContaining({ code: 521, message: expect.stringContaining(String(problem)) }),
      );
    for (const value of [undefined, null, ' ']) {
      const registry = registryOf(paths, { components }, { auth: { api_key: async () => value as never } });
      const { isError, forLLM } = await registry.execute('call', {});
      expect([isError, forLLM]).toEqual([true, expect.stringContaining("no credential for 'api_key'")]);
    }
    expect(heard).toEqual([]);
  });

  test('an error response is returned with its status and body', async () => {
    answer = { status: 422, body: '{"error":"no such item"}' };
    const { isError, forLLM } = await registryOf({ '/x': { get: { operationId: 'call' } } }).execute(
      'call',
      {},
    );
    expect([isError, forLLM]).toEqual([true, 'HTTP 422: {"error":"no such item"}']);
    answer = { status: 204, body: '' };
    expect((await registryOf({ '/x': { get: { operationId: 'call' } } }).execute('call', {})).forLLM).toBe(
      'HTTP 204',
    );
  });

  test('a redirect to another origin is an error without the rest of its address', async () => {
    const registry = registryOf({ '/x': { get: { operationId: 'call' } } });
    answer = { status: 301, body: '', location: `${server.replace('http', 'https')}/x?key=secret` };
    const { isError, forLLM } = await registry.execute('call', {});
    expect([isError, forLLM]).toEqual([
      true,
      `HTTP 301: the server redirects to ${new URL(answer.location ?? '').origin}. Redirects to another origin are not followed.`,
    ]);
  });

  test('permissions decide each call by tool and host', async () => {
    const operations = { get: { operationId: 'look' }, post: { operationId: 'order' } };
    const tools = toolsFromOpenApi(documentOf({ '/orders': operations }), { server });
    const outcomes = async (permissions: Permissions) => {
      heard = [];
      const registry = new ToolRegistry({ policy: permissions.policy }).register(...tools);
      const looked = await registry.execute('look', {});
      const ordered = await registry.execute('order', {});
      return [!looked.isError, !ordered.isError, heard.map(({ method }) => method)];
    };
    const allow = { decision: 'allow', host: '127.0.0.1' } as const;
    expect(await outcomes(new Permissions({ mode: 'ask' }))).toEqual([false, false, []]);
    expect(await outcomes(new Permissions({ mode: 'ask', rules: [allow] }))).toEqual([
      true,
      true,
      ['GET', 'POST'],
    ]);
    const noOrders = { decision: 'deny', tool: 'order' } as const;
    expect(await outcomes(new Permissions({ mode: 'auto', rules: [noOrders] }))).toEqual([
      true,
      false,
      ['GET'],
    ]);
    const noHost = { decision: 'deny', host: '127.0.0.1' } as const;
    expect(await outcomes(new Permissions({ mode: 'auto', rules: [noHost] }))).toEqual([false, false, []]);
  });

  test('a server in a private network is called only if the application names it', async () => {
    const document = documentOf({ '/x': { get: { operationId: 'call' } } }, { servers: [{ url: server }] });
    const tools = new ToolRegistry().register(...toolsFromOpenApi(document));
    const { isError, forLLM } = await tools.execute('call', {});
    expect([isError, forLLM, heard]).toEqual([
      true,
      '127.0.0.1 is in a private network or on this machine: requests to it are not allowed.',
      [],
    ]);
  });
});

describe('errors of toolsFromOpenApi', () => {
  test('all errors of the selected operations are thrown together', () => {
    const paths = {
      '/a': {
        get: { operationId: 'a', parameters: [{ $ref: '#/components/parameters/none' }, { in: 'query' }] },
        post: { operationId: 'b', requestBody: { content: { 'multipart/form-data': {} } } },
        put: { operationId: 'c', security: [{ key: [] }] },
      },
    };
    const components = { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'k' } } };
    expect(faultsOf(documentOf(paths, { components }), { include: ['a', 'b', 'c', 'd'] })).toEqual([
      "GET /a: it refers to '#/components/parameters/none': its target is not in the document",
      'GET /a: it has a parameter without `name` and `in`',
      'GET /a: it has a parameter without `name` and `in`',
      'POST /a: its request body accepts multipart/form-data; only JSON, forms and text are supported',
      "include 'd': no operation has this id",
      'c: it needs a credential that auth does not have',
    ]);
  });

  test('references to other files are reported, of a path only if all operations are included', () => {
    const paths = {
      '/a': { $ref: 'other.json#/a' },
      '/b': {
        get: { operationId: 'b', parameters: [id] },
        post: { operationId: 'c', requestBody: { $ref: 'other.json#/body' } },
      },
    };
    const body = "POST /b: it refers to 'other.json#/body': its target is not in the document";
    expect(faultsOf(documentOf(paths))).toEqual([
      body,
      "/a: it refers to 'other.json#/a': its target is not in the document",
    ]);
    expect(faultsOf(documentOf(paths), { include: ['c'] })).toEqual([body]);
    expect(faultsOf(documentOf(paths), { include: ['b'] })).toEqual([]);
  });

  test('throws for a value that is not a document, a document without a server and unknown options', () => {
    const [problem] = ['the document is not an OpenAPI document of version 3.0 or 3.1'];
    for (const document of [undefined, null, 'x', {}, { swagger: '2.0' }, { openapi: '4.0.0' }])
      expect(faultsOf(document)).toEqual([`toolsFromOpenApi: ${problem}`]);
    expect(() => toolsFromOpenApi(documentOf({}))).toThrow('the document names no server');
    expect(() => toolsFromOpenApi(documentOf({}), { sever: 'x' } as OpenApiOptions)).toThrow('server');
  });

  test('reports broken and circular references, undeclared path parameters and invalid operations', () => {
    const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
    const schemas = { A: ref('B'), B: ref('A'), Tree: { properties: { left: ref('Tree') } } };
    const queries = ['A', 'Nothing', 'Tree', 'A'].map((name, index) => ({
      ...{ name: `q${index}`, in: 'query', schema: ref(name) },
    }));
    const paths = {
      '/x': { get: { operationId: 'x', parameters: queries }, put: null, post: 'x', 'x-note': 1 },
      '/{shop}/a/{id}': { parameters: [id], get: { operationId: 'y' } },
      '/none': null,
      'x-paths': 'of somebody else',
    };
    const document = documentOf(paths, { components: { schemas } });
    const references = [
      '#/components/schemas/A: its references are circular: #/components/schemas/A → #/components/schemas/B → #/components/schemas/A',
      '#/components/schemas/Nothing: its target is not in the document',
    ];
    expect(faultsOf(document, { server })).toEqual([
      'GET /{shop}/a/{id}: its path has {shop}, but no path parameter has this name',
      'PUT /x: it is null, not an object',
      "POST /x: it is 'x', not an object",
      '/none: it is null, not an object',
      ...references,
    ]);
    expect(faultsOf(document, { server, include: ['x'] })).toEqual(references);
  });
});
