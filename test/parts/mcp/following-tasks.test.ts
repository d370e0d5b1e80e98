import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import { ProtocolError } from '@modelcontextprotocol/server';
import {
  type Answer,
  defineTool,
  resumeToolLoop,
  runToolLoop,
  type ToolDefinition,
  ToolRegistry,
} from 'toolwright';
import { connectMcp, type McpToolsOptions, mcpTools } from 'toolwright/mcp';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { listen, serveForwarding } from './mcp-connections.js';

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

/** A server whose background tools and approvals are tasks, and the tools of its client. */
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
  test('has the result of the task, and so do errors of the tool and of the protocol', async () => {
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

  test('asks its questions in the run, one after the other, and is begun once', async () => {
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
    for (const [message, value] of [
      ['For whom?', 'Ada'],
      ['How many?', 4],
      ['Anything else?', 'No'],
    ]) {
      expect(run.pending).toMatchObject([{ message }]);
      const answer = { id: run.pending?.[0]?.id ?? '', value: { answer: value } } as Answer;
      // As another process that has only the stored state.
      run = await resumeToolLoop(config, JSON.parse(JSON.stringify(run.state)), [answer]);
    }
    expect(run.toolCalls.at(-1)?.result.forLLM).toBe('Ada, 4, No');
    expect([run.status, calls]).toEqual(['completed', 1]);
    expect(store.tasks).toBe(1);
  });

  test('asks for an approval in the run', async () => {
    const refund = defineTool({
      name: 'refund',
      description: 'Refunds an order',
      approval: true,
      execute: () => 'Refunded',
    });
    const { tools } = await served([refund]);
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'refund', arguments: {} }] },
      { content: 'Done.' },
    ]);
    const config = { provider, model: 'm', tools };
    const run = await runToolLoop(config, [{ role: 'user', content: 'Refund it' }]);
    expect(run.status).toBe('suspended');
    const [pending] = run.pending ?? [];
    const value = {};
    const resumed = await resumeToolLoop(config, run.state, [{ id: pending?.id ?? '', value } as Answer]);
    expect(resumed.toolCalls[0]?.result.forLLM).toBe('Refunded');
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

  test('cancels the task when it is aborted, and when it takes longer than its limit', async () => {
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

  test('goes on when its server is replaced', async () => {
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
    // Meanwhile it cannot be reached.
    await pause(1_500);
    target = second.url;
    expect(await call).toMatchObject({ forLLM: 'Written', isError: false });
    expect(began).toBe(2);
  });

  test.each([
    ['an unknown state', '"status":"working"', '"status":"dreaming"', 'unknown state: dreaming'],
    ['no result', '"status":"working"', '"status":"completed"', 'not a result of a call'],
    ['an end by the server', '"status":"working"', '"status":"cancelled"', 'cancelled the task'],
    [
      'a question of another kind',
      '"status":"working"',
      `"status":"input_required","inputRequests":{"a":{"method":"roots/list"}}`,
      'something other than an answer',
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
});
