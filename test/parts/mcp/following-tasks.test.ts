import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { ProtocolError } from '@modelcontextprotocol/server';
import {
  type Answer,
  defineTool,
  recoverRuns,
  resumeToolLoop,
  runToolLoop,
  type ToolDefinition,
  ToolRegistry,
} from 'toolwright';
import { connectMcp, followMcpTools, type McpToolsOptions, mcpTools } from 'toolwright/mcp';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { ERAS, listen, serveForwarding } from './mcp-connections.js';

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

class CountingStore extends MemoryRunStore {
  tasks = 0;

  override save(...given: Parameters<MemoryRunStore['save']>) {
    this.tasks += 1;
    return super.save(...given);
  }
}

/** A server that runs background tools and approvals as tasks, and the tools of its client. */
async function served(tools: readonly ToolDefinition[]) {
  const store = new CountingStore();
  const server = await listen(new ToolRegistry().register(...tools), { tasks: store });
  closers.push(() => server.close());
  return { ...server, store, tools: await importedFrom(server.url) };
}

async function forwarding(...given: Parameters<typeof serveForwarding>): Promise<URL> {
  const proxy = await serveForwarding(...given);
  closers.push(() => proxy.close());
  return proxy.url;
}

async function importedFrom(url: URL, options: McpToolsOptions = {}): Promise<ToolRegistry> {
  const connect = connectMcp({ url: url.href });
  const opened: { close(): Promise<void> }[] = [];
  closers.push(() => Promise.all(opened.map((client) => client.close())));
  const source = async () => {
    const client = await connect();
    opened.push(client);
    return client;
  };
  return new ToolRegistry().register(...(await mcpTools(source, options)));
}

const background = (name: string, execute: ToolDefinition['execute']) =>
  defineTool({ name, description: `Does ${name}`, background: true, execute });

describe('a call that its server answers with a task', () => {
  test('gets the result of the task, or the error of the tool or of the protocol', async () => {
    const { tools, store } = await served([
      background('report', async () => 'Written'),
      background('refuse', async () => {
        throw new Error('No paper');
      }),
      background('break', async () => {
        throw new ProtocolError(-32010, 'The upstream has gone');
      }),
    ]);
    expect(await tools.execute('report')).toMatchObject({ forLLM: 'Written', isError: false });
    expect(await tools.execute('refuse')).toMatchObject({ isError: true });
    const broken = await tools.execute('break');
    expect(broken.isError).toBe(true);
    expect(broken.forLLM).toContain('The upstream has gone');
    expect(store.tasks).toBe(3);
  });

  test('asks the questions of the task in the run, one after the other, and is started once', async () => {
    let calls = 0;
    const booking = background('book', async (_args, context) => {
      const name = await context.ask({ message: 'For whom?' });
      const guests = await context.ask({ message: 'How many?', schema: { type: 'integer' } });
      const note = await context.ask({ message: 'Anything else?' });
      calls += 1;
      return `${name}, ${guests}, ${note}`;
    });
    const { tools, store } = await served([booking]);
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'book', arguments: {} }] },
      { content: 'Booked.' },
    ]);
    const config = { provider, model: 'm', tools };
    let run = await runToolLoop(config, [{ role: 'user', content: 'Book a table' }]);
    const agreed = { id: run.pending?.[0]?.id ?? '', approved: true } as Answer;
    await expect(resumeToolLoop(config, run.state, [agreed])).rejects.toThrow(
      'the answer to a question must be { id, value }',
    );
    for (const [message, value] of [
      ['For whom?', 'Ada'],
      ['How many?', 4],
      ['Anything else?', 'No'],
    ]) {
      expect(run.pending).toMatchObject([{ message }]);
      const answer = { id: run.pending?.[0]?.id ?? '', value: { answer: value } } as Answer;
      // Resumes as another process would, from the stored state alone.
      run = await resumeToolLoop(config, JSON.parse(JSON.stringify(run.state)), [answer]);
    }
    expect(run.toolCalls.at(-1)?.result.forLLM).toBe('Ada, 4, No');
    expect([run.status, calls]).toEqual(['completed', 1]);
    expect(store.tasks).toBe(1);
  });

  test.each([
    ['given like an approval of the run', { approved: true }, 'Refunded'],
    ['refused like an approval of the run', { approved: false, reason: 'Too much' }, 'Too much'],
    ['given through the form of the server', { value: {} }, 'Refunded'],
  ])('asks for an approval in the run, which is %s', async (_how, decision, expected) => {
    const refund = defineTool({
      name: 'refund',
      description: 'Refunds an order',
      approval: true,
      execute: () => 'Refunded',
    });
    const { tools, store } = await served([refund]);
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'refund', arguments: {} }] },
      { content: 'Done.' },
    ]);
    const config = { provider, model: 'm', tools };
    const run = await runToolLoop(config, [{ role: 'user', content: 'Refund it' }]);
    expect(run.status).toBe('suspended');
    const answer = { id: run.pending?.[0]?.id ?? '', ...decision } as Answer;
    const resumed = await resumeToolLoop(config, run.state, [answer]);
    expect(resumed.toolCalls[0]?.result.forLLM).toContain(expected);
    // The task must not remain open for an approval on the server.
    const { runs } = await store.list();
    expect(runs.map(({ status }) => status)).toEqual(['ended']);
  });

  test('runs in the background of the run if the client asks for it', async () => {
    const { url } = await served([background('report', async () => 'Written')]);
    const tools = await importedFrom(url, { background: ['rep*'] });
    const completed = Promise.withResolvers<string>();
    const run = await runToolLoop(
      {
        provider: new ScriptedProvider([
          { toolCalls: [{ name: 'report', arguments: {} }] },
          { content: 'It will follow.' },
        ]),
        model: 'm',
        tools,
        onAsyncResult: (_context, result) => completed.resolve(result.forLLM),
      },
      [{ role: 'user', content: 'Write the report' }],
    );
    expect([run.status, run.toolCalls[0]?.status]).toEqual(['completed', 'started']);
    expect(await completed.promise).toBe('Written');
  });

  test('cancels the task when the call is aborted or times out', async () => {
    const stopped: unknown[] = [];
    const endless = background(
      'endless',
      (_args, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            stopped.push(signal.reason);
            reject(signal.reason);
          });
        }),
    );
    const { tools, store, url } = await served([endless]);
    const abort = new AbortController();
    const call = tools.executeWithContext('endless', {}, { signal: abort.signal });
    while (store.tasks === 0) await pause(20);
    abort.abort();
    expect((await call).isError).toBe(true);
    while (stopped.length < 1) await pause(20);
    const limited = await importedFrom(url, { timeoutMs: 300 });
    expect((await limited.execute('endless')).forLLM).toContain('300 ms');
    while (stopped.length < 2) await pause(20);
  });

  test('cancels the task even if the connection is closed right after the timeout', async () => {
    const stopped = Promise.withResolvers<void>();
    const endless = background('endless', (_args, { signal }) => {
      signal.addEventListener('abort', () => stopped.resolve());
      return stopped.promise;
    });
    const { url } = await served([endless]);
    const tools = new ToolRegistry();
    const following = await followMcpTools(tools, connectMcp({ url: url.href }), { timeoutMs: 500 });
    expect((await tools.execute('endless')).forLLM).toContain('500 ms');
    await following.close();
    await stopped.promise;
  });

  test('is reported with an unknown outcome if the connection is closed while it runs', async () => {
    const { url, store } = await served([
      background('slow', (_args, { signal }) => pause(60_000, '', { signal })),
    ]);
    const tools = new ToolRegistry();
    const following = await followMcpTools(tools, connectMcp({ url: url.href }));
    const call = tools.execute('slow');
    while (store.tasks === 0) await pause(20);
    await pause(100);
    await following.close();
    expect((await call).forLLM).toContain('outcome is unknown');
  });

  test('continues when its server is replaced', async () => {
    const store = new MemoryRunStore();
    let began = 0;
    const report = () =>
      defineTool({
        name: 'report',
        description: 'Writes a report',
        background: true,
        annotations: { idempotent: true },
        execute: async (_args, { signal }) => {
          began += 1;
          if (began === 1)
            await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
          return 'Written';
        },
      });
    const tasks = { store, leaseMs: 300 };
    const first = await listen(new ToolRegistry().register(report()), { tasks });
    const second = await listen(new ToolRegistry().register(report()), { tasks });
    closers.push(() => second.close());
    let target = first.url;
    const proxy = await forwarding(() => target);
    const tools = await importedFrom(proxy);
    const call = tools.execute('report');
    while (began === 0) await pause(20);
    await first.close();
    // The server cannot be reached meanwhile.
    await pause(1_500);
    target = second.url;
    expect(await call).toMatchObject({ forLLM: 'Written', isError: false });
    expect(began).toBe(2);
  });

  test.each([
    ['an unknown state', '"status":"working"', '"status":"dreaming"', 'unknown state: dreaming'],
    ['a missing result', '"status":"working"', '"status":"completed"', 'not the result of a call'],
    ['a task that the server cancelled', '"status":"working"', '"status":"cancelled"', 'cancelled the task'],
    [
      'a question of an unsupported kind',
      '"status":"working"',
      `"status":"input_required","inputRequests":{"a":{"method":"roots/list"}}`,
      'input that is not an answer',
    ],
  ])('fails for %s', async (_what, from, to, problem) => {
    const slow = background('slow', async (_args, { signal }) =>
      pause(60_000, 'late', { signal, ref: false }),
    );
    const { url } = await served([slow]);
    const proxy = await forwarding(
      () => url,
      (body) => (body.includes('"resultType":"task"') ? body : body.replace(from, to)),
    );
    const tools = await importedFrom(proxy);
    const { isError, forLLM } = await tools.execute('slow');
    expect(isError).toBe(true);
    expect(forLLM).toContain(problem);
  });

  test('returns the valid blocks of a result that also has an invalid block', async () => {
    const { url } = await served([background('report', async () => 'Written')]);
    const proxy = await forwarding(
      () => url,
      (body) => body.replace('"content":[{', '"content":[{"type":"chart"},{'),
    );
    const tools = await importedFrom(proxy);
    const { isError, forLLM } = await tools.execute('report');
    expect(isError).toBe(false);
    expect(forLLM).toMatch(/'chart' was omitted.*\nWritten$/);
  });

  test.each([[7], [null], [{}], ['']])('fails for the task id %j without polling it', async (taskId) => {
    const { url, store } = await served([background('report', async () => 'Written')]);
    const asked: string[] = [];
    const proxy = await forwarding(
      () => url,
      (body) => {
        asked.push(body);
        const created = body.includes('"resultType":"task"');
        return created ? body.replace(/"taskId":"[^"]*"/, `"taskId":${JSON.stringify(taskId)}`) : body;
      },
    );
    const tools = await importedFrom(proxy);
    const { isError, forLLM } = await tools.execute('report');
    expect(isError).toBe(true);
    expect(forLLM).toContain("'task'");
    expect(store.tasks).toBe(1);
    expect(asked.at(-1)).toContain('"resultType":"task"');
  });

  test('fails if the client was passed in and has lost its connection', async () => {
    const slow = background('slow', async (_args, { signal }) =>
      pause(60_000, 'late', { signal, ref: false }),
    );
    const { url } = await served([slow]);
    const polled = Promise.withResolvers<void>();
    const proxy = await forwarding(
      () => url,
      (body) => {
        if (body.includes('"status":"working"') && !body.includes('"resultType":"task"')) polled.resolve();
        return body;
      },
    );
    const client = new Client(
      { name: 'own', version: '1' },
      { ...ERAS['2026-07-28'], capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
    );
    await client.connect(new StreamableHTTPClientTransport(proxy));
    const tools = new ToolRegistry().register(...(await mcpTools(client)));
    const call = tools.execute('slow');
    await polled.promise;
    await client.close();
    const { isError, forLLM } = await call;
    expect(isError).toBe(true);
    expect(forLLM).toContain('cannot be reached');
  });

  test('is continued by the next process if its own process has crashed', async () => {
    let calls = 0;
    const end = Promise.withResolvers<string>();
    const work = background('work', () => {
      calls += 1;
      return end.promise;
    });
    const { tools, url, store } = await served([work]);
    let now = Date.now();
    const leaseMs = 60_000;
    const runs = new MemoryRunStore({ now: () => now });
    const config = (script: ConstructorParameters<typeof ScriptedProvider>[0], given: ToolRegistry) =>
      ({ provider: new ScriptedProvider(script), model: 'm', tools: given, checkpoint: 'call' }) as const;
    const begun = [{ toolCalls: [{ name: 'work', arguments: {} }] }, { content: 'Done.' }];
    const first = runToolLoop({ ...config(begun, tools), store: runs, runId: 'r', leaseMs }, [
      { role: 'user', content: 'Work' },
    ]).catch((error: unknown) => error);
    const stored = () => JSON.stringify(runs.read('r') ?? {});
    while (!stored().includes('mcp task')) await pause(20);
    now += leaseMs + 1;
    const next = config([{ content: 'Done.' }], await importedFrom(url));
    const recovering = recoverRuns({ store: runs, config: next, leaseMs });
    while (runs.read('r')?.generation === 1) await pause(20);
    end.resolve('Worked');
    const [recovered] = await recovering;
    expect(recovered).toMatchObject({
      result: { status: 'completed', toolCalls: [{ result: { forLLM: 'Worked' } }] },
    });
    await first;
    expect([calls, store.tasks]).toEqual([1, 1]);
  });

  test('is followed over stdio', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'toolwright-mcp-tasks-'));
    closers.push(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'server.mjs'), STDIO_SERVER);
    const client = await connectMcp({ command: process.execPath, args: [join(folder, 'server.mjs')] })();
    closers.push(() => client.close());
    const tools = new ToolRegistry().register(...(await mcpTools(client)));
    expect(await tools.execute('work')).toMatchObject({ forLLM: 'Worked', isError: false });
  });
});

const STDIO_SERVER = `
import { createInterface } from 'node:readline';
const cache = { ttlMs: 0, cacheScope: 'private' };
let polls = 0;
const results = {
  'server/discover': () => ({
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
    serverInfo: { name: 'worker', version: '1' },
    ...cache,
  }),
  'tools/list': () => ({ tools: [{ name: 'work', inputSchema: { type: 'object' } }], ...cache }),
  'tools/call': () => ({ resultType: 'task', taskId: 't', status: 'working', pollIntervalMs: 1 }),
  'tasks/get': ({ taskId }) =>
    ++polls < 3
      ? { taskId, status: 'working', pollIntervalMs: 1 }
      : { taskId, status: 'completed', result: { content: [{ type: 'text', text: 'Worked' }] } },
};
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  const result = results[method]?.(params);
  if (result) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } }));
});
`;
