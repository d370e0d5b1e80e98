import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { ScriptedProvider } from 'toolwright/testing';
import { createAssistant } from './create-assistant.js';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'assistant-'));
  await writeFile(join(folder, 'notes.md'), 'Order tea before Friday.');
});

afterEach(() => rm(folder, { recursive: true }));

/** A model that makes one call and then answers. */
function callOnce(name: string, args: object) {
  const toolCalls = [{ id: 'call_1', name, arguments: { ...args } }];
  return {
    model: 'scripted',
    provider: new ScriptedProvider([{ content: '', toolCalls }, { content: 'Done.' }]),
  };
}

test('reads a file of its folder', async () => {
  await using agent = await createAssistant(folder, callOnce('read_file', { path: 'notes.md' }));
  const run = await agent.run('What do I have to order?');
  assert.equal(run.status, 'completed');
  assert.match(run.toolCalls[0]?.result.forLLM ?? '', /Order tea/);
});

test('asks before it writes, and writes when it is approved', async () => {
  const model = callOnce('write_file', { path: 'new.md', text: 'Hello' });
  await using agent = await createAssistant(folder, model);
  const run = await agent.run('Write a greeting.');
  assert.equal(run.status, 'suspended');
  await assert.rejects(readFile(join(folder, 'new.md')));

  await agent.resume(run.state, [{ id: run.pending?.[0]?.id ?? '', approved: true }]);
  assert.equal(await readFile(join(folder, 'new.md'), 'utf8'), 'Hello');
});
