import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Param, Tool, ToolRegistry, Toolset } from 'toolwright';
import { type AgentOptions, createAgent } from 'toolwright/agent';
import { calculateTool } from 'toolwright/builtin';
import { OfflineProvider } from 'toolwright/offline';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { Permissions } from 'toolwright/toolbox/permissions';
import { serve } from '../../setup/loopback.js';
import { said } from '../chat/chat-reader.js';
import { hangingModel } from '../chat/hanging-model.js';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'create-agent-'));
  await writeFile(join(folder, 'notes.txt'), 'buy milk\n');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

@Toolset()
class ShopTools {
  constructor(protected readonly shop: string = 'the corner shop') {}

  @Tool({ description: 'Name the shop', annotations: { readOnly: true } })
  shopName(): string {
    return this.shop;
  }

  @Tool('Order something')
  order(@Param({ description: 'What', required: true }) what: string): string {
    return `ordered ${what}`;
  }
}

const provider = () => new OfflineProvider();
const MODEL = { model: 'offline' };

/** The reported faults as `where: option: problem`. */
async function faultsOf(made: Promise<unknown>): Promise<readonly string[]> {
  try {
    await made;
  } catch (error) {
    const { faults } = error as {
      readonly faults: readonly { where: string; option: string; problem: string }[];
    };
    return faults.map(({ where, option, problem }) => `${where}: ${option}: ${problem}`);
  }
  throw new Error('nothing was wrong');
}

describe('createAgent: tools', () => {
  test('createAgent accepts toolboxes as names, classes, instances, tools, registries and lists of them', async () => {
    const own = new ToolRegistry().register(calculateTool);
    const container = { resolve: <Instance>(token: unknown) => new (token as new () => Instance)() };
    await using agent = await createAgent({
      ...MODEL,
      provider: provider(),
      folder,
      container: container as never,
      toolboxes: ['files', [{ shell: {} }, ['tasks']], ShopTools, own],
    });
    expect(agent.registry.list()).toEqual([
      ...['read_file', 'list_files', 'find_files', 'search_files', 'write_file', 'edit_file', 'patch_files'],
      ...['move_file', 'delete_file', 'run_command', 'list_commands', 'command_output', 'kill_command'],
      ...['write_tasks', 'read_tasks', 'send_message', 'shop_name', 'order', 'calculate'],
    ]);
    expect((await agent.registry.execute('read_file', { path: 'notes.txt' })).forLLM).toContain('buy milk');
  });

  test('createAgent stores the schedules of its conversations in its store', async () => {
    const text = 'Look after the oven';
    const scripted = new ScriptedProvider([
      { toolCalls: [{ name: 'schedule_prompt', arguments: { text, inMinutes: 0.1 } }] },
      { content: 'I will.' },
      { content: 'The cake is done.' },
    ]);
    let late = 0;
    const store = new MemoryRunStore({ now: () => Date.now() + late });
    await using agent = await createAgent({
      ...MODEL,
      provider: scripted,
      toolboxes: [{ schedule: { timeZone: 'Europe/Vienna' } }],
      permissions: { mode: 'auto' },
      store,
      conversations: { pollMs: 5 },
    });
    const conversations = await agent.conversations();
    await conversations.prompt('c1', 'Remind me');
    await conversations.idle('c1');
    late = 10_000;
    for await (const { event } of conversations.events('c1'))
      if (event.type === 'turn-end' && event.content === 'The cake is done.') break;
    expect((await conversations.snapshot('c1'))?.messages.at(-2)?.content).toMatch(
      /^\[System: schedule:.*oven$/,
    );
    const without = createAgent({ ...MODEL, provider: scripted, toolboxes: ['schedule'] });
    expect(await faultsOf(without)).toEqual([
      'createAgent, toolboxes[0]: toolboxes[0]: the agent has no store that supports schedules',
    ]);
  });

  test('createAgent uses a toolbox instance that was passed in', async () => {
    await using agent = await createAgent({
      ...MODEL,
      provider: provider(),
      toolboxes: [new ShopTools('mine')],
    });
    expect((await agent.registry.execute('shop_name', {})).forLLM).toBe('mine');
  });

  test('createAgent prevents skills from reading files that its permissions deny', async () => {
    const skill = join(folder, '.toolwright', 'skills', 'w');
    await mkdir(skill, { recursive: true });
    await writeFile(join(skill, 'SKILL.md'), '---\nname: w\ndescription: W\n---\ntext');
    await writeFile(join(skill, '.env.prod'), 'secret');
    const rules = [{ decision: 'deny', path: '.toolwright/**/.env*' }] as const;
    const skills = join(folder, '.toolwright', 'skills');
    for (const one of [{ skills }, { toolboxes: [{ skills: { folder: skills } }] }]) {
      await using agent = await createAgent({
        ...MODEL,
        provider: provider(),
        folder,
        permissions: { rules },
        ...one,
      });
      expect((await agent.registry.execute('skill_w', {})).isError).toBe(false);
      const denied = await agent.registry.execute('skill_w', { file: '.env.prod' });
      expect(denied).toMatchObject({ isError: true, forLLM: expect.not.stringContaining('secret') });
    }
  });

  test('createAgent offers each skill as a tool', async () => {
    await mkdir(join(folder, 'skills', 'greet'), { recursive: true });
    await writeFile(
      join(folder, 'skills', 'greet', 'SKILL.md'),
      '---\nname: greet\ndescription: How to greet\n---\nSay hi',
    );
    await using agent = await createAgent({ ...MODEL, provider: provider(), skills: join(folder, 'skills') });
    expect(agent.registry.list()).toEqual(['skill_greet']);
  });

  test('createAgent accepts the operations of an OpenAPI document, as an object or a file', async () => {
    const document = {
      openapi: '3.1.0',
      info: { title: 'shop', version: '1' },
      servers: [{ url: 'https://shop.example.com' }],
      paths: { '/orders': { get: { operationId: 'listOrders', responses: {} } } },
    };
    await writeFile(join(folder, 'shop.json'), JSON.stringify(document));
    await using agent = await createAgent({
      ...MODEL,
      provider: provider(),
      toolboxes: [
        { openapi: { document } },
        { openapi: { document: join(folder, 'shop.json'), prefix: 'file' } },
      ],
    });
    expect(agent.registry.list()).toEqual(['listOrders', 'file_listOrders']);
  });

  test('createAgent refuses two tools with the same name and a registry with its own policy', async () => {
    const guarded = new ToolRegistry({ policy: () => false }).register(calculateTool);
    const options = {
      ...MODEL,
      provider: provider(),
      toolboxes: [new ShopTools(), new ShopTools(), guarded],
    };
    expect(await faultsOf(createAgent(options))).toEqual([
      "createAgent: toolboxes[1]: toolboxes[1] and toolboxes[0] have 2 tools with the same names: 'shop_name', 'order'",
      'createAgent, toolboxes[2]: toolboxes[2]: the registry has a policy, which would be ignored',
    ]);
  });
});

describe('createAgent: permissions', () => {
  test('createAgent by default asks before calls that change something, also for custom tools', async () => {
    const script = new ScriptedProvider([
      {
        toolCalls: [
          { name: 'shop_name', arguments: {} },
          { name: 'order', arguments: { what: 'milk' } },
        ],
      },
      { content: 'Done.' },
    ]);
    await using agent = await createAgent({ ...MODEL, provider: script, toolboxes: [new ShopTools()] });
    const run = await agent.run('Order milk');
    expect([run.status, run.pending?.map(({ tool }) => tool)]).toEqual(['suspended', ['order']]);
    const answers = (run.pending ?? []).map(({ id }) => ({ id, approved: true as const }));
    const resumed = await agent.resume(run.state, answers);
    expect([resumed.status, resumed.content]).toEqual(['completed', 'Done.']);
    expect(script.requests[1]?.messages.at(-1)).toMatchObject({ content: 'ordered milk' });
  });

  test('createAgent accepts permissions as options or as an instance and applies them to its registry', async () => {
    for (const permissions of [{ mode: 'read-only' as const }, new Permissions({ mode: 'read-only' })]) {
      await using agent = await createAgent({
        ...MODEL,
        provider: provider(),
        folder,
        toolboxes: ['files'],
        permissions,
      });
      const result = await agent.registry.execute('write_file', { path: 'a.txt', content: 'a' });
      expect(result).toMatchObject({ isError: true });
      expect(existsSync(join(folder, 'a.txt'))).toBe(false);
    }
  });
});

describe('createAgent: methods of the agent', () => {
  test('Agent.run adds the system prompt, and Agent.restore continues a conversation', async () => {
    const script = new ScriptedProvider([{ content: 'one' }, { content: 'two' }, { content: 'three' }]);
    await using agent = await createAgent({ ...MODEL, provider: script, systemPrompt: 'Be brief.' });
    expect((await agent.run('Hi')).content).toBe('one');
    expect(script.requests[0]?.messages).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ]);
    const conversation = agent.conversation({ id: 'c1' });
    await conversation.prompt('Hello');
    const restored = agent.restore(conversation.close());
    await restored.prompt('Again');
    expect([restored.id, script.requests[2]?.messages.map(({ role }) => role)]).toEqual([
      'c1',
      ['system', 'user', 'assistant', 'user'],
    ]);
  });

  test('Agent.conversations reads conversations from the store that another agent wrote', async () => {
    const store = { sqlite: { path: join(folder, 'agent.sqlite') } };
    const first = await createAgent({
      ...MODEL,
      provider: new ScriptedProvider([{ content: 'one' }]),
      store,
    });
    await (await first.conversations()).prompt('c1', 'Hi');
    expect((await (await first.conversations()).idle('c1'))?.messages).toHaveLength(2);
    await first.close();
    const script = new ScriptedProvider([{ content: 'two' }]);
    await using second = await createAgent({ ...MODEL, provider: script, store });
    await (await second.conversations()).prompt('c1', 'Again');
    await (await second.conversations()).idle('c1');
    expect(script.requests[0]?.messages.map(({ content }) => content)).toEqual(['Hi', 'one', 'Again']);
  });

  test('Agent.chatHandler answers a request of useChat', async () => {
    await using agent = await createAgent({
      ...MODEL,
      provider: new ScriptedProvider([{ content: 'Hello!' }]),
    });
    const chat = await agent.chatHandler({ authenticate: () => 'u1' });
    const body = JSON.stringify({
      id: 'c1',
      messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
    });
    const response = await chat.fetch(
      new Request('http://localhost/', {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json' },
      }),
    );
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Hello!')]);
  });

  test('the chat handler of a closed agent refuses requests with 503, also while a turn still runs', async () => {
    const { provider: hanging, begun } = hangingModel();
    const agent = await createAgent({ ...MODEL, provider: hanging });
    const conversations = await agent.conversations();
    const chat = await agent.chatHandler({ authenticate: () => 'u1' });
    await using server = await serve(chat.node);
    const post = (id: string) =>
      fetch(server.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id, messages: [said('Hi', 'm1')] }),
      });
    const running = await post('c1');
    await begun;
    const closed = agent.close();
    const refused = [await post('c2'), await fetch(`${server.url}/api/chat/c1/stream`)];
    await conversations.abort('c1');
    await closed;
    await running.text();
    refused.push(await post('c2'));
    for (const response of refused)
      expect([response.status, await response.json()]).toEqual([
        503,
        { error: { message: 'The server is shutting down.' } },
      ]);
  });

  test('Agent.stream emits the events of a run', async () => {
    await using agent = await createAgent({
      ...MODEL,
      provider: new ScriptedProvider([{ content: 'Hello!' }]),
    });
    const run = agent.stream('Hi');
    const types: string[] = [];
    for await (const { type } of run) types.push(type);
    expect([types.at(-1), (await run.result).content]).toEqual(['run-end', 'Hello!']);
  });

  test('Agent.close closes what the agent opened and leaves a store that was passed in open', async () => {
    const store = new SqliteRunStore({ path: ':memory:' });
    const agent = await createAgent({
      ...MODEL,
      provider: provider(),
      folder,
      store,
      toolboxes: ['shell'],
      permissions: { mode: 'auto' },
    });
    const begun = await agent.registry.execute('run_command', { command: 'sleep 600', background: true });
    expect(begun.isError).toBe(false);
    const listed = (await agent.registry.execute('list_commands', {})).forLLM;
    await agent.close();
    expect(listed).toContain('(running)');
    expect((await agent.registry.execute('list_commands', {})).forLLM).not.toContain('(running)');
    expect(await store.load('nothing')).toBeUndefined();
    store.close();
    await expect(agent.run('Hi')).rejects.toMatchObject({ code: 508 });
    const conversations = agent.conversations();
    await expect(conversations).rejects.toMatchObject({ code: 508 });
    await agent.close();
  });

  test('createAgent applies run options such as budget', async () => {
    const script = new ScriptedProvider([{ content: 'Hi' }]);
    await using agent = await createAgent({
      ...MODEL,
      provider: script,
      llmOptions: { temperature: 0 },
      budget: { steps: 0 },
      store: new MemoryRunStore(),
    });
    expect((await agent.run('Hi')).status).toBe('budget');
  });
});

describe('createAgent: invalid options', () => {
  test('createAgent reports all faults at once', async () => {
    const made = createAgent({
      model: '',
      provider: 'opnai',
      folder,
      toolboxes: ['fils', { shell: { enviroment: 'inherit' } }, { tasks: { most: 3 } }, 7],
      permissions: { mode: 'askk', rules: [{ decision: 'allow', path: '[' }] },
      store: { sqlite: { pth: 'x' } },
      skills: join(folder, 'none'),
      maxIteratons: 3,
    } as never);
    const faults = await faultsOf(made);
    expect(faults).toEqual([
      "createAgent: model: model is ''",
      'createAgent: maxIteratons: maxIteratons is not an option of createAgent (did you mean `maxIterations`?)',
      "createAgent, provider: provider: there is no provider 'opnai' (did you mean 'openai'?)",
      "createAgent, permissions: permissions.mode: mode is 'askk'",
      'createAgent, store: store.sqlite.path: path is missing',
      'createAgent, store: store.sqlite.pth: pth is not an option of SqliteRunStore (did you mean `path`?)',
      "createAgent, toolboxes[0]: toolboxes[0]: there is no toolbox 'fils' (did you mean 'files'?)",
      'createAgent, toolboxes[1]: toolboxes[1].shell.enviroment: enviroment is not an option of LocalShell (did you mean `environment`?)',
      "createAgent, toolboxes[2]: toolboxes[2].tasks.most: the toolbox 'tasks' has no settings",
      `createAgent, skills: skills.folder: folder is ${join(folder, 'none')}, which does not exist`,
      'createAgent, toolboxes[3], register(7): : it is not a tool',
    ]);
  });

  test('createAgent reports a budget that cannot be enforced, together with other faults', async () => {
    const made = (options: object): Promise<unknown> =>
      createAgent({ provider: provider(), model: 'm', ...options } as never);
    const unpriced = "createAgent: budget.prices: there is no price for the model 'm'";
    const unkept =
      'createAgent: budget.store: a budget of a conversation or a key needs a store, and none is set';
    expect(await faultsOf(made({ budget: { cost: 1 }, toolboxes: ['fils'] }))).toEqual([
      unpriced,
      expect.stringContaining("there is no toolbox 'fils'"),
    ]);
    expect(await faultsOf(made({ budget: { conversation: { cost: 3 } } }))).toEqual([unpriced, unkept]);
    expect(await faultsOf(made({ budget: { by: [{ key: () => 'k', calls: 3 }] } }))).toEqual([unkept]);
    await expect(made({ budget: { cost: 1 } })).rejects.toThrow(
      "Write instead: budget: { prices: { ...PRICES, 'm': { input: …, output: … } } }",
    );
    await expect(made({ budget: { conversation: { calls: 3 } } })).rejects.toThrow(
      "Write instead: store: { sqlite: { path: '/var/lib/my-agent/agent.sqlite' } }",
    );
    const prices = { m: { input: 1, output: 2 } };
    for (const options of [
      { budget: { calls: 3 } },
      { budget: { cost: 1, prices } },
      { model: 'gpt-5', budget: { cost: 1 } },
      { budget: { conversation: { calls: 3 } }, store: 'memory' },
      { budget: { conversation: { calls: 3 }, store: new MemoryRunStore() } },
    ])
      await ((await made(options)) as { close(): Promise<void> }).close();
  });

  test('createAgent refuses its store and its approvals in a folder of its files and commands', async () => {
    const inside = join(folder, 'project');
    await mkdir(inside);
    await symlink(inside, join(folder, 'link'));
    const sqlite = join(inside, 'agent.sqlite');
    const approvals = join(folder, 'link', 'sub', 'approvals.json');
    const made = (options: Partial<AgentOptions>) => {
      return createAgent({
        ...MODEL,
        provider: provider(),
        folder: inside,
        toolboxes: ['files'],
        ...options,
      });
    };
    using store = new SqliteRunStore({ path: sqlite });
    const other = { agents: { agents: { helper: { description: 'Helps', toolboxes: ['files'] } } } } as const;
    for (const [options, option] of [
      [{ store: { sqlite: { path: sqlite } } }, 'store'],
      [{ store, folder, toolboxes: [{ shell: { folder: inside } }] }, 'store'],
      [{ permissions: { file: approvals } }, 'permissions.file'],
      [{ permissions: new Permissions({ file: approvals }) }, 'permissions.file'],
      [{ permissions: { file: approvals }, toolboxes: [other] }, 'permissions.file'],
    ] as const)
      expect(await faultsOf(made(options))).toEqual([
        expect.stringMatching(new RegExp(`^createAgent: ${option}: .* could read and change it$`)),
      ]);
    await (await made({ store: { sqlite: { path: join(folder, 'agent.sqlite') } } })).close();
    await (await made({ store, toolboxes: ['tasks'] })).close();
  });

  test('createAgent reports a path that does not exist once, with a fix', async () => {
    const nowhere = join(folder, 'nowhere');
    const made = createAgent({
      ...MODEL,
      provider: provider(),
      folder: nowhere,
      toolboxes: [
        'files',
        'shell',
        { files: { root: join(folder, 'root') } },
        { openapi: { document: join(folder, 'none.json') } },
        { openapi: { document: join(folder, 'notes.txt') } },
      ],
    });
    expect(await faultsOf(made)).toEqual([
      `createAgent: folder: folder is ${nowhere}, which is not an existing folder`,
      `createAgent, toolboxes[2]: toolboxes[2].files.root: root is ${join(folder, 'root')}, which does not exist`,
      `createAgent, toolboxes[3]: toolboxes[3].openapi.document: ${join(folder, 'none.json')} cannot be read (ENOENT)`,
      `createAgent, toolboxes[4]: toolboxes[4].openapi.document: ${join(folder, 'notes.txt')} is not JSON`,
    ]);
    await expect(made).rejects.not.toThrow('another toolboxes');
    const store = { sqlite: { path: join(nowhere, 'a.sqlite') } };
    await expect(createAgent({ ...MODEL, provider: provider(), store })).rejects.toThrow(
      'Write instead: path: an SQLite file, or a new file in an existing folder',
    );
    const mcp = { shop: { command: join(nowhere, 'server') } };
    await expect(createAgent({ ...MODEL, provider: provider(), mcp })).rejects.toThrow(
      'Write instead: mcp.shop: a command that starts',
    );
  });

  test('createAgent reports classes without tools and does not call functions', async () => {
    class Plain {
      look(): string {
        return 'seen';
      }
    }
    let calls = 0;
    const make = () => {
      calls += 1;
      return calculateTool;
    };
    const made = createAgent({ ...MODEL, provider: provider(), toolboxes: [Plain, new Plain(), make] });
    expect(await faultsOf(made)).toEqual([
      'createAgent, toolboxes[0]: toolboxes[0]: the class Plain has no tools',
      'createAgent, toolboxes[1]: toolboxes[1]: an instance of Plain has no tools',
      'createAgent, toolboxes[2]: toolboxes[2]: a function is not a toolbox',
    ]);
    await expect(made).rejects.toThrow('Write instead: add @Toolset() before the class');
    expect(calls).toBe(0);
  });

  test('createAgent reports invalid schedule settings without a store, and unknown agent names', async () => {
    const made = createAgent({
      ...MODEL,
      provider: provider(),
      toolboxes: [
        { schedule: { timeZone: 'Mars/Phobos' } },
        { agents: { agents: { a: { description: 'x', agents: ['zz'], toolboxes: ['nix' as 'files'] } } } },
      ],
    });
    expect(await faultsOf(made)).toEqual([
      'createAgent, toolboxes[0]: toolboxes[0]: the agent has no store that supports schedules',
      "createAgent, toolboxes[0]: toolboxes[0].schedule.timeZone: timeZone is 'Mars/Phobos'",
      expect.stringContaining("there is no toolbox 'nix'"),
      "createAgent, toolboxes[1]: toolboxes[1].agents.agents.a.agents: it may ask 'zz', which is not another agent of the table",
    ]);
  });

  test('createAgent throws InvalidOptions without options or with an invalid provider', async () => {
    await expect(createAgent(undefined as never)).rejects.toMatchObject({ code: 521 });
    await expect(createAgent({} as never)).rejects.toMatchObject({ code: 521 });
    await expect(createAgent({ ...MODEL, provider: {} as never })).rejects.toMatchObject({ code: 521 });
  });
});

test('createAgent reports a registry that comes from another copy of the package', async () => {
  const { ToolRegistry: Another } = { ToolRegistry: class ToolRegistry {} };
  const toolboxes = [new Another()] as never;
  await expect(createAgent({ model: 'm', provider: new OfflineProvider(), toolboxes })).rejects.toThrow(
    /a ToolRegistry of another copy of toolwright.*npm ls toolwright/s,
  );
});
