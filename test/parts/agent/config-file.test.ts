import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createAgent } from 'toolwright/agent';
import { ScriptedProvider } from 'toolwright/testing';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agent-config-'));
});
afterEach(async () => {
  delete process.env.AGENT_TEST_KEY;
  await rm(folder, { recursive: true, force: true });
});

async function file(name: string, content: unknown): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

/** The reported faults as `where: option: problem`, without the path of the folder. */
async function faultsOf(made: Promise<unknown>): Promise<readonly string[]> {
  try {
    await made;
  } catch (error) {
    const { faults } = error as {
      readonly faults: readonly { where: string; option: string; problem: string }[];
    };
    return faults.map(({ where, option, problem }) =>
      `${where}: ${option}: ${problem}`.replaceAll(`${folder}/`, ''),
    );
  }
  throw new Error('nothing was wrong');
}

const heard = () => {
  const said: string[] = [];
  const hear = (message: string) => void said.push(message.replaceAll(`${folder}/`, ''));
  return { said, logger: { debug: () => {}, info: () => {}, warn: hear, error: hear } };
};

describe('createAgent from a file', () => {
  test('createAgent reads all options from a JSON file and resolves its paths relative to the file', async () => {
    await mkdir(join(folder, 'project'));
    await writeFile(join(folder, 'project', 'notes.txt'), 'buy milk');
    await mkdir(join(folder, 'skills', 'greet'), { recursive: true });
    await writeFile(
      join(folder, 'skills', 'greet', 'SKILL.md'),
      '---\nname: greet\ndescription: How to greet\n---\nSay hi',
    );
    const configFile = await file('agent.json', {
      $schema: './agent.schema.json',
      provider: 'offline',
      model: 'offline',
      systemPrompt: 'The password: hunter2 is not a secret of ours.',
      folder: 'project',
      toolboxes: [
        'files',
        { web: { allow: ['*.example.com'], search: { searxng: { url: 'http://127.0.0.1:1' } } } },
      ],
      skills: ['skills'],
      permissions: {
        mode: 'auto',
        rules: [{ decision: 'deny', path: 'secret/**', arguments: { token: '*' } }],
      },
      store: { sqlite: { path: 'agent.sqlite' } },
      budget: { tokens: 100_000, children: { steps: 3 } },
      maxIterations: 7,
      llmOptions: { max_tokens: 500 },
    });
    await using agent = await createAgent({ configFile });
    expect(agent.registry.list()).toEqual(expect.arrayContaining(['web_fetch', 'web_search', 'skill_greet']));
    expect((await agent.registry.execute('read_file', { path: 'notes.txt' })).forLLM).toContain('milk');
    expect(agent.config).toMatchObject({ maxIterations: 7, llmOptions: { max_tokens: 500 } });
    expect(existsSync(join(folder, 'agent.sqlite'))).toBe(true);
  });

  test('createAgent options given in code override the options of the file, each by its name', async () => {
    const configFile = await file('agent.json', {
      provider: 'openai',
      model: 'gpt-5',
      toolboxes: ['tasks'],
      maxIterations: 7,
    });
    const provider = new ScriptedProvider([{ content: 'Hi' }]);
    await using agent = await createAgent({
      configFile,
      provider,
      maxIterations: 3,
      toolboxes: undefined as never,
    });
    expect([agent.config.model, agent.config.maxIterations]).toEqual(['gpt-5', 3]);
    expect(agent.registry.list()).toEqual(['write_tasks', 'read_tasks', 'send_message']);
    expect((await agent.run('Hi')).content).toBe('Hi');
  });

  test('createAgent replaces { env } values in the file with environment variables', async () => {
    process.env.AGENT_TEST_KEY = 'from the environment';
    const configFile = await file('agent.json', {
      provider: { openai: { apiKey: { env: 'AGENT_TEST_KEY' }, baseURL: 'http://127.0.0.1:1/v1' } },
      model: 'gpt-5',
      toolboxes: [{ shell: { folder: '.', environment: { MY_TOKEN: { env: 'AGENT_TEST_KEY' } } } }],
      permissions: { mode: 'auto' },
    });
    await using agent = await createAgent({ configFile });
    const { forLLM } = await agent.registry.execute('run_command', { command: 'printenv MY_TOKEN' });
    expect(forLLM).toContain('from the environment');
  });

  test('createAgent reports all faults of a file at once, with the file name', async () => {
    const configFile = await file('agent.json', {
      provider: { openai: { apiKey: 'sk-1', headers: { authorization: 'Bearer abcdefgh' } } },
      modle: 'gpt-5',
      toolboxes: [
        'fils',
        { openapi: { document: 'shop.json', auth: { key: 'text' } } },
        { files: { root: 'none' } },
      ],
      permissions: { mode: 'asks' },
      store: { postgres: { connectionString: { env: 'AGENT_TEST_KEY' } } },
      configFile: 'other.json',
      hooks: ['mask'],
    });
    const faults = await faultsOf(createAgent({ configFile, maxIterations: -1 }));
    expect(faults).toEqual([
      'agent.json: provider.openai.apiKey: provider.openai.apiKey contains a secret as plain text',
      'agent.json: provider.openai.headers.authorization: provider.openai.headers.authorization contains a secret as plain text',
      'agent.json: toolboxes[1].openapi.auth.key: toolboxes[1].openapi.auth.key contains a secret as plain text',
      'agent.json: store.postgres.connectionString: store.postgres.connectionString refers to the environment variable AGENT_TEST_KEY, which is not set',
      'agent.json: configFile: configFile can be set only in code',
      'createAgent: model: model is missing',
      'createAgent: maxIterations: maxIterations is -1',
      "agent.json: hooks[0]: hooks[0] is 'mask'",
      'agent.json: modle: modle is not an option of createAgent (did you mean `model`?)',
      "agent.json, permissions: permissions.mode: mode is 'asks'",
      "agent.json, toolboxes[0]: toolboxes[0]: there is no toolbox 'fils' (did you mean 'files'?)",
      'agent.json, toolboxes[1]: toolboxes[1].openapi.document: shop.json cannot be read (ENOENT)',
      'agent.json, toolboxes[2]: toolboxes[2].files.root: root is none, which does not exist',
    ]);
  });

  test('createAgent reports misspelt nested options with their paths, together with other faults', async () => {
    const configFile = await file('agent.json', {
      modle: 'gpt-5',
      provider: { openai: { apiKey: 'sk-1', bseURL: 'http://127.0.0.1' } },
      toolboxes: [
        { openapi: { documnt: 'shop.json', auth: { key: 'text' }, prefx: 'shop' } },
        [{ web: { alow: [], search: { searxng: { ur: 'x' } } } }],
        {
          agents: {
            agents: { one: { descripton: 'One', toolboxes: [{ files: { rot: 'x' } }] } },
            maxDept: 3,
          },
        },
      ],
      store: { sqlite: { path: { env: 'AGENT_TEST_KEY' }, busyTimeoutMS: 3 } },
      mcp: { shop: { url: 'http://127.0.0.1:1', headers: { authorization: 'Bearer abcdefgh' }, tims: 3 } },
      conversations: { takesTurn: false, maxConcurrency: 'x', jobConcurrency: 2 },
    });
    const folderConfigFile = await file('folder.json', { permissions: { mode: 'asks' } });
    const made = createAgent({ configFile, folderConfigFile, folder });
    const told = (await faultsOf(made)).map((fault) => fault.replace(/: [^:]*$/, ''));
    expect(told.filter((fault) => !fault.includes('apiKey') && !fault.includes('auth')).sort()).toEqual([
      'agent.json, mcp.shop: mcp.shop.tims',
      'agent.json, provider: provider.openai.bseURL',
      'agent.json, store: store.sqlite.busyTimeoutMS',
      'agent.json, toolboxes[0]: toolboxes[0].openapi.document',
      'agent.json, toolboxes[0]: toolboxes[0].openapi.documnt',
      'agent.json, toolboxes[0]: toolboxes[0].openapi.prefx',
      'agent.json, toolboxes[1][0]: toolboxes[1][0].web.alow',
      'agent.json, toolboxes[1][0]: toolboxes[1][0].web.search.searxng.ur',
      'agent.json, toolboxes[1][0]: toolboxes[1][0].web.search.searxng.url',
      'agent.json, toolboxes[2]: toolboxes[2].agents.agents.one.description',
      'agent.json, toolboxes[2]: toolboxes[2].agents.agents.one.descripton',
      'agent.json, toolboxes[2]: toolboxes[2].agents.agents.one.toolboxes[0].files.rot',
      'agent.json, toolboxes[2]: toolboxes[2].agents.maxDept',
      'agent.json: conversations.jobConcurrency',
      'agent.json: conversations.maxConcurrency',
      'agent.json: conversations.takesTurn',
      'agent.json: modle',
      'agent.json: store.sqlite.path',
      'createAgent: model',
      'folder.json, folderConfigFile: folderConfigFile.permissions.mode',
    ]);
    expect(await readdir(folder)).not.toContain('unset');
  });

  test.each<[object, string, string]>([
    [{ permissions: 3 }, 'permissions', '"permissions": { "mode": "ask", "rules": […] }'],
    [{ permissions: { mode: 'asks' } }, 'permissions.mode', '"mode": "read-only" or "ask" or "auto"'],
    [{ permissions: { rules: [{ allow: 1 }] } }, 'permissions.rules[0].allow', '"decision": "allow"'],
    [
      { permissions: { rules: [{ decision: 'allow' }] } },
      'permissions.rules',
      '"rules": [{ "decision": "allow", "path": "src/**" }], or [{ "decision": "allow", "tool": "*" }] to allow everything',
    ],
    [{ permissions: { rules: [3] } }, 'permissions.rules[0]', '{ "decision": "allow", "path": "src/**" }'],
    [{ permissions: { userOf: 'me' } }, 'permissions.userOf', 'no userOf: it can be set only in code'],
    [{ policy: 'x' }, 'policy', 'no policy: it can be set only in code'],
    [{ hooks: ['x'] }, 'hooks[0]', 'no hooks: it can be set only in code'],
    [{ fallback: [1] }, 'fallback[0]', 'no fallback: it can be set only in code'],
    [{ cwd: 'x' }, 'cwd', '"folder": …'],
    [
      { toolboxes: [{ web: { allow: 3 } }] },
      'toolboxes[0].web.allow',
      '"allow": host names: ["example.com", "*.example.com"]',
    ],
    [{ provider: 'x' }, 'provider', 'one of "openai", "offline"'],
    [{ provider: 0 }, 'provider', '"provider": "openai" or "offline"'],
    [{ store: 0 }, 'store', '"store": { "sqlite": { "path": "/var/lib/my-agent/agent.sqlite" } }'],
    [{ toolboxes: 0 }, 'toolboxes', '"toolboxes": ["files", "shell"]'],
    [{ tools: [] }, 'tools', '"toolboxes": […]'],
    [{ maxIterations: 'x' }, 'maxIterations', '"maxIterations": a whole number, 0 or more'],
    [
      { toolboxes: [{ files: { root: 3 } }] },
      'toolboxes[0].files.root',
      '"root": the absolute path of a folder: "/srv/project"',
    ],
    [
      { toolboxes: ['schedule'] },
      'toolboxes[0]',
      '"store": { "sqlite": { "path": "/var/lib/my-agent/agent.sqlite" } }',
    ],
    [
      { toolboxes: [{ shell: { environment: 3 } }] },
      'toolboxes[0].shell.environment',
      '"environment": "clean", or "inherit", or { "NAME": "value" }',
    ],
    [
      { provider: { openai: { apiKey: 'x' } } },
      'provider.openai.apiKey',
      '{ "env": "NAME" }, with the name of an environment variable',
    ],
  ])(
    'createAgent suggests a fix in JSON for a file that contains %j, and another fix for code',
    async (wrong, at, advice) => {
      const options = { provider: 'offline', model: 'm', ...wrong };
      const faultsIn = async (made: Promise<unknown>) => {
        const error: unknown = await made.then(
          () => undefined,
          (reason: unknown) => reason,
        );
        const { faults } = error as { readonly faults: readonly { option: string; fix: string }[] };
        return faults.filter(({ option }) => option === at).map(({ fix }) => fix);
      };
      expect(await faultsIn(createAgent({ configFile: await file('a.json', options) }))).toEqual([advice]);
      if (at !== 'provider.openai.apiKey')
        expect(await faultsIn(createAgent(options as never))).not.toEqual([advice]);
    },
  );

  test('createAgent does not suggest code-only options in faults of a file', async () => {
    const configFile = await file('agent.json', { provider: 'offline', model: 'm', nonsense: 1 });
    const told = await createAgent({ configFile }).catch(String);
    expect(told).toContain('one of model, detector');
    expect(told).not.toMatch(/compactHistory|policy|configFile/);
    const folderConfigFile = await file('folder.json', { permissions: { mode: 'x' } });
    const made = createAgent({ provider: 'offline', model: 'm', folderConfigFile });
    await expect(made).rejects.toThrow('Write instead: "mode": "read-only" or "ask" or "auto"');
  });

  test('createAgent refuses a file that does not exist, is not JSON or is not an object', async () => {
    const missing = createAgent({ configFile: join(folder, 'none.json') });
    expect(await faultsOf(missing)).toEqual(['none.json: : there is no such file']);
    await expect(missing).rejects.toThrow('Write instead: configFile: the path of a JSON file');
    const ofFolder = createAgent({ provider: 'offline', model: 'm', folderConfigFile: folder });
    await expect(ofFolder).rejects.toThrow('Write instead: folderConfigFile: the path of a JSON file');
    const texts = ['{\n  "model": gpt\n}', '{\n"a": 1,\n"b": 2,\n}', '', '{"a": "sk-1', '{"a":1}\n}'];
    const told = texts.map(async (text, index) => {
      return faultsOf(createAgent({ configFile: await file(`${index}.json`, text) }));
    });
    const lines = [2, 4, 1, 1, 2];
    expect((await Promise.all(told)).flat()).toEqual(
      lines.map((line, index) => `${index}.json: : it is not valid JSON (line ${line})`),
    );
    const list = await file('list.json', []);
    expect(await faultsOf(createAgent({ configFile: list, model: '' }))).toEqual([
      'list.json: : it is not a JSON object',
      "createAgent: model: model is ''",
    ]);
  });
});

describe('createAgent with the configuration file of a folder', () => {
  const write = { tool: 'write_file', path: 'a.txt' };
  async function decisions(folderConfig: unknown, mode: 'auto' | 'ask' = 'auto'): Promise<readonly string[]> {
    const folderConfigFile = await file('folder.json', folderConfig);
    const { said, logger } = heard();
    await using agent = await createAgent({
      ...{ provider: 'offline', model: 'offline', folder, logger, folderConfigFile },
      toolboxes: ['files'],
      permissions: { mode },
    });
    const tool = agent.registry.get(write.tool);
    if (tool === undefined) throw new Error('no tool');
    const judge = async (path: string) => {
      return (
        await agent.permissions.explain({ tool, arguments: { path, content: '' }, context: {} } as never)
      ).decision;
    };
    return [await judge('a.txt'), await judge('b/c.txt'), ...said];
  }

  test('folderConfigFile makes permissions stricter, by its mode and by its rules', async () => {
    expect(await decisions({})).toEqual(['allow', 'allow']);
    expect(await decisions({ permissions: { mode: 'read-only' } })).toEqual(['deny', 'deny']);
    expect(await decisions({ permissions: { rules: [{ decision: 'deny', path: 'b/**' }] } })).toEqual([
      'allow',
      'deny',
    ]);
  });

  test('folderConfigFile never loosens permissions', async () => {
    const permissions = { mode: 'auto', rules: [{ decision: 'allow', path: '**' }] };
    expect(await decisions({ permissions }, 'ask')).toEqual(['ask', 'ask']);
  });

  test('folderConfigFile has effect on permissions only, and other options are logged as ignored', async () => {
    process.env.AGENT_TEST_KEY = 'a secret';
    const told = await decisions({
      provider: { openai: { baseURL: 'http://evil.example.com/' } },
      toolboxes: ['shell'],
      permissions: { file: 'yes.json', rules: [] },
    });
    expect(told.slice(2)).toEqual([
      "folder.json: 'provider' is ignored in a file that comes with the folder (configFile, for a file that you trust)",
      "folder.json: 'toolboxes' is ignored in a file that comes with the folder (configFile, for a file that you trust)",
      "folder.json: 'permissions.file' is ignored in a file that comes with the folder (configFile, for a file that you trust)",
    ]);
  });

  test('folderConfigFile cannot inject terminal escape sequences into warnings', async () => {
    const [, , ...told] = await decisions({ permissions: { '\u001b]0;mine\u0007': 1 } });
    expect(told).toEqual([expect.stringContaining("'permissions.\\u001b]0;mine\\u0007'")]);
  });

  test('folderConfigFile cannot read environment variables', async () => {
    process.env.AGENT_TEST_KEY = 'a secret';
    const rules = [{ decision: 'ask', path: '**', reason: { env: 'AGENT_TEST_KEY' } }];
    await expect(decisions({ permissions: { rules } })).rejects.toMatchObject({
      code: 521,
      message: expect.not.stringContaining('a secret'),
    });
  });

  test('folderConfigFile must be a regular file of limited size inside the folder', async () => {
    const made = (path: string) =>
      faultsOf(
        createAgent({ provider: 'offline', model: 'm', folder, folderConfigFile: join(folder, path) }),
      );
    await symlink('/dev/zero', join(folder, 'zero.json'));
    execFileSync('mkfifo', [join(folder, 'pipe.json')]);
    const elsewhere = await mkdtemp(join(tmpdir(), 'agent-config-'));
    await writeFile(join(elsewhere, 'agent.json'), '{}');
    await symlink(elsewhere, join(folder, '.toolwright'));
    await file('large.json', ' '.repeat(1_048_577));
    const paths = ['zero.json', 'pipe.json', '.toolwright/agent.json', 'large.json'];
    const told = await Promise.all(paths.map(made));
    await rm(elsewhere, { recursive: true });
    expect(told).toEqual([
      [`zero.json: : it is a link that leads out of ${folder}`],
      ['pipe.json: : it is not a regular file'],
      [`.toolwright/agent.json: : it is a link that leads out of ${folder}`],
      ['large.json: : it has 1048577 bytes; the limit is 1048576'],
    ]);
    await file('there.json', { permisions: {} });
    await symlink('there.json', join(folder, 'link.json'));
    expect(await made('link.json')).toEqual([expect.stringMatching(/^link.json: permisions:/)]);
  });

  test('folderConfigFile may be missing, but an invalid one is refused', async () => {
    const base = { provider: 'offline' as const, model: 'offline' };
    const none = await createAgent({ ...base, folderConfigFile: join(folder, 'none.json') });
    await none.close();
    expect(await faultsOf(decisions('{'))).toEqual([
      expect.stringContaining('folder.json: : it is not valid JSON'),
    ]);
    expect(await faultsOf(decisions({ permisions: {} }))).toEqual([
      'folder.json: permisions: permisions is not an option of createAgent (did you mean `permissions`?)',
    ]);
    expect(await faultsOf(decisions({ permissions: [] }))).toEqual([
      'folder.json: permissions: permissions is not an object',
    ]);
    expect(await faultsOf(decisions({ permissions: { rules: [{ decision: 'never' }] } }))).toEqual([
      "folder.json, folderConfigFile: folderConfigFile.permissions.rules[0].decision: rules[0].decision is 'never'",
    ]);
  });
});
