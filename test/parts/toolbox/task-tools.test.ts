import { describe, expect, test } from '@jest/globals';
import { Conversation, discoverTools, runToolLoop, ToolRegistry } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { type TaskItem, TaskLists, TaskTools, taskTools } from 'toolwright/toolbox/tasks';

const TASKS = [{ text: 'look', status: 'done' }, { text: 'change', status: 'doing' }, { text: 'test' }];
const SHOWN = '1. [x] look\n2. [~] change\n3. [ ] test';

describe('write_tasks and read_tasks', () => {
  test('each conversation has its own list, and changes are reported as progress', async () => {
    const updates: unknown[] = [];
    const tools = new ToolRegistry().register(...taskTools());
    const written = await tools.executeWithContext(
      'write_tasks',
      { tasks: TASKS },
      {
        conversationId: 'c1',
        onUpdate: (update) => updates.push(update),
      },
    );
    expect([written.forLLM, written.silent]).toEqual([SHOWN, true]);
    expect(updates).toEqual([
      expect.objectContaining({
        done: 1,
        total: 3,
        tasks: expect.arrayContaining([{ text: 'test', status: 'open' }]),
      }),
    ]);
    const read = (conversationId: string) => tools.executeWithContext('read_tasks', {}, { conversationId });
    expect((await read('c1')).forLLM).toBe(SHOWN);
    expect((await read('c2')).forLLM).toBe('There are no tasks.');
  });

  test('the list is available in the next run of the conversation', async () => {
    const tools = new ToolRegistry().register(...taskTools());
    const run = (toolCalls: object[]) =>
      runToolLoop(
        { provider: new ScriptedProvider([{ toolCalls } as never, { content: 'ok' }]), model: 'm', tools },
        [{ role: 'user', content: 'go' }],
        { conversationId: 'c' },
      );
    await run([{ name: 'write_tasks', arguments: { tasks: TASKS } }]);
    const { toolCalls } = await run([{ name: 'read_tasks', arguments: {} }]);
    expect(toolCalls[0]?.result.forLLM).toBe(SHOWN);
  });

  test('outside of a conversation, each run or owner has its own list', async () => {
    const tools = new ToolRegistry().register(...taskTools());
    const run = (toolCalls: object[], owner?: unknown) =>
      runToolLoop(
        { provider: new ScriptedProvider([...toolCalls, { content: 'ok' }] as never), model: 'm', tools },
        [{ role: 'user', content: 'go' }],
        owner === undefined ? {} : { owner },
      );
    const write = { toolCalls: [{ name: 'write_tasks', arguments: { tasks: TASKS } }] };
    const read = { toolCalls: [{ name: 'read_tasks', arguments: {} }] };
    const lastOf = async (toolCalls: object[], owner?: unknown) =>
      (await run(toolCalls, owner)).toolCalls.at(-1)?.result.forLLM;
    expect(await lastOf([write, read], { user: 'u1' })).toBe(SHOWN);
    expect(await lastOf([read], { user: 'u1' })).toBe('There are no tasks.');
    expect(await lastOf([read])).toBe('There are no tasks.');
    await tools.executeWithContext('write_tasks', { tasks: TASKS }, { owner: { user: 'u1', team: 't' } });
    const readOf = async (owner?: unknown) =>
      (await tools.executeWithContext('read_tasks', {}, owner === undefined ? {} : { owner })).forLLM;
    expect(await readOf({ team: 't', user: 'u1' })).toBe(SHOWN);
    expect([await readOf({ user: 'u2' }), await readOf()]).toEqual([
      'There are no tasks.',
      'There are no tasks.',
    ]);
  });

  test('the storage of the lists can be injected', async () => {
    const kept: Record<string, readonly TaskItem[]> = {};
    class Kept extends TaskLists {
      override read(key: string) {
        return kept[key] ?? [];
      }
      override async write(key: string, tasks: readonly TaskItem[]) {
        kept[key] = tasks;
      }
    }
    const container = { resolve: <Instance>() => new TaskTools(new Kept()) as Instance };
    const tools = new ToolRegistry().register(...discoverTools({ toolsets: [TaskTools], container }));
    await tools.executeWithContext('write_tasks', { tasks: [{ text: 'x' }] }, { conversationId: 'c' });
    expect(kept).toEqual({ c: [{ text: 'x', status: 'open' }] });
  });

  test('lists in memory are limited to the newest 10,000', () => {
    const lists = new TaskLists();
    const tasks = [{ text: 'x', status: 'open' }] as const;
    for (let index = 0; index < 10_050; index += 1) lists.write(`c${index}`, tasks);
    const known = Array.from(
      { length: 10_050 },
      (_, index) => [lists.read(`c${index}`)].flat().length,
    ).indexOf(1);
    expect(known).toBe(50);
  });
});

describe('send_message', () => {
  test('is shown to the user while the conversation goes on', async () => {
    const provider = new ScriptedProvider([
      { toolCalls: [{ name: 'send_message', arguments: { text: 'Found it' } }] },
      { content: 'Done' },
    ]);
    const conversation = new Conversation({
      provider,
      model: 'm',
      tools: new ToolRegistry().register(...taskTools()),
    });
    const shown: unknown[] = [];
    conversation.subscribe((event) => {
      if (event.type === 'user-message' || event.type === 'run-end') shown.push(event.type);
      if (event.type === 'user-message') shown.push(event.text);
    });
    await conversation.prompt('Find it');
    expect(shown).toEqual(['user-message', 'Found it', 'run-end']);
  });
});
