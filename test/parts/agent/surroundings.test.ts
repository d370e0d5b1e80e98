import { describe, expect, test } from '@jest/globals';
import { defineTool, type Hooks, MemoryJobEngine, Tool, Toolset, toolResult } from 'toolwright';
import { createAgent } from 'toolwright/agent';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { Recording } from '../opentelemetry/recording.js';

const MODEL = { model: 'offline' };

@Toolset()
class ShopTools {
  constructor(protected readonly shop: string = 'the corner shop') {}

  @Tool({ description: 'Name the shop', annotations: { readOnly: true } })
  shopName(): string {
    return this.shop;
  }
}

describe('createAgent: engines, hooks and telemetry', () => {
  const report = { name: 'report', description: 'Write the report', background: true };

  test('createAgent runs background tools in its engine and delivers their results to the conversation', async () => {
    const store = new MemoryRunStore();
    const script = new ScriptedProvider([
      { toolCalls: [{ name: 'report', arguments: {} }] },
      { content: 'Begun.' },
      { content: 'It is there.' },
    ]);
    await using agent = await createAgent({
      ...MODEL,
      provider: script,
      toolboxes: [defineTool({ ...report, execute: () => 'the report' })],
      permissions: { mode: 'auto' },
      engine: new MemoryJobEngine(),
      store,
      conversations: { pollMs: 5 },
    });
    const conversations = await agent.conversations();
    await conversations.prompt('c1', 'Report');
    for await (const { event } of conversations.events('c1'))
      if (event.type === 'turn-end' && event.content === 'It is there.') break;
    const { jobs } = await store.jobs.listJobs();
    expect(jobs.map(({ job, status }) => [job.tool, status])).toEqual([['report', 'completed']]);
    expect((await conversations.snapshot('c1'))?.messages.at(-2)?.content).toContain('the report');
  });

  test('createAgent runs background calls of its registry in its engine and needs a store with jobs', async () => {
    const store = new MemoryRunStore();
    const options = {
      ...MODEL,
      provider: new ScriptedProvider([]),
      toolboxes: [defineTool({ ...report, execute: () => 'the report' })],
      permissions: { mode: 'auto' },
      engine: new MemoryJobEngine(),
    } as const;
    await using agent = await createAgent({ ...options, store });
    expect(await agent.registry.execute('report', {})).toMatchObject({ async: true, isError: false });
    const completed = async () => (await store.jobs.listJobs({ status: 'completed' })).jobs;
    expect((await store.jobs.listJobs()).jobs).toMatchObject([{ job: { tool: 'report' } }]);
    // Conversations that take turns also run jobs.
    await agent.conversations();
    while ((await completed()).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await completed()).toMatchObject([{ result: { forLLM: 'the report' } }]);
    const jobless = Object.assign(new MemoryRunStore(), { jobs: undefined }) as never;
    await expect(createAgent({ ...options, store: jobless })).rejects.toThrow('store does not support jobs');
  });

  test('createAgent runs its hooks for calls of runs, of its registry and of jobs', async () => {
    const heard: string[] = [];
    const hooks: Hooks = {
      name: 'audit',
      beforeRequest: () => void heard.push('request'),
      afterCall: ({ name, result }) => {
        heard.push(name);
        return { result: toolResult(result.forLLM.replace('secret', '[masked]')) };
      },
    };
    const store = new MemoryRunStore();
    const script = new ScriptedProvider([
      { toolCalls: [{ name: 'shop_name', arguments: {} }] },
      { content: 'Seen.' },
      { toolCalls: [{ name: 'report', arguments: {} }] },
      { content: 'Begun.' },
      { content: 'It is there.' },
    ]);
    await using agent = await createAgent({
      ...MODEL,
      provider: script,
      toolboxes: [new ShopTools('secret'), defineTool({ ...report, execute: () => 'a secret report' })],
      permissions: { mode: 'auto' },
      hooks: [hooks],
      engine: new MemoryJobEngine(),
      store,
      conversations: { pollMs: 5 },
    });
    const run = await agent.run('Hi');
    expect([run.toolCalls[0]?.result.forLLM, heard]).toEqual([
      '[masked]',
      ['request', 'shop_name', 'request'],
    ]);
    expect((await agent.registry.execute('shop_name', {})).forLLM).toBe('[masked]');
    const conversations = await agent.conversations();
    await conversations.prompt('c1', 'Report');
    for await (const { event } of conversations.events('c1'))
      if (event.type === 'turn-end' && event.content === 'It is there.') break;
    expect((await conversations.snapshot('c1'))?.messages.at(-2)?.content).toContain('a [masked] report');
  });

  test('createAgent records its runs, requests and calls with its telemetry', async () => {
    const recording = new Recording();
    try {
      await using agent = await createAgent({
        ...MODEL,
        provider: new ScriptedProvider([
          { toolCalls: [{ name: 'shop_name', arguments: {} }] },
          { content: 'Hi' },
        ]),
        toolboxes: [new ShopTools()],
        telemetry: 'opentelemetry',
      });
      await agent.run('Hi');
      expect(recording.names).toEqual([
        'invoke_agent',
        'chat offline',
        'execute_tool shop_name',
        'chat offline',
      ]);
    } finally {
      await recording.end();
    }
  });
});
