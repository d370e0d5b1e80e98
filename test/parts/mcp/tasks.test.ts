import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from '@jest/globals';
import { ProtocolError } from '@modelcontextprotocol/server';
import {
  answerStoredRun,
  defineTool,
  MemoryJobEngine,
  recoverRuns,
  runJobs,
  type ToolDefinition,
  ToolRegistry,
  ToolwrightError,
} from 'toolwright';
import { jwks, type McpServerOptions } from 'toolwright/mcp';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { listen } from './mcp-connections.js';
import { HEADERS } from './raw-requests.js';
import { tokenIssuer } from './token-issuer.js';

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const TASKS = 'io.modelcontextprotocol/tasks';

interface Asking {
  readonly user?: string;
  readonly capabilities?: object;
}

// biome-ignore lint/suspicious/noExplicitAny: the answer of a server, which the tests look into
type Response = any;

/** Sends a request of a 2026-07-28 client with the extension. */
async function send(
  url: URL,
  method: string,
  params: Record<string, unknown>,
  asking: Asking = {},
): Promise<Response> {
  const { user, capabilities = { elicitation: {}, extensions: { [TASKS]: {} } } } = asking;
  const name = params.taskId ?? params.name;
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      ...HEADERS,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(name === undefined ? {} : { 'mcp-name': String(name) }),
      ...(user === undefined ? {} : { authorization: `Bearer ${user}` }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': capabilities,
        },
      },
    }),
  });
  const text = await response.text();
  const data = text.startsWith('{') ? text : text.slice(text.lastIndexOf('data: ') + 'data: '.length);
  const { result, error } = JSON.parse(data);
  return result ?? { error };
}

const call = (url: URL, name: string, args: object = {}, asking?: Asking) =>
  send(url, 'tools/call', { name, arguments: args }, asking);
const get = (url: URL, taskId: string, asking?: Asking) => send(url, 'tasks/get', { taskId }, asking);

/** The task as soon as its status is no longer `working`. */
async function settled(url: URL, taskId: string, asking?: Asking): Promise<Response> {
  for (;;) {
    const task = await get(url, taskId, asking);
    if (task.status !== 'working') return task;
    await pause(20);
  }
}

async function serving(tools: readonly ToolDefinition[], options: McpServerOptions) {
  const server = await listen(new ToolRegistry().register(...tools), options);
  closers.push(() => server.close());
  return server;
}

const GREETING = defineTool({ name: 'greet', description: 'Greets', execute: () => 'Hello' });

const IMPORT = defineTool({
  name: 'import_orders',
  description: 'Imports orders',
  background: true,
  parameters: { type: 'object', properties: { from: { type: 'string' } }, required: ['from'] },
  output: { type: 'object', properties: { from: { type: 'string' } } },
  execute: async ({ from }) => ({ from }),
});

const REFUND = defineTool({
  name: 'refund',
  description: 'Refunds an order',
  approval: true,
  parameters: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
  execute: ({ order }) => `Refunded ${order}`,
});

/** A tool whose started work ends only when it is aborted. */
const endlessTool = (onStopped: () => void) =>
  defineTool({
    name: 'endless',
    description: 'Never ends',
    execute: (_args, context) =>
      context.background(
        () =>
          new Promise((_, reject) => {
            context.signal.addEventListener('abort', () => {
              onStopped();
              reject(context.signal.reason);
            });
          }),
      ),
  });

test('a background tool is a task for a client with the extension, and a plain call for others', async () => {
  const { url } = await serving([IMPORT, GREETING], { tasks: new MemoryRunStore() });
  const { capabilities } = await send(url, 'server/discover', {});
  expect(capabilities.extensions).toEqual({ [TASKS]: {} });

  const created = await call(url, 'import_orders', { from: 'shop' });
  expect(created).toMatchObject({ resultType: 'task', status: 'working', ttlMs: null, pollIntervalMs: 1000 });
  expect(created).not.toHaveProperty('requestState');
  const task = await settled(url, created.taskId);
  expect(task).toMatchObject({
    resultType: 'complete',
    taskId: created.taskId,
    status: 'completed',
    result: { content: [{ type: 'text', text: '{"from":"shop"}' }], structuredContent: { from: 'shop' } },
  });

  expect(await call(url, 'greet')).toMatchObject({ resultType: 'complete', content: [{ text: 'Hello' }] });
  const waited = await call(url, 'import_orders', { from: 'shop' }, { capabilities: {} });
  expect(waited).toMatchObject({ resultType: 'complete', structuredContent: { from: 'shop' } });
});

test('the task methods require the extension, and so does a tool that only runs as a task', async () => {
  const tasks = { store: new MemoryRunStore(), required: ['import_*'] };
  const { url } = await serving([IMPORT], { tasks });
  const without = { capabilities: {} };
  const { taskId } = await call(url, 'import_orders', { from: 'shop' });
  const missing = { code: -32021, data: { requiredCapabilities: { extensions: { [TASKS]: {} } } } };
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
    expect(await send(url, method, { taskId, inputResponses: {} }, without)).toMatchObject({
      error: missing,
    });
  expect(await call(url, 'import_orders', { from: 'shop' }, without)).toMatchObject({ error: missing });
});

test('a call that waits for an approval is a task that the client answers', async () => {
  const store = new MemoryRunStore();
  const { url } = await serving([REFUND], { tasks: store });
  const created = await call(url, 'refund', { order: 'o1' });
  expect(created.resultType).toBe('task');
  const { inputRequests, ...task } = await get(url, created.taskId);
  expect(task.status).toBe('input_required');
  const [[key, request]] = Object.entries<Response>(inputRequests) as [[string, Response]];
  expect(request.method).toBe('elicitation/create');
  expect(request.params.message).toContain('"order": "o1"');

  const update = (inputResponses: object) =>
    send(url, 'tasks/update', { taskId: created.taskId, inputResponses });
  expect(await update({ unknown: { action: 'accept' } })).toMatchObject({ resultType: 'complete' });
  expect(await get(url, created.taskId)).toMatchObject({ status: 'input_required' });
  const acknowledged = await update({ [key]: { action: 'accept', content: {} } });
  expect(acknowledged).toMatchObject({ resultType: 'complete' });
  expect(acknowledged).not.toHaveProperty('taskId');
  expect(await settled(url, created.taskId)).toMatchObject({
    status: 'completed',
    result: { content: [{ text: 'Refunded o1' }] },
  });
  expect(await update({ [key]: { action: 'decline' } })).toMatchObject({ resultType: 'complete' });
});

test('a declined approval completes the task with the refusal', async () => {
  const { url } = await serving([REFUND], { tasks: new MemoryRunStore() });
  const { taskId } = await call(url, 'refund', { order: 'o1' });
  const { inputRequests } = await get(url, taskId);
  const [key = ''] = Object.keys(inputRequests);
  await send(url, 'tasks/update', { taskId, inputResponses: { [key]: { action: 'decline' } } });
  const { status, result } = await settled(url, taskId);
  expect(status).toBe('completed');
  expect(result.isError).toBe(true);
  expect(result.content[0].text).toContain('the user declined');
});

test('questions of a task can be answered one at a time', async () => {
  const asking = defineTool({
    name: 'book',
    description: 'Books a table',
    background: true,
    execute: async (_args, context) => {
      const [name, guests] = await Promise.all([
        context.ask({ message: 'For whom?' }),
        context.ask({ message: 'How many?', schema: { type: 'integer' } }),
      ]);
      return `${name}, ${guests}`;
    },
  });
  const { url } = await serving([asking], { tasks: new MemoryRunStore() });
  const { taskId } = await call(url, 'book');
  const first = await settled(url, taskId);
  expect(Object.keys(first.inputRequests)).toHaveLength(2);
  const keys = Object.keys(first.inputRequests) as [string, string];
  const answer = (key: string, value: unknown) =>
    send(url, 'tasks/update', {
      taskId,
      inputResponses: { [key]: { action: 'accept', content: { answer: value } } },
    });
  await answer(keys[0], 'Ada');
  const second = await get(url, taskId);
  expect(second.status).toBe('input_required');
  expect(Object.keys(second.inputRequests)).toEqual([keys[1]]);
  const wrong = await answer(keys[1], 'many');
  expect(wrong.error).toMatchObject({ code: -32602 });
  await answer(keys[1], 4);
  expect(await settled(url, taskId)).toMatchObject({ result: { content: [{ text: 'Ada, 4' }] } });
});

test('a cancelled task stops its tool', async () => {
  const stopped = Promise.withResolvers<unknown>();
  const slow = defineTool({
    name: 'slow',
    description: 'Takes long',
    background: true,
    execute: (_args, { signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          stopped.resolve(signal.reason);
          reject(signal.reason);
        });
      }),
  });
  const { url } = await serving([slow], { tasks: { store: new MemoryRunStore(), leaseMs: 300 } });
  const { taskId } = await call(url, 'slow');
  expect(await send(url, 'tasks/cancel', { taskId })).toMatchObject({ resultType: 'complete' });
  expect(await settled(url, taskId)).toMatchObject({ status: 'cancelled' });
  await stopped.promise;
  expect(await send(url, 'tasks/cancel', { taskId })).toMatchObject({ resultType: 'complete' });
  expect(await get(url, taskId)).toMatchObject({ status: 'cancelled' });
});

test('a task belongs to its caller, and is not found by others', async () => {
  const { url } = await serving([IMPORT], { tasks: new MemoryRunStore() });
  const ada = { user: 'ada' };
  const { taskId } = await call(url, 'import_orders', { from: 'shop' }, ada);
  const notFound = { error: { code: -32602, message: expect.stringContaining('Task not found') } };
  for (const id of [taskId, `${taskId}x`, 'task_unknown', 'constructor'])
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
      expect(await send(url, method, { taskId: id, inputResponses: {} }, { user: 'bob' })).toMatchObject(
        notFound,
      );
  expect(await settled(url, taskId, ada)).toMatchObject({ status: 'completed' });
});

test('any server with the store answers, and continues a task whose server has closed', async () => {
  const path = ':memory:';
  const store = new SqliteRunStore({ path });
  closers.push(() => store.close());
  let calls = 0;
  const report = defineTool({
    name: 'report',
    description: 'Writes a report',
    background: true,
    annotations: { idempotent: true },
    execute: async (_args, { signal }) => {
      calls += 1;
      if (calls === 1)
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      return 'Written';
    },
  });
  const tasks = { store, leaseMs: 500 };
  const reported: unknown[] = [];
  const onError = (error: unknown) => reported.push(error);
  const first = await serving([report, REFUND], { tasks, onError });
  const second = await serving([report, REFUND], { tasks, onError });
  const { taskId } = await call(first.url, 'report');
  const refund = await call(first.url, 'refund', { order: 'o2' });
  while (calls === 0) await pause(20);
  await first.close();
  expect(await get(second.url, taskId)).toMatchObject({ status: 'working' });
  expect(await settled(second.url, taskId)).toMatchObject({
    status: 'completed',
    result: { content: [{ text: 'Written' }] },
  });
  expect(calls).toBe(2);

  const { inputRequests } = await get(second.url, refund.taskId);
  const [key = ''] = Object.keys(inputRequests);
  await send(second.url, 'tasks/update', {
    taskId: refund.taskId,
    inputResponses: { [key]: { action: 'accept' } },
  });
  expect(await settled(second.url, refund.taskId)).toMatchObject({
    result: { content: [{ text: 'Refunded o2' }] },
  });
  expect(reported).toEqual([]);
});

/** A tool whose first call waits until it is aborted. */
function stoppedOnce(
  name: string,
  options: Partial<ToolDefinition> = {},
  end = (calls: number) => `Done by call ${calls}`,
) {
  const begun = Promise.withResolvers<void>();
  let calls = 0;
  const tool = defineTool({
    name,
    description: 'Is stopped at first',
    background: true,
    ...options,
    execute: async (_args, { signal }) => {
      calls += 1;
      begun.resolve();
      if (calls === 1)
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      return end(calls);
    },
  });
  return { tool, begun: begun.promise };
}

test('when a server closes, another server continues its tasks at once, and repeats only safe calls', async () => {
  const tasks = new MemoryRunStore();
  const sync = stoppedOnce('sync', { annotations: { idempotent: true } });
  const pay = stoppedOnce('pay');
  const stopped = Promise.withResolvers<void>();
  const tools = [sync.tool, pay.tool, endlessTool(stopped.resolve)];
  const first = await serving(tools, { tasks });
  const second = await serving(tools, { tasks });
  const ids: string[] = [];
  for (const { name } of tools) ids.push((await call(first.url, name)).taskId);
  await Promise.all([sync.begun, pay.begun]);
  const since = performance.now();
  await first.close();
  await stopped.promise;
  const ends = await Promise.all(ids.map((id) => settled(second.url, id)));
  // Below the lease of a crashed process, which is 30 seconds.
  expect(performance.now() - since).toBeLessThan(15_000);
  expect(ends.map(({ result }) => [result.isError ?? false, result.content[0].text])).toEqual([
    [false, 'Done by call 2'],
    [true, expect.stringContaining('not known')],
    [true, expect.stringContaining('had begun')],
  ]);
});

test('an answer to a task that another server is changing has to be sent again', async () => {
  const store = new MemoryRunStore();
  const { url } = await serving([REFUND], { tasks: store });
  const { taskId } = await call(url, 'refund', { order: 'o1' });
  const { inputRequests } = await get(url, taskId);
  const [key = ''] = Object.keys(inputRequests);
  const answer = () => send(url, 'tasks/update', { taskId, inputResponses: { [key]: { action: 'accept' } } });
  const lease = { runId: taskId, claim: 'another', leaseMs: 60_000 };
  store.claim(lease);
  expect(await answer()).toMatchObject({
    error: { message: expect.stringContaining('send the answer again') },
  });
  store.release(lease);
  await answer();
  expect(await settled(url, taskId)).toMatchObject({ status: 'completed' });
});

test('with an engine, the work of a task is a job of a worker', async () => {
  const engine = new MemoryJobEngine();
  const store = new MemoryRunStore();
  const worker = await runJobs({ engine, store, tools: new ToolRegistry().register(IMPORT) });
  closers.push(() => worker.close());
  const registry = new ToolRegistry({ engine, store }).register(IMPORT);
  const server = await listen(registry, { tasks: store });
  closers.push(() => server.close());
  const { taskId } = await call(server.url, 'import_orders', { from: 'shop' });
  expect(await settled(server.url, taskId)).toMatchObject({
    status: 'completed',
    result: { structuredContent: { from: 'shop' } },
  });
});

test('invalid arguments and errors of a tool complete its task with an error result', async () => {
  const failing = defineTool({
    name: 'fail',
    description: 'Fails',
    background: true,
    execute: async () => {
      throw new Error('The disk is full');
    },
  });
  const { url } = await serving([failing, IMPORT], { tasks: new MemoryRunStore() });
  const failed = await call(url, 'fail');
  expect(await settled(url, failed.taskId)).toMatchObject({ status: 'completed', result: { isError: true } });
  const rejected = await call(url, 'import_orders', {});
  const { status, result } = await settled(url, rejected.taskId);
  expect(status).toBe('completed');
  expect(result).toMatchObject({ isError: true });
  expect(result.content[0].text).toContain('from');
});

test('work that a call starts makes the call a task, after its questions', async () => {
  const booking = defineTool({
    name: 'book',
    description: 'Books a table',
    execute: async (_args, context) => {
      const name = await context.ask({ message: 'For whom?' });
      return context.background(async () => {
        await pause(50);
        return `Booked for ${name}`;
      });
    },
  });
  const { url } = await serving([booking], { tasks: new MemoryRunStore() });
  const asked = await call(url, 'book');
  expect(asked.resultType).toBe('input_required');
  const [key = ''] = Object.keys(asked.inputRequests);
  const created = await send(url, 'tools/call', {
    name: 'book',
    arguments: {},
    requestState: asked.requestState,
    inputResponses: { [key]: { action: 'accept', content: { answer: 'Ada' } } },
  });
  expect(created).toMatchObject({ resultType: 'task', status: 'working' });
  expect(await settled(url, created.taskId)).toMatchObject({
    result: { content: [{ text: 'Booked for Ada' }] },
  });
});

test('started work of a cancelled task is stopped', async () => {
  const stopped = Promise.withResolvers<void>();
  const endless = endlessTool(stopped.resolve);
  const { url } = await serving([endless], { tasks: new MemoryRunStore() });
  const { taskId } = await call(url, 'endless');
  await send(url, 'tasks/cancel', { taskId });
  expect(await get(url, taskId)).toMatchObject({ status: 'cancelled' });
  await stopped.promise;
});

test('an approval by another user is given through the store while the task waits', async () => {
  const store = new MemoryRunStore();
  const payment = defineTool({
    name: 'pay',
    description: 'Pays',
    approval: { approver: 'not-the-owner' },
    execute: () => 'Paid',
  });
  const owner = { user: 'ada' };
  const { url } = await serving([payment], { tasks: store, scope: () => ({ owner }) });
  const { taskId } = await call(url, 'pay');
  const task = await get(url, taskId);
  expect(task).toMatchObject({ status: 'working', statusMessage: expect.stringContaining('approval') });
  const [pending] = store.load(taskId)?.pending ?? [];
  const answer = { id: pending?.id ?? '', approved: true } as const;
  await answerStoredRun({ store, runId: taskId }, [answer], {
    owner,
    answeredBy: { user: 'bob' },
    tools: [payment],
  });
  expect(await settled(url, taskId)).toMatchObject({ result: { content: [{ text: 'Paid' }] } });
});

/** A task whose call was approved in the store after its server has closed. */
async function answeredTask(tool: ToolDefinition) {
  const store = new MemoryRunStore();
  const first = await serving([tool], { tasks: store });
  const { taskId } = await call(first.url, tool.name, { order: 'o1' });
  await first.close();
  const [pending] = store.load(taskId)?.pending ?? [];
  await answerStoredRun({ store, runId: taskId }, [{ id: pending?.id ?? '', approved: true }]);
  return { store, taskId };
}

test('a worker on the same store executes the call of an answered task, and calls no model', async () => {
  const { store, taskId } = await answeredTask(REFUND);
  const provider = new ScriptedProvider([]);
  const recovered = await recoverRuns({ store, config: { provider, tools: [REFUND] } });
  expect(recovered).toMatchObject([{ runId: taskId, result: { status: 'completed' } }]);
  expect(provider.requests).toEqual([]);
  const { url } = await serving([REFUND], { tasks: store });
  expect(await get(url, taskId)).toMatchObject({
    status: 'completed',
    result: { content: [{ text: 'Refunded o1' }] },
  });
});

test('a worker without the tool or the scopes of a task leaves it to a server', async () => {
  const { store } = await answeredTask(REFUND);
  const config = { provider: new ScriptedProvider([]), tools: [GREETING] };
  const left = {
    error: { name: 'RunNotAllowed', message: expect.stringContaining("lacks the tool 'refund'") },
  };
  expect(await recoverRuns({ store, config })).toMatchObject([left]);
  const scoped = { ...REFUND, scopes: ['pay'] };
  const other = await answeredTask(REFUND);
  expect(await recoverRuns({ store: other.store, config: { ...config, tools: [scoped] } })).toMatchObject([
    { error: { message: expect.stringContaining('lacks the scopes pay') } },
  ]);
});

test('a task that was interrupted ends in a worker with an unknown outcome, and not with a question', async () => {
  const store = new MemoryRunStore();
  const { tool, begun } = stoppedOnce('pay');
  const first = await serving([tool], { tasks: { store, leaseMs: 300 } });
  const { taskId } = await call(first.url, 'pay');
  await begun;
  await first.close();
  await recoverRuns({ store, config: { provider: new ScriptedProvider([]), tools: [tool] } });
  const { url } = await serving([tool], { tasks: store });
  expect(await get(url, taskId)).toMatchObject({ status: 'completed', result: { isError: true } });
});

test('a protocol error that a tool throws is the error of its call and of its task', async () => {
  const throwing = (name: string, background: boolean) =>
    defineTool({
      name,
      description: 'Fails',
      background,
      execute: async () => {
        throw new ProtocolError(-32010, 'The upstream has gone');
      },
    });
  const { url } = await serving([throwing('at_once', false), throwing('later', true)], {
    tasks: new MemoryRunStore(),
  });
  expect(await call(url, 'at_once')).toMatchObject({
    error: { code: -32010, message: 'The upstream has gone' },
  });
  const { taskId } = await call(url, 'later');
  const task = await settled(url, taskId);
  expect(task).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('The upstream has gone') },
  });
  expect(task).not.toHaveProperty('result');
});

test('a task whose tool throws a protocol error in a worker fails with this error, too', async () => {
  const store = new MemoryRunStore();
  const { tool, begun } = stoppedOnce('import', { annotations: { idempotent: true } }, () => {
    throw new ProtocolError(-32010, 'The upstream has gone');
  });
  const first = await serving([tool], { tasks: store });
  const { taskId } = await call(first.url, 'import');
  await begun;
  await first.close();
  await recoverRuns({ store, config: { provider: new ScriptedProvider([]), tools: [tool] } });
  const { url } = await serving([tool], { tasks: store });
  expect(await get(url, taskId)).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('The upstream has gone') },
  });
});

test('a task whose tool is missing on this server waits for a server that has it', async () => {
  const store = new MemoryRunStore();
  const first = await serving([REFUND], { tasks: store });
  const second = await serving([GREETING], { tasks: store });
  const { taskId } = await call(first.url, 'refund', { order: 'o1' });
  expect(await get(second.url, taskId)).toMatchObject({
    status: 'working',
    statusMessage: "Waiting for a server process with the tool 'refund'",
  });
  expect(await get(first.url, taskId)).toMatchObject({ status: 'input_required' });
});

test('on a protected server, a caller without a token polls only its own tasks of public tools', async () => {
  const resource = 'https://api.example.org/mcp';
  const issuer = await tokenIssuer(resource);
  const oauth = { resource, issuer: issuer.issuer, verify: jwks(issuer.keys) };
  const open = defineTool({ ...IMPORT, name: 'open_import', public: true });
  const { url } = await serving([IMPORT, open], { tasks: new MemoryRunStore(), oauth, onError: () => {} });
  const anna = { user: await issuer.issue() };
  const hers = await call(url, 'import_orders', { from: 'shop' }, anna);
  expect(hers.resultType).toBe('task');
  const anybodys = await call(url, 'open_import', { from: 'shop' });
  expect(await settled(url, anybodys.taskId)).toMatchObject({ status: 'completed' });
  expect(await get(url, hers.taskId)).toMatchObject({ error: { code: -32602 } });
  expect(await get(url, anybodys.taskId, anna)).toMatchObject({ error: { code: -32602 } });
  expect(await settled(url, hers.taskId, anna)).toMatchObject({ status: 'completed' });
});

test('a token without the scopes of a tool can neither read, answer nor cancel its tasks', async () => {
  const resource = 'https://api.example.org/mcp';
  const issuer = await tokenIssuer(resource);
  const oauth = { resource, issuer: issuer.issuer, verify: jwks(issuer.keys) };
  const refund = defineTool({ ...REFUND, scopes: ['refunds'] });
  const { url } = await serving([refund], { tasks: new MemoryRunStore(), oauth, onError: () => {} });
  const strong = { user: await issuer.issue({ scope: 'refunds' }) };
  const weak = { user: await issuer.issue() };
  const { taskId } = await call(url, 'refund', { order: 'a-1' }, strong);
  const { inputRequests } = await get(url, taskId, strong);
  const inputResponses = Object.fromEntries(
    Object.keys(inputRequests).map((id) => [id, { action: 'accept', content: {} }]),
  );
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
    expect(await send(url, method, { taskId, inputResponses }, weak)).toMatchObject({
      error: { message: expect.stringContaining('scopes refunds') },
    });
  await send(url, 'tasks/update', { taskId, inputResponses }, strong);
  expect(await settled(url, taskId, strong)).toMatchObject({
    status: 'completed',
    result: { content: [{ type: 'text', text: 'Refunded a-1' }] },
  });
});

test('a call whose task cannot be stored fails with a server error, and its started work is stopped', async () => {
  class FailingStore extends MemoryRunStore {
    override async save(): Promise<never> {
      throw new ToolwrightError('InvalidState', 'The disk is full');
    }

    override async begin(): Promise<never> {
      throw new Error('The disk is full');
    }
  }
  const stopped = Promise.withResolvers<void>();
  const endless = endlessTool(stopped.resolve);
  const reported: unknown[] = [];
  const onError = (error: unknown) => reported.push(error);
  const { url } = await serving([IMPORT, endless], { tasks: new FailingStore(), onError });
  const failed = { error: { code: -32603, message: 'The request could not be prepared' } };
  expect(await call(url, 'import_orders', { from: 'shop' })).toMatchObject(failed);
  expect(await call(url, 'endless')).toMatchObject(failed);
  await stopped.promise;
  expect(reported).toHaveLength(2);
});
