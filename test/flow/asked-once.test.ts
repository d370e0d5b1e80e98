import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { type Answer, resumeToolLoop, runToolLoop, type ToolPolicy } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { fileTools, MemoryFileSystem } from 'toolwright/toolbox/files';
import { Permissions } from 'toolwright/toolbox/permissions';
import { newFolder } from '../parts/toolbox/files/folders.js';

const messages = [{ role: 'user', content: 'Write it' }] as const;
const WRITE = { id: 'c1', name: 'write_file', arguments: { path: 'a.txt', text: 'new' } };

/** A run that wants to write a file, with this policy. */
async function writes(policy: ToolPolicy, conversationId: string | undefined) {
  const provider = new ScriptedProvider([{ toolCalls: [WRITE] }, { content: 'done' }]);
  const files = new MemoryFileSystem();
  const config = { provider, model: 'm', tools: fileTools(files), policy };
  const scope = conversationId === undefined ? {} : { conversationId };
  const run = await runToolLoop(config, messages, scope);
  const [pending] = run.pending ?? [];
  const answer = (given: Omit<Answer, 'id'>) =>
    resumeToolLoop(
      config,
      JSON.parse(JSON.stringify(run.state)),
      [{ id: pending?.id ?? '', ...given } as Answer],
      scope,
    );
  return { run, pending, answer, files };
}

describe('Permissions', () => {
  test('store an approval for the session in a readable file if the answer asks for it', async () => {
    const file = join(newFolder(), 'permissions.json');
    const { policy } = new Permissions({ file });
    const first = await writes(policy, 'chat-1');
    expect(first.pending?.mayRemember).toEqual({ scopes: ['conversation'], by: 'policy' });
    const run = await first.answer({ approved: true, remember: { scope: 'conversation' } });
    expect(run.status).toBe('completed');
    expect(JSON.parse(readFileSync(file, 'utf8')).entries).toMatchObject([
      {
        rule: { decision: 'allow', tool: 'write_file', action: 'write', path: 'a.txt' },
        scope: { session: 'chat-1' },
      },
    ]);
    // It also applies in a process that reads the same file, and in no other session.
    const other = new Permissions({ file });
    expect((await writes(other.policy, 'chat-1')).run.status).toBe('completed');
    expect((await writes(other.policy, 'chat-2')).run.status).toBe('suspended');
    const explained: string[] = [];
    const explaining: ToolPolicy = async (request) => {
      const { reasons } = await other.explain(request);
      explained.push(...reasons.map(({ by, text }) => `${by}: ${text}`));
      return true;
    };
    await writes(explaining, 'chat-1');
    expect(explained).toEqual(["standing yes: changes 'a.txt': a remembered approval allows it"]);
  });

  test('store an approval for a user until it expires', async () => {
    const permissions = new Permissions({ userOf: () => 'u1' });
    const { pending, answer } = await writes(permissions.policy, undefined);
    expect(pending?.mayRemember).toEqual({ scopes: ['user'], by: 'policy' });
    const expires = new Date(Date.now() + 3_600_000).toISOString();
    await answer({ approved: true, remember: { scope: 'user', expires } });
    expect(permissions.remembered()).toMatchObject([{ scope: { user: 'u1' }, until: expires }]);
  });

  test('reject `remember` for a scope that is not known', async () => {
    const nobody = await writes(new Permissions().policy, undefined);
    expect(nobody.pending?.mayRemember).toBeUndefined();
    await expect(nobody.answer({ approved: true, remember: { scope: 'conversation' } })).rejects.toThrow(
      'allows no approval to be remembered',
    );
    const named = await writes(new Permissions().policy, 'chat-1');
    await expect(named.answer({ approved: true, remember: { scope: 'user' } })).rejects.toThrow(
      'allows `remember.scope` to be conversation',
    );
  });

  test('store nothing if the answer does not ask for it', async () => {
    const permissions = new Permissions();
    const { answer } = await writes(permissions.policy, 'chat-1');
    await answer({ approved: true });
    expect(permissions.remembered()).toEqual([]);
    expect((await writes(permissions.policy, 'chat-1')).run.status).toBe('suspended');
  });
});

describe('a policy that asks and remembers', () => {
  test('runs the approved call even if the approval cannot be stored', async () => {
    const policy: ToolPolicy = () => ({
      ask: true,
      remember: {
        scopes: ['conversation'],
        keep: () => {
          throw new Error('the disk is full');
        },
      },
    });
    const { answer, files } = await writes(policy, 'chat-1');
    const run = await answer({ approved: true, remember: { scope: 'conversation' } });
    expect(run.toolCalls.map(({ status }) => status)).toEqual(['success']);
    expect(files.texts()).toEqual({ 'a.txt': 'new' });
  });
});
