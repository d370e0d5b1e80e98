import { describe, expect, test } from '@jest/globals';
import { agentAsTool, type Hooks, Param, type PendingCall, Tool, Toolset } from 'toolwright';
import { createAgent } from 'toolwright/agent';
import { ScriptedProvider } from 'toolwright/testing';

@Toolset()
class DeployTools {
  readonly deployed: string[] = [];

  @Tool('Deploy a branch')
  deploy(@Param({ description: 'Branch', required: true }) branch: string): string {
    this.deployed.push(branch);
    return `deployed ${branch}`;
  }
}

const deploying = () =>
  new ScriptedProvider([
    { toolCalls: [{ name: 'deploy', arguments: { branch: 'main' } }] },
    { content: 'Done.' },
  ]);
const delegating = () =>
  new ScriptedProvider([
    { toolCalls: [{ name: 'delegate', arguments: { agent: 'operator', task: 'Deploy main' } }] },
    { content: 'It is deployed.' },
  ]);

function approvals(pending: readonly PendingCall[] | undefined): readonly { id: string; approved: true }[] {
  return (pending ?? []).map(({ id }) => ({ id, approved: true as const }));
}

describe('createAgent with other agents', () => {
  test('createAgent accepts other agents as a toolbox and applies its permissions to their calls', async () => {
    const tools = new DeployTools();
    await using agent = await createAgent({
      provider: delegating(),
      model: 'front',
      toolboxes: [
        {
          agents: {
            agents: { operator: { description: 'Deploys', provider: deploying(), toolboxes: [tools] } },
          },
        },
      ],
      permissions: { rules: [{ decision: 'allow', tool: 'delegate' }] },
    });
    expect(agent.registry.list()).toEqual(
      expect.arrayContaining(['delegate', 'spawn_agent', 'list_agents', 'agent_status', 'cancel_agent']),
    );
    const run = await agent.run('Deploy main');
    expect([run.status, tools.deployed]).toEqual(['suspended', []]);
    expect(run.pending).toEqual([
      expect.objectContaining({ tool: 'deploy', message: "calls deploy: mode 'ask' asks about it" }),
    ]);
    const resumed = await agent.resume(run.state, approvals(run.pending));
    expect([resumed.content, tools.deployed]).toEqual(['It is deployed.', ['main']]);
  });

  test('createAgent applies its permissions to the calls of an agent that is a custom tool', async () => {
    const tools = new DeployTools();
    const provider = deploying();
    const operator = agentAsTool({
      ...{ name: 'operator', description: 'Deploys', provider, model: 'operator' },
      tools: (await createAgent({ provider: 'offline', model: 'x', toolboxes: [tools] })).registry.tools(),
    });
    const asking = new ScriptedProvider([
      { toolCalls: [{ name: 'operator', arguments: { task: 'Deploy main' } }] },
      { content: 'No.' },
    ]);
    await using agent = await createAgent({
      ...{ provider: asking, model: 'front', toolboxes: [operator] },
      permissions: { mode: 'auto', rules: [{ decision: 'deny', tool: 'deploy', reason: 'not today' }] },
    });
    expect((await agent.run('Deploy main')).content).toBe('No.');
    expect([tools.deployed, provider.requests[1]?.messages.at(-1)?.content]).toEqual([
      [],
      expect.stringContaining('not today'),
    ]);
  });

  test('createAgent evaluates permissions once for each call, and also applies a custom policy', async () => {
    const judged: string[] = [];
    const tools = new DeployTools();
    await using agent = await createAgent({
      ...{ provider: deploying(), model: 'front', toolboxes: [tools] },
      permissions: { mode: 'auto' },
      policy: ({ tool }) => {
        judged.push(tool.name);
        return { allow: false, reason: 'the policy says no' };
      },
    });
    await agent.run('Deploy main');
    expect([tools.deployed, judged]).toEqual([[], ['deploy']]);
    expect((await agent.registry.execute('deploy', { branch: 'x' })).forLLM).toContain('the policy says no');
  });

  test('createAgent runs its hooks once for each request and call of other agents', async () => {
    const tools = new DeployTools();
    const seen: string[] = [];
    const mask: Hooks = {
      name: 'mask',
      beforeRequest: ({ model }) => {
        seen.push(`asks ${model}`);
      },
      beforeCall: ({ name }) => {
        seen.push(`calls ${name}`);
        return name === 'deploy' ? { arguments: { branch: 'masked' } } : undefined;
      },
    };
    const provider = new ScriptedProvider([
      ...[
        { toolCalls: [{ name: 'delegate', arguments: { agent: 'operator', task: 'Deploy main' } }] },
        { toolCalls: [{ name: 'deploy', arguments: { branch: 'main' } }] },
        { content: 'Done.' },
        { content: 'It is deployed.' },
      ],
    ]);
    const operator = { description: 'Deploys', model: 'back', toolboxes: [tools] };
    await using agent = await createAgent({
      ...{ provider, model: 'front', toolboxes: [{ agents: { agents: { operator } } }] },
      permissions: { mode: 'auto' },
      hooks: [mask],
    });
    expect((await agent.run('Deploy main')).content).toBe('It is deployed.');
    expect([tools.deployed, seen]).toEqual([
      ['masked'],
      ['asks front', 'calls delegate', 'asks back', 'calls deploy', 'asks back', 'asks front'],
    ]);
  });

  test('createAgent reports faults of other agents, which inherit its provider and model', async () => {
    const options = { provider: 'offline' as const, model: 'offline' };
    const agents = {
      one: { description: 'One', toolboxes: ['tasks', 'fils'] },
      two: 'two',
      three: { description: 'Three', provider: 'opnai' },
    };
    const made = createAgent({ ...options, toolboxes: [{ agents: { agents } }] } as never);
    await expect(made).rejects.toMatchObject({
      code: 521,
      faults: [
        {
          option: 'toolboxes[0].agents.agents.one.toolboxes[1]',
          problem: expect.stringContaining("'files'"),
        },
        { option: 'toolboxes[0].agents.agents.two', problem: 'agents.two is not an object' },
        { option: 'toolboxes[0].agents.agents.three.provider', problem: expect.stringContaining("'openai'") },
      ],
    });
    const unkept = { option: 'toolboxes[0]', problem: 'the agent has no store that supports budgets' };
    for (const [settings, faults] of [
      [
        { agents, total: { calls: 3 } },
        [
          'toolboxes[0].agents.agents.one.toolboxes[1]',
          'toolboxes[0].agents.agents.two',
          'toolboxes[0].agents.agents.three.provider',
        ],
      ],
      [
        { agents: { one: { description: '' } }, total: { cost: 3 }, maxDepth: 0 },
        ['toolboxes[0].agents.maxDepth', 'toolboxes[0].agents.agents.one.description'],
      ],
      [
        { agents: { one: { description: '' } }, total: { cost: 3 } },
        ['toolboxes[0].agents.agents.one.description'],
      ],
      [{ agents: { one: { description: 'One' } }, total: { calls: 3 } }, []],
    ] as const)
      await expect(
        createAgent({ ...options, toolboxes: [{ agents: settings }] } as never),
      ).rejects.toMatchObject({ code: 521, faults: [unkept, ...faults.map((option) => ({ option }))] });
    const asks = { description: 'Asks', agents: ['other'] };
    const other = { description: 'Other', toolboxes: ['tasks'] } as const;
    await using agent = await createAgent({
      ...options,
      toolboxes: [{ agents: { agents: { asks, other } } }],
    });
    expect((await agent.registry.execute('list_agents', {})).forLLM).toContain('- asks: Asks');
  });
});
