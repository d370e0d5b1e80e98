import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  type Answer,
  Conversation,
  Conversations,
  defineTool,
  discoverTools,
  type LLMRequest,
  type LoopEvent,
  MemoryJobEngine,
  resumeStoredRun,
  resumeToolLoop,
  runJobs,
  runToolLoop,
  streamToolLoop,
  TaskQueue,
  ToolRegistry,
  type ToolResult,
} from 'toolwright';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { Agents, AgentTools, agentTools } from 'toolwright/toolbox/agents';
import { Permissions } from 'toolwright/toolbox/permissions';
import { agentOf, calling, gate, hello, payTool, scripted, tableOf } from './agents.js';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function databasePath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agents-'));
  folders.push(folder);
  return join(folder, 'runs.sqlite');
}

function answers(pending: readonly { readonly id: string }[] | undefined, answer: object): readonly Answer[] {
  return (pending ?? []).map(({ id }) => ({ id, ...answer }) as Answer);
}

/** A model that never answers, with promises for its request and its abort. */
function endless() {
  const asked = gate();
  const ended = gate();
  const chat = ({ signal }: LLMRequest) => {
    asked.open();
    return new Promise<never>((_resolve, reject) => {
      signal?.addEventListener('abort', () => {
        ended.open();
        reject(signal.reason);
      });
    });
  };
  return { chat, asked: asked.opened, ended: ended.opened };
}

describe('delegate', () => {
  test('runs the named agent with its own prompt, model and tools, and returns its answer', async () => {
    const research = scripted(calling('look', {}), { content: 'It is 7.' });
    const look = {
      name: 'look',
      description: 'Look',
      parameters: { type: 'object' },
      execute: () => 'seen 7',
    };
    const { tools } = tableOf({
      research: agentOf(research, {
        systemPrompt: 'Be exact.',
        tools: [look],
        llmOptions: { temperature: 0 },
      }),
      pay: agentOf(scripted({ content: 'no' })),
    });
    const provider = scripted(calling('delegate', { agent: 'research', task: 'Look it up' }), {
      content: 'Seven.',
    });
    const run = await runToolLoop({ provider, model: 'large', tools }, hello);
    expect(run).toMatchObject({ status: 'completed', content: 'Seven.', usage: { totalTokens: 60 } });
    expect(run.toolCalls).toMatchObject([
      { name: 'delegate', status: 'success', result: { forLLM: 'It is 7.' } },
    ]);
    expect(research.asked[0]).toMatchObject({ model: 'small', options: { temperature: 0 } });
    expect(research.asked[0]?.messages).toEqual([
      { role: 'system', content: 'Be exact.' },
      { role: 'user', content: 'Look it up' },
    ]);
  });

  test('the events of the agent arrive in the calling run, within the call', async () => {
    const { tools } = tableOf({ a: agentOf(scripted({ content: 'done' })) });
    const provider = scripted(calling('delegate', { agent: 'a', task: 'x' }, 'c1'), { content: 'ok' });
    const inner: string[] = [];
    for await (const event of streamToolLoop({ provider, model: 'm', tools }, hello))
      if (event.type === 'call-event') inner.push(`${event.callId} ${event.tool} ${event.event.type}`);
    expect(inner).toEqual(expect.arrayContaining(['c1 delegate run-start', 'c1 delegate run-end']));
  });

  test('returns the output of an agent that has an output schema', async () => {
    const output = { type: 'object', properties: { sum: { type: 'integer' } }, required: ['sum'] } as const;
    const { tools } = tableOf({ a: agentOf(scripted(calling('final_answer', { sum: 7 })), { output }) });
    const provider = scripted(calling('delegate', { agent: 'a', task: 'x' }), { content: 'ok' });
    const run = await runToolLoop({ provider, model: 'm', tools }, hello);
    expect(run.toolCalls[0]?.result.forLLM).toBe('{"sum":7}');
  });

  test('the description lists the agents, and an unknown name is an error that lists them', async () => {
    const { tools, table } = tableOf({
      research: agentOf(scripted({ content: '' }), { description: 'Finds out' }),
      pay: agentOf(scripted({ content: '' }), { description: 'Pays' }),
    });
    const registry = new ToolRegistry().register(...tools);
    expect(registry.get('delegate')?.description).toContain('- research: Finds out\n- pay: Pays');
    expect(registry.offered('delegate')?.parameters).toMatchObject({
      properties: { agent: { enum: ['research', 'pay'] } },
    });
    for (const agent of ['reserch', 'constructor', '__proto__']) {
      const result = await registry.execute('delegate', { agent, task: 'x' });
      expect(result).toMatchObject({ isError: true, forLLM: expect.stringContaining('research') });
      expect(result.forLLM).toContain('pay');
    }
    const container = { resolve: <Instance>() => new AgentTools(table) as Instance };
    const plain = new ToolRegistry().register(...discoverTools({ toolsets: [AgentTools], container }));
    expect((await plain.execute('delegate', { agent: 'toString', task: 'x' })).forLLM).toBe(
      "There is no agent 'toString'. The agents are: research, pay.",
    );
    expect((await plain.execute('list_agents', {})).forLLM).toBe(
      'Agents:\n- research: Finds out\n- pay: Pays\n\nStarted:\nNo agent was started.',
    );
  });

  test('an agent that waits suspends the run, and another process resumes both', async () => {
    const path = databasePath();
    const { pay, ran } = payTool();
    const first = scripted(calling('pay', { amount: 7 }, 'i1'));
    const config = (agent: ReturnType<typeof scripted>, provider: ReturnType<typeof scripted>) => ({
      provider,
      model: 'large',
      tools: tableOf({ clerk: agentOf(agent, { tools: [pay] }), other: agentOf(scripted({ content: '' })) })
        .tools,
    });
    const store = new SqliteRunStore({ path });
    const outer = scripted(calling('delegate', { agent: 'clerk', task: 'Pay' }, 'o1'));
    const run = await runToolLoop({ ...config(first, outer), store }, hello);
    expect(run.pending).toMatchObject([{ tool: 'pay', path: [{ callId: 'o1', tool: 'delegate' }] }]);
    store.close();
    const again = new SqliteRunStore({ path });
    const rest = scripted({ content: 'Paid 8.' });
    const done = await resumeStoredRun(
      config(rest, scripted({ content: 'All done.' })),
      { store: again, runId: run.state?.runId as string },
      answers(run.pending, { approved: true, arguments: { amount: 8 } }),
    );
    again.close();
    expect(done).toMatchObject({ status: 'completed', content: 'All done.' });
    expect(ran).toEqual([{ amount: 8 }]);
    expect(rest.asked[0]?.messages.at(-1)?.content).toContain('paid 1');
  });

  test('edited arguments are validated by the tools of the waiting agent', async () => {
    const { pay, ran } = payTool();
    const { tools } = tableOf({ clerk: agentOf(scripted(calling('pay', { amount: 7 })), { tools: [pay] }) });
    const provider = scripted(calling('delegate', { agent: 'clerk', task: 'Pay' }));
    const config = { provider, model: 'm', tools };
    const run = await runToolLoop(config, hello);
    const wrong = answers(run.pending, { approved: true, arguments: { amount: 'x' } });
    await expect(resumeToolLoop(config, run.state, wrong)).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining('amount: must be integer'),
    });
    expect(ran).toEqual([]);
  });

  test('agents delegate only to the agents they may use, and no deeper than maxDepth', async () => {
    const chief = scripted(calling('clerk', { task: 'do it' }), { content: 'chief done' });
    const clerk = scripted(calling('chief', { task: 'no, you' }), { content: 'clerk done' });
    const { tools } = tableOf(
      { chief: agentOf(chief, { agents: ['clerk'] }), clerk: agentOf(clerk, { agents: ['chief'] }) },
      { maxDepth: 2 },
    );
    const provider = scripted(calling('delegate', { agent: 'chief', task: 'x' }), { content: 'ok' });
    const run = await runToolLoop({ provider, model: 'm', tools }, hello);
    expect(run.toolCalls[0]?.result.forLLM).toBe('chief done');
    expect(clerk.asked[1]?.messages.at(-1)?.content).toContain('agents called each other 2 levels deep');
  });

  test('the policy of the calling run applies to the calls of its agents', async () => {
    const { pay, ran } = payTool({ approval: false });
    const clerk = scripted(calling('pay', { amount: 7 }), { content: 'I may not.' });
    const { tools } = tableOf({ clerk: agentOf(clerk, { tools: [pay] }) });
    const provider = scripted(calling('delegate', { agent: 'clerk', task: 'Pay' }), { content: 'ok' });
    const permissions = new Permissions({ mode: 'auto', rules: [{ decision: 'deny', tool: 'pay' }] });
    await runToolLoop({ provider, model: 'm', tools, policy: permissions.policy }, hello);
    expect(ran).toEqual([]);
    expect(clerk.asked[1]?.messages.at(-1)?.content).toContain("'pay' was refused");
  });

  test('maxUnderWay limits the running agents of a conversation, and a resumed agent counts only once', async () => {
    const { pay, ran } = payTool();
    const { tools } = tableOf(
      { clerk: agentOf(scripted(calling('pay', { amount: 7 }), { content: 'Paid.' }), { tools: [pay] }) },
      { maxUnderWay: 1 },
    );
    const two = [1, 2].map((number) => ({
      id: `c${number}`,
      name: 'delegate',
      arguments: { agent: 'clerk', task: 'Pay' },
    }));
    const config = { provider: scripted({ toolCalls: two } as never, { content: 'ok' }), model: 'm', tools };
    const run = await runToolLoop(config, hello, { conversationId: 'c' });
    const done = await resumeToolLoop(config, run.state, answers(run.pending, { approved: true }), {
      conversationId: 'c',
    });
    expect(done.toolCalls.map(({ result }) => result.forLLM)).toEqual([
      'Paid.',
      expect.stringContaining('1 agents are running; the limit is 1'),
    ]);
    expect(ran).toHaveLength(1);
  });
});

describe('delegate and budgets', () => {
  test('an agent that exceeds its own budget ends, and the calling run continues', async () => {
    const agent = scripted(...Array.from({ length: 9 }, () => calling('look', {})));
    const look = { name: 'look', description: 'Look', parameters: { type: 'object' }, execute: () => 'seen' };
    const { tools } = tableOf({ a: agentOf(agent, { tools: [look], budget: { steps: 2 } }) });
    const provider = scripted(calling('delegate', { agent: 'a', task: 'x' }), { content: 'ok' });
    const run = await runToolLoop({ provider, model: 'm', tools, budget: { steps: 10 } }, hello);
    expect(run).toMatchObject({ status: 'completed', content: 'ok', spent: { steps: 4 } });
    expect(run.toolCalls[0]?.result.forLLM).toContain('of 2 requests, 0 are left');
  });

  test('the usage of agents counts for the calling run, which ends if its budget is exceeded', async () => {
    const agent = scripted({ content: 'done' });
    const { tools } = tableOf({ a: agentOf(agent) });
    const provider = scripted(calling('delegate', { agent: 'a', task: 'x' }), { content: 'never' });
    const run = await runToolLoop({ provider, model: 'm', tools, budget: { steps: 2 } }, hello);
    expect(run).toMatchObject({ status: 'budget', spent: { steps: 2 } });
    expect(agent.asked).toHaveLength(1);
  });

  test('the budget `total` applies to all agents in all runs of a conversation', async () => {
    const store = new MemoryRunStore();
    const agent = scripted(...Array.from({ length: 9 }, () => ({ content: 'done' })));
    const { tools } = tableOf({ a: agentOf(agent) }, { total: { steps: 2 }, store });
    const ask = async (conversationId: string): Promise<string | undefined> => {
      const provider = scripted(calling('delegate', { agent: 'a', task: 'x' }), { content: 'ok' });
      const run = await runToolLoop({ provider, model: 'm', tools, store }, hello, { conversationId });
      return run.toolCalls[0]?.result.forLLM;
    };
    expect([await ask('c1'), await ask('c1'), await ask('c1'), await ask('c2')]).toEqual([
      'done',
      'done',
      expect.stringContaining('of 2 requests, 0 are left'),
      'done',
    ]);
  });
});

describe('a remembered approval inside agents', () => {
  const remember = { scopes: ['run', 'conversation', 'user'], by: [] } as const;
  const setup = (store: MemoryRunStore | SqliteRunStore) => {
    const { pay, ran } = payTool({ approval: { remember } } as never);
    const ask = async (scope: object, pays = 1) => {
      const calls = Array.from({ length: pays }, (_, index) =>
        calling('pay', { amount: index }, `p${index}`),
      );
      const clerk = scripted(...calls, { content: 'Paid.' });
      const { tools } = tableOf({ clerk: agentOf(clerk, { tools: [pay] }) });
      const provider = scripted(calling('delegate', { agent: 'clerk', task: 'Pay' }), { content: 'ok' });
      const config = { provider, model: 'm', tools, store };
      return { config, run: await runToolLoop(config, hello, scope) };
    };
    return { ran, ask };
  };

  test('with scope conversation allows later calls of agents in the same conversation only', async () => {
    const store = new SqliteRunStore({ path: databasePath() });
    const { ran, ask } = setup(store);
    const scope = { conversationId: 'c1' };
    const { config, run } = await ask(scope);
    expect(run.pending).toMatchObject([{ tool: 'pay', mayRemember: { scopes: remember.scopes } }]);
    const yes = answers(run.pending, { approved: true, remember: { scope: 'conversation' } });
    await resumeToolLoop(config, run.state, yes, { scope, answeredBy: 'ann' });
    expect((await ask(scope)).run.status).toBe('completed');
    expect((await ask({ conversationId: 'c2' })).run.status).toBe('suspended');
    expect((await ask({})).run.status).toBe('suspended');
    expect(ran).toHaveLength(2);
    expect(await store.approvals.listApprovals()).toMatchObject([
      { tool: 'pay', scope: 'conversation', subject: 'c1', answeredBy: 'ann' },
    ]);
    store.close();
  });

  test('with scope run applies to the run of the agent and ends with it', async () => {
    const { ran, ask } = setup(new MemoryRunStore());
    const { config, run } = await ask({}, 2);
    const yes = answers(run.pending, { approved: true, remember: { scope: 'run' } });
    const done = await resumeToolLoop(config, run.state, yes);
    expect(done.status).toBe('completed');
    expect(ran).toEqual([{ amount: 0 }, { amount: 1 }]);
    expect((await ask({})).run.status).toBe('suspended');
  });

  test('with scope user applies to the owner of the calling run', async () => {
    const { ask } = setup(new MemoryRunStore());
    const scope = { owner: { user: 'u1' } };
    const { config, run } = await ask(scope);
    const yes = answers(run.pending, { approved: true, remember: { scope: 'user' } });
    await resumeToolLoop(config, run.state, yes, { scope });
    expect((await ask(scope)).run.status).toBe('completed');
    expect((await ask({ owner: { user: 'u2' } })).run.status).toBe('suspended');
  });
});

describe('spawn_agent', () => {
  test('continues after its call, and its answer starts a turn of the conversation', async () => {
    const hold = gate();
    const research = scripted(async () => {
      await hold.opened;
      return { content: 'It is 7.' };
    });
    const { tools } = tableOf({ research: agentOf(research) });
    const provider = scripted(
      calling('spawn_agent', { agent: 'research', task: 'Look it\nup' }),
      { content: 'I have asked.' },
      calling('list_agents', {}),
      { content: 'It is under way.' },
      { content: 'It says 7.' },
      calling('agent_status', { id: 'agent_1' }),
      { content: 'As I said.' },
    );
    const conversation = new Conversation({ provider, model: 'm', tools });
    expect(await conversation.prompt('Find out')).toMatchObject({
      content: 'I have asked.',
      toolCalls: [{ status: 'started', result: { forLLM: expect.stringContaining('agent_1 was started') } }],
    });
    const listed = await conversation.prompt('And?');
    expect(listed.toolCalls[0]?.result.forLLM).toMatch(
      /Started:\nagent_1 \(research\): running, \d+\.\d s: Look it\\nup$/,
    );
    hold.open();
    await conversation.idle({ tasks: true });
    expect(conversation.messages.at(-1)).toMatchObject({ content: 'It says 7.' });
    expect(conversation.messages.at(-2)?.content).toContain('It is 7.');
    const told = await conversation.prompt('Sure?');
    expect(told.toolCalls[0]?.result.forLLM).toMatch(/^agent_1 \(research\): done, .*\nIt is 7\.$/);
  });

  test('in a stored conversation, its answer starts a turn and its events are not stored', async () => {
    const hold = gate();
    const research = scripted(async () => {
      await hold.opened;
      return { content: 'It is 7.' };
    });
    const { tools } = tableOf({ research: agentOf(research) });
    const provider = scripted(
      calling('spawn_agent', { agent: 'research', task: 'Look it up' }),
      { content: 'I have asked.' },
      { content: 'It says 7.' },
    );
    const store = new SqliteRunStore({ path: databasePath() });
    const conversations = new Conversations({ store, config: { provider, model: 'm', tools } });
    await conversations.prompt('c', 'Find out');
    await conversations.idle('c');
    hold.open();
    const told: string[] = [];
    for await (const { event } of conversations.events('c', {})) {
      told.push(String(event.type));
      if (event.type === 'turn-end' && told.filter((type) => type === 'turn-end').length === 2) break;
    }
    const { messages = [] } = (await conversations.snapshot('c')) ?? {};
    expect(messages.at(-1)?.content).toBe('It says 7.');
    expect(messages.at(-2)?.content).toContain('It is 7.');
    expect(told.filter((type) => type === 'call-event').length).toBeLessThan(3);
    await conversations.close();
    store.close();
  });

  test('an aborted turn ends the agents that it delegated to and started, but not those of earlier turns', async () => {
    const [delegated, started, later] = [endless(), endless(), endless()];
    const { tools } = tableOf({
      delegated: agentOf(delegated),
      started: agentOf(started),
      later: agentOf(later),
    });
    const provider = scripted(
      calling('spawn_agent', { agent: 'later', task: 'x' }, 'c0'),
      { content: 'begun' },
      calling('spawn_agent', { agent: 'started', task: 'x' }, 'c1'),
      calling('delegate', { agent: 'delegated', task: 'x' }, 'c2'),
      { content: 'it was ended' },
    );
    const conversation = new Conversation({ provider, model: 'm', tools });
    await conversation.prompt('first');
    const turn = conversation.prompt('second');
    await Promise.all([delegated.asked, started.asked, later.asked]);
    const completed = new Promise<string>((resolve) => {
      conversation.subscribe((event) => event.type === 'task-end' && resolve(event.task.callId));
    });
    conversation.abort(new Error('enough'));
    expect((await turn).status).toBe('aborted');
    await Promise.all([delegated.ended, started.ended]);
    expect(await completed).toBe('c1');
    expect(conversation.tasks.map(({ callId }) => callId)).toEqual(['c0']);
    conversation.close();
    await later.ended;
  });

  test('cancel_agent ends the agent with a completion; other conversations can neither see nor cancel it', async () => {
    const model = endless();
    const { tools } = tableOf({ slow: agentOf(model) });
    const registry = new ToolRegistry().register(...tools);
    const completions: string[] = [];
    const tasks = new TaskQueue();
    const done = new Promise<void>((resolve) => {
      void registry.executeWithContext(
        'spawn_agent',
        { agent: 'slow', task: 'x' },
        { conversationId: 'c1' },
        (_context, { forLLM }) => {
          completions.push(forLLM);
          resolve();
        },
      );
    });
    await model.asked;
    const call = (name: string, args: object, conversationId: string): Promise<ToolResult> =>
      registry.executeWithContext(name, args, { conversationId });
    expect((await call('cancel_agent', { id: 'agent_1' }, 'c2')).isError).toBe(true);
    expect((await call('agent_status', { id: 'agent_1' }, 'c2')).forLLM).toBe(
      "There is no 'agent_1'. No agent was started.",
    );
    expect((await call('cancel_agent', { id: 'agent_1' }, 'c1')).forLLM).toBe('agent_1 was cancelled.');
    await done;
    await model.ended;
    expect(completions).toEqual([expect.stringContaining("The agent 'slow' did not finish")]);
    expect((await call('agent_status', { id: 'agent_1' }, 'c1')).forLLM).toContain('cancelled');
    expect(tasks.tasks).toEqual([]);
  });

  test('agents without a conversation are visible only to their owner', async () => {
    const { tools } = tableOf({ a: agentOf(scripted({ content: 'The secret is 7.' })) });
    const registry = new ToolRegistry().register(...tools);
    const call = (name: string, args: object, user: string): Promise<ToolResult> =>
      registry.executeWithContext(name, args, { owner: { user } });
    await call('spawn_agent', { agent: 'a', task: 'Tell the secret' }, 'u1');
    expect((await call('agent_status', { id: 'agent_1' }, 'u1')).forLLM).toContain('The secret is 7.');
    expect((await call('agent_status', { id: 'agent_1' }, 'u2')).forLLM).toBe(
      "There is no 'agent_1'. No agent was started.",
    );
    expect((await call('list_agents', {}, 'u2')).forLLM).not.toContain('secret');
    expect((await call('cancel_agent', { id: 'agent_1' }, 'u2')).isError).toBe(true);
  });

  test('an abort of the starting run ends running and waiting agents', async () => {
    const model = endless();
    const { tools, table } = tableOf({ slow: agentOf(model) });
    const stop = new AbortController();
    const completions: ToolResult[] = [];
    const two = [1, 2].map((number) => ({
      id: `c${number}`,
      name: 'spawn_agent',
      arguments: { agent: 'slow', task: 'x' },
    }));
    const provider = scripted({ toolCalls: two } as never, async () => {
      await model.asked;
      stop.abort(new Error('enough'));
      return { content: 'never' };
    });
    const tasks = new TaskQueue({ maxRunning: 1 });
    const run = await runToolLoop(
      { provider, model: 'm', tools, tasks, onAsyncResult: (_, result) => completions.push(result) },
      hello,
      { signal: stop.signal },
    );
    expect(run.status).toBe('aborted');
    await model.ended;
    await tasks.idle();
    expect(completions.map(({ isError }) => isError)).toEqual([true, true]);
    expect(table.describeSpawned(undefined).match(/cancelled/g)).toHaveLength(2);
  });

  test('waits for the agent if nothing receives completions', async () => {
    const { tools } = tableOf({ a: agentOf(scripted({ content: 'done' })) });
    const provider = scripted(calling('spawn_agent', { agent: 'a', task: 'x' }), { content: 'ok' });
    const run = await runToolLoop({ provider, model: 'm', tools }, hello);
    expect(run.toolCalls).toMatchObject([{ status: 'success', result: { forLLM: 'done' } }]);
  });

  test('the agent has the policy of the starting run, which does not receive its events', async () => {
    const { pay, ran } = payTool({ approval: false });
    const seen: unknown[] = [];
    const hold = gate();
    const clerk = scripted(
      async () => {
        await hold.opened;
        return calling('pay', { amount: 7 });
      },
      { content: 'I may not.' },
    );
    const { tools } = tableOf({ clerk: agentOf(clerk, { tools: [pay] }) });
    const provider = scripted(calling('spawn_agent', { agent: 'clerk', task: 'Pay' }), { content: 'ok' });
    const completion = new Promise<ToolResult>((resolve) => {
      const policy = ({ tool }: { readonly tool: { readonly name: string } }) =>
        tool.name !== 'pay' || { allow: false as const };
      const config = {
        provider,
        model: 'm',
        tools,
        policy,
        onAsyncResult: (_: unknown, result: ToolResult) => resolve(result),
      };
      void (async () => {
        for await (const event of streamToolLoop(config, hello) as AsyncIterable<LoopEvent>)
          if (event.type === 'call-event') seen.push(event.event.type);
        hold.open();
      })();
    });
    expect((await completion).forLLM).toBe('I may not.');
    expect(ran).toEqual([]);
    expect(seen).not.toContain('run-end');
  });

  test('an agent that needs an answer ends with an error and leaves nothing in the store', async () => {
    const { pay, ran } = payTool();
    const store = new MemoryRunStore();
    const { tools } = tableOf({ clerk: agentOf(scripted(calling('pay', { amount: 7 })), { tools: [pay] }) });
    const provider = scripted(calling('spawn_agent', { agent: 'clerk', task: 'Pay' }), { content: 'ok' });
    const completion = await new Promise<ToolResult>((resolve) => {
      void runToolLoop(
        { provider, model: 'm', tools, store, onAsyncResult: (_, result) => resolve(result) },
        hello,
      );
    });
    expect(completion).toMatchObject({ isError: true, forLLM: expect.stringContaining("about 'pay'") });
    expect(ran).toEqual([]);
    expect(await store.list()).toEqual({ runs: [] });
  });

  test('maxUnderWay also limits started agents, and dispose ends all', async () => {
    const model = endless();
    const { tools, table } = tableOf({ slow: agentOf(model) }, { maxUnderWay: 1 });
    const registry = new ToolRegistry().register(...tools);
    const ended = gate();
    const spawn = () =>
      registry.executeWithContext('spawn_agent', { agent: 'slow', task: 'x' }, {}, () => ended.open());
    await spawn();
    await model.asked;
    expect(await spawn()).toMatchObject({
      isError: true,
      forLLM: expect.stringContaining('1 agents are running'),
    });
    table.dispose();
    await ended.opened;
    expect(table.describeSpawned(undefined)).toContain('cancelled');
  });
});

describe('agentTools', () => {
  test('agentTools omits what permissions deny', () => {
    const table = new Agents({
      agents: { deploy: agentOf(scripted({ content: '' })), look: agentOf(scripted({ content: '' })) },
    });
    const namesIn = (rules: ConstructorParameters<typeof Permissions>[0]) =>
      agentTools(table, { permissions: new Permissions(rules) }).map(({ name, parameters }) => [
        name,
        (parameters as { properties: { agent?: { enum: string[] } } }).properties.agent?.enum,
      ]);
    const deny = (rule: object) => ({ mode: 'auto', rules: [{ decision: 'deny', ...rule }] }) as const;
    expect(namesIn(deny({ arguments: { agent: 'deploy' } })).slice(0, 2)).toEqual([
      ['delegate', ['look']],
      ['spawn_agent', ['look']],
    ]);
    expect(namesIn(deny({ tool: 'spawn_agent' })).map(([name]) => name)).toEqual([
      'delegate',
      'list_agents',
      'agent_status',
      'cancel_agent',
    ]);
    expect(namesIn({ mode: 'read-only' })).toEqual([]);
    expect(agentTools(table, { names: ['look'] })[0]?.description).not.toContain('deploy');
    expect(() => agentTools({ agents: {} } as never)).toThrow(/agents.*new Agents\(/s);
    expect(() => agentTools(table, { names: ['lok'] })).toThrow("there is no agent 'lok'");
  });

  test('new Agents reports all errors of a table together', () => {
    const provider = scripted({ content: '' });
    const wrong = () =>
      new Agents({
        agents: {
          'no name': agentOf(provider),
          strange: agentOf(provider, { agents: ['nobody'] }),
          dear: agentOf(provider, { model: 'gpt-unknown', budget: { cost: 1 } }),
          empty: { description: '', provider, model: 'm' },
          shared: agentOf(provider, { agents: ['strange'], tools: new ToolRegistry() }),
        },
        total: { steps: 3 },
      });
    for (const said of [
      'its name is not a valid tool name',
      "it may ask 'nobody', which is not another agent of the table",
      "no price for its model 'gpt-unknown'",
      'description',
      'its tools must be a list',
      'store is missing; total needs it',
    ])
      expect(wrong).toThrow(said);
    expect(() => new Agents({ agents: {} })).toThrow('agents');
    expect(() => new Agents({ agents: { a: agentOf(provider) }, total: { stepz: 1 } } as never)).toThrow(
      'total',
    );
  });
});

test('an agent can run inside a background tool as a job of an engine', async () => {
  const store = new MemoryRunStore();
  const engine = new MemoryJobEngine();
  const { table } = tableOf({ research: agentOf(scripted({ content: 'It is known.' })) });
  const later = defineTool({
    name: 'research_later',
    description: 'Looks into it',
    parameters: { type: 'object', properties: { task: { type: 'string' } }, required: ['task'] },
    background: true,
    execute: ({ task }, context) => table.delegate({ agent: 'research', task: String(task) }, context),
  });
  const provider = scripted(calling('research_later', { task: 'Look' }), { content: 'Later.' });
  const run = await runToolLoop({ provider, model: 'm', tools: [later], engine, store }, hello);
  const id = run.toolCalls[0]?.taskId ?? '';
  expect(store.jobs.job(id)).toMatchObject({ status: 'waiting', job: { arguments: { task: 'Look' } } });
  const heard = Promise.withResolvers<ToolResult>();
  const onAsyncResult = ({ result }: { readonly result: ToolResult }): void => heard.resolve(result);
  const worker = await runJobs({ engine, store, tools: [later], onAsyncResult });
  expect((await heard.promise).forLLM).toBe('It is known.');
  await worker.close();
  await engine.close();
});
