import { afterEach, expect, test } from '@jest/globals';
import {
  defineTool,
  type JobEngine,
  MemoryJobEngine,
  runJobs,
  type ToolContext,
  type ToolDefinition,
  ToolRegistry,
  type ToolResult,
} from 'toolwright';
import { bullmqEngine } from 'toolwright/bullmq';
import { markUntrusted } from 'toolwright/hooks';
import { MemoryRunStore } from 'toolwright/stores';
import { describeRedis } from '../../services/services.js';
import { connectClient, ERAS, listen } from './mcp-connections.js';

const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const TOTAL = {
  name: 'total',
  description: 'Adds up a year',
  background: true,
  parameters: { type: 'object', properties: { year: { type: 'integer' } }, required: ['year'] },
} as const;

/** A server whose background tools become jobs, and a worker if its tool is given. */
async function serving(
  engine: JobEngine,
  tools: { served: ToolDefinition; worked?: ToolDefinition },
  hooks = [] as never[],
) {
  const store = new MemoryRunStore();
  const registry = new ToolRegistry({ engine, store, hooks }).register(tools.served);
  const results: string[] = [];
  let heard = Promise.withResolvers<void>();
  if (tools.worked !== undefined) {
    const worker = await runJobs({
      engine,
      store,
      tools: new ToolRegistry({ hooks }).register(tools.worked),
      onAsyncResult: ({ result }: { readonly result: ToolResult }) => {
        results.push(result.forLLM);
        heard.resolve();
        heard = Promise.withResolvers();
      },
    });
    closers.push(() => worker.close());
  }
  const server = await listen(registry);
  closers.push(() => server.close());
  const completed = async (): Promise<readonly string[]> => {
    while (results.length === 0) await heard.promise;
    return results;
  };
  return { server, completed };
}

const notHere = () => {
  throw new Error('it ran in the process of the server');
};

function totals(execute: (args: never, context: ToolContext) => unknown, more: object = {}) {
  return {
    served: defineTool({ ...TOTAL, ...more, execute: notHere } as never) as ToolDefinition,
    worked: defineTool({ ...TOTAL, ...more, execute } as never) as ToolDefinition,
  };
}

/** Calls the tool and expects the result of its job. */
async function answersWithJob(engine: JobEngine, era: keyof typeof ERAS): Promise<void> {
  const tools = totals(
    ({ year }: { readonly year: number }, context) => {
      context.progress({ progress: 1, total: 2, message: 'half' });
      return { year, total: 42 };
    },
    { output: { type: 'object', properties: { year: {}, total: { type: 'integer' } } } },
  );
  const { server } = await serving(engine, tools);
  const client = await connectClient(server.url, { options: ERAS[era] });
  closers.push(() => client.close());
  const result = await client.callTool({ name: 'total', arguments: { year: 2030 } });
  expect(result).toMatchObject({
    content: [{ type: 'text', text: '{"year":2030,"total":42}' }],
    structuredContent: { year: 2030, total: 42 },
  });
}

test.each(Object.keys(ERAS) as (keyof typeof ERAS)[])(
  'a call of a background tool waits for its job and answers with its result (%s)',
  async (era) => {
    const engine = new MemoryJobEngine();
    await answersWithJob(engine, era);
  },
);

describeRedis('on BullMQ', ({ url, newName }) => {
  test('a call waits for its job and answers with its result', async () => {
    const engine = bullmqEngine({ connection: url, queue: newName() });
    closers.push(() => engine.close());
    await answersWithJob(engine, '2025-11-25');
  });
});

test('a client that asks for progress gets the progress of the job', async () => {
  const seen = Promise.withResolvers<void>();
  const tools = totals(async (_args, context) => {
    context.progress({ progress: 1, total: 2, message: 'half' });
    await seen.promise;
    return 'done';
  });
  const { server } = await serving(new MemoryJobEngine(), tools);
  const client = await connectClient(server.url);
  closers.push(() => client.close());
  const updates: unknown[] = [];
  const result = await client.callTool(
    { name: 'total', arguments: { year: 2030 } },
    {
      onprogress: (update) => {
        updates.push(update);
        seen.resolve();
      },
    },
  );
  expect(updates).toMatchObject([{ progress: 1, total: 2, message: 'half' }]);
  expect(result.content).toEqual([{ type: 'text', text: 'done' }]);
});

test('a failed job fails its call', async () => {
  const tools = totals(() => {
    throw new Error('the books are closed');
  });
  const { server } = await serving(new MemoryJobEngine(), tools);
  const client = await connectClient(server.url);
  closers.push(() => client.close());
  const result = await client.callTool({ name: 'total', arguments: { year: 2030 } });
  expect(result).toMatchObject({ isError: true, content: [{ text: 'the books are closed' }] });
});

test('a client that cancels its call does not cancel the job', async () => {
  const began = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const tools = totals(async () => {
    began.resolve();
    await goOn.promise;
    return 'done all the same';
  });
  const { server, completed } = await serving(new MemoryJobEngine(), tools);
  const client = await connectClient(server.url);
  closers.push(() => client.close());
  const cancelling = new AbortController();
  const call = client.callTool({ name: 'total', arguments: { year: 2030 } }, { signal: cancelling.signal });
  const cancelled = expect(call).rejects.toThrow();
  await began.promise;
  cancelling.abort();
  await cancelled;
  goOn.resolve();
  expect(await completed()).toEqual(['done all the same']);
});

test('hooks mark the result of a job only once', async () => {
  const tools = totals(() => 'from outside', { annotations: { openWorld: true } });
  const { server } = await serving(new MemoryJobEngine(), tools, [markUntrusted()] as never[]);
  const client = await connectClient(server.url);
  closers.push(() => client.close());
  const result = await client.callTool({ name: 'total', arguments: { year: 2030 } });
  expect(JSON.stringify(result.content).match(/<untrusted-/g)).toHaveLength(1);
});

test('a server that closes does not wait for a job without a worker', async () => {
  const { served } = totals(notHere);
  const { server } = await serving(new MemoryJobEngine(), { served });
  const client = await connectClient(server.url);
  closers.push(() => client.close());
  const call = client.callTool({ name: 'total', arguments: { year: 2030 } }).catch((error: Error) => error);
  await client.listTools();
  await server.mcp.close();
  expect(await call).toBeDefined();
});
