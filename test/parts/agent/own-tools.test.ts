import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { type Agent, type AgentOptions, createAgent } from 'toolwright/agent';
import { ScriptedProvider } from 'toolwright/testing';
import type { Permission, PermissionMode, PermissionRule } from 'toolwright/toolbox/permissions';

const MODES: readonly PermissionMode[] = ['read-only', 'ask', 'auto'];
const IN_CONVERSATION = { conversationId: 'c' };

async function newAgent(mode: PermissionMode, rules: readonly PermissionRule[] = [], more = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'own-tools-'));
  mkdirSync(join(folder, 'skills', 'greet'), { recursive: true });
  writeFileSync(join(folder, 'skills/greet/SKILL.md'), '---\nname: greet\ndescription: G\n---\nhi');
  return await createAgent({
    provider: 'offline',
    model: 'offline',
    folder,
    store: 'memory',
    skills: join(folder, 'skills'),
    toolboxes: [
      'tasks',
      'schedule',
      { agents: { agents: { other: { description: 'Another', toolboxes: ['tasks'] } } } },
    ],
    permissions: { mode, rules },
    ...more,
  } as AgentOptions);
}

/** Creates the conversation in the store: only stored conversations can have schedules. */
async function conversationIn(agent: Agent): Promise<void> {
  const conversations = await agent.conversations();
  await conversations.prompt('c', 'hi');
  await conversations.idle('c');
}

async function decisionOf(agent: Agent, [name, args, context]: readonly [string, object, object]) {
  const tool = agent.registry.offered(name);
  if (tool === undefined) return 'not offered';
  const request = { tool, arguments: args as never, context: context as never };
  return (await agent.permissions?.explain(request))?.decision;
}

const ONE = { tasks: [{ text: 'look' }] };
const LATER = { text: 'look again', inMinutes: 5 };

describe('the built-in tools of an agent', () => {
  test.each<[string, object, readonly (Permission | 'not offered')[]]>([
    // name, arguments, decisions in the modes read-only, ask and auto
    ['write_tasks', ONE, ['allow', 'allow', 'allow']],
    ['read_tasks', {}, ['allow', 'allow', 'allow']],
    ['send_message', { text: 'hi' }, ['allow', 'allow', 'allow']],
    ['skill_greet', {}, ['allow', 'allow', 'allow']],
    ['list_schedules', {}, ['allow', 'allow', 'allow']],
    ['schedule_prompt', LATER, ['deny', 'ask', 'allow']],
    ['list_agents', {}, ['not offered', 'allow', 'allow']],
    ['agent_status', { id: 'x' }, ['not offered', 'allow', 'allow']],
    ['delegate', { agent: 'other', task: 'x' }, ['not offered', 'ask', 'allow']],
    ['spawn_agent', { agent: 'other', task: 'x' }, ['not offered', 'ask', 'allow']],
  ])('createAgent decides about %s with %j as documented for each mode', async (name, args, expected) => {
    for (const [index, mode] of MODES.entries()) {
      await using agent = await newAgent(mode);
      await conversationIn(agent);
      expect([mode, await decisionOf(agent, [name, args, IN_CONVERSATION])]).toEqual([mode, expected[index]]);
    }
  });

  test.each(['deny', 'ask'] as const)(
    'createAgent applies user rules that %s to the built-in tools',
    async (decision) => {
      for (const tool of ['write_tasks', 'send_*', '*']) {
        await using agent = await newAgent('auto', [{ decision, tool }]);
        const [name, args] = tool === 'write_tasks' ? [tool, ONE] : ['send_message', { text: 'hi' }];
        expect(await decisionOf(agent, [name, args, IN_CONVERSATION])).toBe(decision);
      }
    },
  );

  test('createAgent offers search_tools in every mode, and it does not find denied tools', async () => {
    for (const mode of MODES) {
      const provider = new ScriptedProvider([
        {
          toolCalls: [
            { name: 'search_tools', arguments: { query: 'write tasks, schedule something later' } },
          ],
        },
        { toolCalls: [{ name: 'call_tool', arguments: { name: 'write_tasks', arguments: ONE } }] },
        { content: 'done' },
      ]);
      const rules = [{ decision: 'deny', tool: 'schedule_prompt' }] as const;
      await using agent = await newAgent(mode, rules, { provider, deferAbove: 0 });
      const { status, toolCalls } = await agent.run('go', { conversationId: 'c' });
      const [found, written] = toolCalls.map(({ result }) => result.forLLM);
      expect([mode, status, written]).toEqual([mode, 'completed', '1. [ ] look']);
      expect([mode, found?.includes('write_tasks'), found?.includes('schedule_prompt')]).toEqual([
        mode,
        true,
        false,
      ]);
    }
  });

  test.each([
    ['schedule_prompt', LATER],
    ['cancel_schedule', { id: 'x' }],
  ])('%s fails outside of a conversation without asking for approval', async (name, args) => {
    for (const mode of MODES) {
      const provider = new ScriptedProvider([
        { toolCalls: [{ name, arguments: args }] },
        { content: 'done' },
      ]);
      await using agent = await newAgent(mode, [], { provider });
      const { status, toolCalls } = await agent.run('go');
      expect([mode, status, toolCalls[0]?.result.forLLM]).toEqual([
        mode,
        'completed',
        'This call does not belong to a conversation, so there are no schedules.',
      ]);
    }
  });
});
