import { expect, test } from '@jest/globals';
import { defineTool, foldRun, recoverRuns, resumeStoredRun, resumeToolLoop, runToolLoop } from 'toolwright';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';

const USER = [{ role: 'user', content: 'Go' }] as const;

/** A store with a suspended run, its config, and answers to its pending calls. */
async function suspended() {
  const store = new MemoryRunStore();
  const order = defineTool({
    name: 'order',
    description: 'Orders',
    parameters: { type: 'object', properties: {} },
    approval: true,
    execute: () => 'Ordered.',
  });
  const provider = new ScriptedProvider([
    { content: '', toolCalls: [{ id: 'c1', name: 'order', arguments: {} }] },
  ]);
  const config = { provider, model: 'm', tools: [order], store };
  const { state, pending = [] } = await runToolLoop(config, USER);
  if (state === undefined) throw new Error('The run was not suspended.');
  const answers = pending.map(({ id }) => ({ id, approved: true }));
  return { store, config, state, answers };
}

test('a suspended run stored by a newer version is refused and stays unchanged', async () => {
  const { store, config, state, answers } = await suspended();
  const newer = { ...state, version: 8 as never, revision: state.revision + 1 };
  store.save(newer);
  const before = store.read(state.runId);
  const invalid = { name: 'InvalidState', message: expect.stringContaining('version') };
  await expect(resumeStoredRun(config, { store, runId: state.runId }, answers)).rejects.toMatchObject(
    invalid,
  );
  await expect(resumeToolLoop({ ...config, store: undefined }, newer, answers)).rejects.toMatchObject(
    invalid,
  );
  expect(store.load(state.runId)).toEqual(newer);
  expect(store.read(state.runId)).toMatchObject({ status: 'suspended', entries: before?.entries });
  expect(() => foldRun({ state: newer, entries: [] })).toThrow('is stored in version 8');
});

test('a running run stored by a newer version is not recovered and stays unchanged', async () => {
  let now = 1_700_000_000_000;
  const { config, state } = await suspended();
  const store = new MemoryRunStore({ now: () => now });
  const { pending: _pending, open: _open, ...progress } = state;
  const checkpoint = { ...progress, version: 8 as never, status: 'running' as const };
  store.begin({ runId: state.runId, claim: 'a process that died', leaseMs: 1000 }, checkpoint);
  now += 2000;
  const [recovered] = await recoverRuns({ store, config });
  expect(recovered).toMatchObject({
    error: { name: 'InvalidState', message: expect.stringContaining('stored in version 8') },
  });
  expect(store.read(state.runId)).toMatchObject({ status: 'running', state: checkpoint, entries: [] });
});
