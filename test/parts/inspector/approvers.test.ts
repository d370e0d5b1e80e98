import { afterEach, describe, expect, test } from '@jest/globals';
import { Conversations, defineTool, runToolLoop, ToolRegistry } from 'toolwright';
import { createInspector, type InspectorOptions } from 'toolwright/inspector';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const OWNER = { user: 'u1' };
const hello = [{ role: 'user', content: 'Refund it' }] as const;
const script = () =>
  new ScriptedProvider([{ toolCalls: [{ name: 'refund', arguments: { amount: 5 } }] }, { content: 'Done.' }]);

async function open(options: InspectorOptions = {}) {
  const ran: unknown[] = [];
  const tools = new ToolRegistry().register(
    defineTool({
      name: 'refund',
      description: 'Refund',
      parameters: { type: 'object', properties: { amount: { type: 'integer' } } },
      approval: { approver: 'not-the-owner' },
      execute: (args) => `refunded ${ran.push(args)}`,
    }),
  );
  const inspector = createInspector(tools, options);
  ends.push(() => inspector.close());
  const { url: address } = await inspector.listen();
  const url = address.replace(/#.*$/, '');
  const headers = { authorization: `Bearer ${inspector.token}`, 'content-type': 'application/json' };
  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${url}api/${path}`, { ...init, headers });
    return { code: response.status, body: (await response.json()) as Record<string, never> };
  };
  const post = (path: string, body: object) => ask(path, { method: 'POST', body: JSON.stringify(body) });
  return { ran, tools, ask, post };
}

const CLERK = { user: 'clerk' };
const REFUSED = { code: 403, body: { error: expect.stringContaining("'refund'") } };

describe('the inspector and a call that must be approved by another user', () => {
  test('without `answeredBy`, the call can be refused but not approved', async () => {
    const store = new MemoryRunStore();
    const { ran, tools, ask, post } = await open({ store });
    const run = await runToolLoop({ provider: script(), model: 'm', tools, store }, hello, { owner: OWNER });
    const runId = run.state?.runId ?? '';
    const [{ id } = { id: '' }] = run.pending ?? [];
    const approval = { runId, answers: [{ id, approved: true }] };
    expect(await post('answers', { ...approval, goesOn: 'here' })).toMatchObject(REFUSED);
    expect(await post('answers', { ...approval, goesOn: 'worker' })).toMatchObject(REFUSED);
    expect((await ask('pending')).body.runs).toMatchObject([
      { runId, pending: [{ approver: 'not-the-owner' }] },
    ]);
    const refusal = { runId, answers: [{ id, approved: false }], goesOn: 'worker' };
    expect((await post('answers', refusal)).code).toBe(200);
    expect(ran).toEqual([]);
  });

  test('a configured user can approve the call, unless the user owns the run', async () => {
    for (const [answeredBy, code] of [
      [OWNER, 403],
      [CLERK, 200],
    ] as const) {
      const store = new MemoryRunStore();
      const { ran, tools, post } = await open({ store, answeredBy });
      const config = { provider: script(), model: 'm', tools, store };
      const run = await runToolLoop(config, hello, { owner: OWNER });
      const answers = [{ id: run.pending?.[0]?.id, approved: true }];
      expect((await post('answers', { runId: run.state?.runId, answers, goesOn: 'here' })).code).toBe(code);
      expect(ran).toHaveLength(code === 200 ? 1 : 0);
    }
  });

  test('the same rules apply to turns of conversations', async () => {
    const store = new MemoryRunStore();
    const { tools, post } = await open({ store });
    const conversations = new Conversations({ store, config: { provider: script(), model: 'm', tools } });
    ends.push(() => conversations.close());
    await conversations.prompt('c1', 'Refund it', { owner: OWNER });
    const { pending = [] } = (await conversations.idle('c1')) ?? {};
    const answers = pending.map(({ id }) => ({ id, approved: true }));
    expect(await post('answers', { runId: 'c1.1', answers, goesOn: 'conversation' })).toMatchObject(REFUSED);
    expect((await conversations.snapshot('c1'))?.status).toBe('suspended');
  });

  test('the same rules apply to calls from the page', async () => {
    const trial = { tool: 'refund', arguments: { amount: 5 }, scope: { owner: OWNER } };
    const nobody = await open();
    const { body: waiting } = await nobody.post('calls', trial);
    expect(await nobody.post(`call-answers/${waiting.key}`, { approved: true })).toMatchObject(REFUSED);
    expect(nobody.ran).toEqual([]);
    const clerk = await open({ answeredBy: CLERK });
    const { body: asked } = await clerk.post('calls', trial);
    expect((await clerk.post(`call-answers/${asked.key}`, { approved: true })).code).toBe(200);
    expect(clerk.ran).toEqual([{ amount: 5 }]);
  });

  test('an approval for a tool that has changed is a conflict', async () => {
    const store = new MemoryRunStore();
    const { tools, post } = await open({ store, answeredBy: CLERK });
    const config = { provider: script(), model: 'm', tools, store };
    const run = await runToolLoop(config, hello, { owner: OWNER });
    tools.unregister('refund');
    const answers = [{ id: run.pending?.[0]?.id, approved: true }];
    const refused = await post('answers', { runId: run.state?.runId, answers, goesOn: 'worker' });
    expect(refused).toMatchObject({ code: 409, body: { error: expect.stringContaining('has changed') } });
    expect((await store.load(run.state?.runId ?? ''))?.pending).toHaveLength(1);
  });
});
