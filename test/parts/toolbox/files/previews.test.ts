import { describe, expect, test } from '@jest/globals';
import {
  defineTool,
  type JsonObject,
  type PendingCall,
  resumeToolLoop,
  runToolLoop,
  Tool,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import { ScriptedProvider, toolHarness } from 'toolwright/testing';
import { fileTools, MemoryFileSystem } from 'toolwright/toolbox/files';

const ask = () => ({ ask: true as const, reason: 'it writes' });

/** Makes a call that needs approval; returns the pending call, the files and a function that approves it. */
async function asked(name: string, args: JsonObject, texts: Readonly<Record<string, string>>) {
  const files = new MemoryFileSystem(texts);
  const provider = new ScriptedProvider([
    { toolCalls: [{ id: 'c1', name, arguments: args }] },
    { content: 'done' },
  ]);
  const config = { provider, model: 'm', tools: fileTools(files), policy: ask };
  const run = await runToolLoop(config, [{ role: 'user', content: 'Do it' }]);
  const [pending] = run.pending ?? [];
  const approve = () => resumeToolLoop(config, run.state, [{ id: pending?.id ?? '', approved: true }]);
  return { pending: pending as PendingCall, files, approve };
}

describe('previews of file tools', () => {
  test('edit_file shows the difference, and changes nothing before the approval', async () => {
    const edit = { path: 'a.ts', edits: [{ oldText: 'two', newText: 'three' }] };
    const { pending, files, approve } = await asked('edit_file', edit, { 'a.ts': 'one\ntwo\n' });
    expect(pending.description).toContain('--- a.ts\n+++ a.ts\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n');
    expect(pending.message).toBe('it writes');
    expect(files.texts()).toEqual({ 'a.ts': 'one\ntwo\n' });
    await approve();
    expect(files.texts()).toEqual({ 'a.ts': 'one\nthree\n' });
  });

  test('write_file shows a new file as added lines', async () => {
    const { pending } = await asked('write_file', { path: 'b.txt', text: 'x\ny\n' }, {});
    expect(pending.description).toContain('@@ -0,0 +1,2 @@\n+x\n+y\n');
  });

  test('patch_files shows the result for each file', async () => {
    const patch =
      '--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+2\n--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n';
    const { pending } = await asked('patch_files', { patch }, { 'a.txt': '1\n', 'b.txt': 'gone\n' });
    expect(pending.description).toMatch(/\+\+\+ a\.txt[\s\S]*-1\n\+2[\s\S]*\+\+\+ b\.txt[\s\S]*-gone/);
  });

  test('show why a change would fail instead of a difference', async () => {
    const edit = { path: 'a.ts', edits: [{ oldText: 'none', newText: 'x' }] };
    const { pending } = await asked('edit_file', edit, { 'a.ts': 'one\n' });
    expect(pending.description).toContain('The change would fail:');
    expect(pending.description).toContain('oldText was not found');
  });

  test('show only the size of a very large difference, and truncate a long one', async () => {
    const huge = await asked('write_file', { path: 'b', text: 'x\n'.repeat(1_100_000) }, {});
    expect(huge.pending.description).toBe(
      'b: from 0 to 2200000 characters; the difference is too large to show',
    );
    const long = await asked('write_file', { path: 'b', text: 'some words\n'.repeat(20_000) }, {});
    expect(long.pending.description).toHaveLength(20_000 + '\n… (cut)'.length);
  });
});

describe('@Tool({ preview })', () => {
  test('calls a method of the class, and omits the preview if it throws', async () => {
    @Toolset()
    class Notes {
      private readonly place = 'the notes';
      @Tool({ description: 'Add', approval: { description: 'It adds.' }, preview: 'shown' })
      add(text: string): string {
        return text;
      }
      shown({ text }: { readonly text: string }): string {
        if (text === 'bad') throw new Error('no');
        return `+ ${text} in ${this.place}`;
      }
    }
    const { tools } = toolHarness(Notes);
    const asks = async (text: string) => {
      const provider = new ScriptedProvider([{ toolCalls: [{ id: 'c', name: 'add', arguments: { text } }] }]);
      const run = await runToolLoop({ provider, model: 'm', tools }, [{ role: 'user', content: 'Add' }]);
      return run.pending?.[0]?.description;
    };
    expect(await asks('milk')).toBe('It adds.\n+ milk in the notes');
    expect(await asks('bad')).toBe('It adds.');
  });

  test('is not called if no approval can be requested', async () => {
    let calls = 0;
    const tool = defineTool({
      name: 'pay',
      description: 'Pay',
      approval: true,
      preview: () => {
        calls += 1;
        return 'money';
      },
      execute: () => 'paid',
    });
    const registry = new ToolRegistry().register(tool);
    expect((await registry.execute('pay', {})).isError).toBe(true);
    expect(calls).toBe(0);
  });
});
