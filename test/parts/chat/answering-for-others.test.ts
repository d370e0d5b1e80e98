import { afterEach, describe, expect, test } from '@jest/globals';
import { type Approver, defineTool, type ToolDefinition } from 'toolwright';
import { type ChatHandlerOptions, createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { type Listening, serve } from '../../setup/loopback.js';
import { framesOf, readMessage, said } from './chat-reader.js';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

interface Opened {
  readonly url: string;
  readonly ran: unknown[];
  readonly asked: unknown[];
  readonly tools: ToolDefinition[];
  readonly handler: ReturnType<typeof createChatHandler>;
}

function refund(ran: unknown[], approver: Approver, required: readonly string[] = []): ToolDefinition {
  return defineTool({
    name: 'refund',
    description: 'Refund',
    approval: { approver, title: 'Refund an order' },
    parameters: {
      type: 'object',
      properties: { amount: { type: 'integer' }, reason: { type: 'string' } },
      required: ['amount', ...required],
    },
    execute: (args) => `refunded ${ran.push(args)}`,
  });
}

/** A chat of u1 over real HTTP, in which the clerk may answer. */
async function open(
  protocol: ChatHandlerOptions['protocol'] = 'ui-messages',
  { approver = 'not-the-owner' as Approver, more = {} as object } = {},
): Promise<Opened> {
  const ran: unknown[] = [];
  const asked: unknown[] = [];
  const tools = [refund(ran, approver)];
  const handler = createChatHandler({
    provider: new ScriptedProvider([
      { content: 'SECRET of the owner', toolCalls: [{ name: 'refund', arguments: { amount: 5 } }] },
      { content: 'SECRET result' },
    ]),
    model: 'm',
    tools,
    store: new MemoryRunStore(),
    authenticate: (request) => ({ user: request.headers.get('x-user') }),
    mayAnswer: (request, run) => {
      asked.push(run);
      if (request.headers.get('x-user') === 'broken') throw new Error('no directory');
      return request.headers.get('x-user') === 'clerk';
    },
    protocol,
    ...more,
  });
  ends.push(() => handler.close());
  const server: Listening = await serve(handler.node);
  ends.push(() => server[Symbol.asyncDispose]());
  return { url: `${server.url}/api/chat`, ran, asked, tools, handler };
}

const ask = (url: string, user: string, body?: object, method = body === undefined ? 'GET' : 'POST') =>
  fetch(url, {
    method,
    headers: { 'content-type': 'application/json', 'x-user': user },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

const begin = (url: string) => ask(url, 'u1', { id: 'c1', messages: [said('Refund SECRET order', 'm1')] });

/** The message with all of its pending approvals approved. */
function approvedIn(message: Awaited<ReturnType<typeof readMessage>>['message'], approved = true) {
  const parts = message?.parts.map((part) =>
    'approval' in part && part.approval
      ? { ...part, state: 'approval-responded', approval: { id: part.approval.id, approved } }
      : part,
  );
  return { id: 'c1', messages: [{ ...message, parts }] };
}

describe('createChatHandler with mayAnswer', () => {
  test('another user who may answer can read and approve the call, and the owner is refused', async () => {
    const { url, ran, asked } = await open();
    const own = await readMessage(await begin(url));
    const byOwner = await ask(url, 'u1', approvedIn(own.message));
    expect(byOwner.status).toBe(403);
    expect(await byOwner.json()).toMatchObject({
      error: { message: expect.stringMatching(/only by a user who is not the owner of the run/) },
    });
    expect(ran).toEqual([]);

    const shown = await ask(`${url}/c1/stream`, 'clerk');
    const question = await readMessage(shown.clone());
    expect(question.violations).toEqual([]);
    expect(question.message?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'tool-refund', state: 'approval-requested', input: { amount: 5 } },
    ]);
    expect(asked.at(-1)).toMatchObject({ owner: { user: 'u1' }, pending: [{ tool: 'refund' }] });

    const answered = await ask(url, 'clerk', approvedIn(question.message));
    expect(answered.status).toBe(200);
    const told = await readMessage(answered.clone());
    expect(told.violations).toEqual([]);
    for (const text of [await shown.text(), await answered.text()]) expect(text).not.toContain('SECRET');
    await whenIdle(url);
    expect(ran).toEqual([{ amount: 5 }]);
  });

  test('the other user cannot prompt, read the history, abort, or read a turn that is not suspended', async () => {
    const { url, ran } = await open();
    const own = await readMessage(await begin(url));
    const prompt = { id: 'c1', messages: [said('Refund it again', 'm2')] };
    const again = { id: 'c1', trigger: 'regenerate-message', messageId: 'turn-1', messages: [] };
    for (const body of [prompt, again]) expect((await ask(url, 'clerk', body)).status).toBe(403);
    expect((await ask(`${url}/c1/messages`, 'clerk')).status).toBe(403);
    expect((await ask(`${url}/c1/stream`, 'clerk', undefined, 'DELETE')).status).toBe(403);
    for (const stranger of ['eve', 'broken']) {
      expect((await ask(`${url}/c1/stream`, stranger)).status).toBe(403);
      expect((await ask(url, stranger, approvedIn(own.message))).status).toBe(403);
    }
    const forged = approvedIn(own.message);
    const text = JSON.stringify(forged).replaceAll(/approval_[\w-]{22}/g, `approval_${'x'.repeat(22)}`);
    expect((await ask(url, 'clerk', JSON.parse(text))).status).toBe(409);
    expect(ran).toEqual([]);
    await (await ask(url, 'clerk', approvedIn(own.message, false))).text();
    // The clerk has answered; only the owner may read the outcome.
    expect((await ask(url, 'clerk', approvedIn(own.message))).status).toBe(409);
    const shown = await ask(`${url}/c1/stream`, 'clerk');
    expect(shown.status).toBe(204);
  });

  test('if the owner and the clerk answer at once, and twice, only one answer counts', async () => {
    const { url, ran } = await open('ui-messages', { approver: 'may-answer' });
    const { message } = await readMessage(await begin(url));
    const answers = await Promise.all(
      ['u1', 'clerk', 'clerk', 'u1'].map(async (user) => (await ask(url, user, approvedIn(message))).text()),
    );
    expect(answers).toHaveLength(4);
    expect(ran).toEqual([{ amount: 5 }]);
  });

  test('edited arguments are accepted from the clerk and refused from the owner', async () => {
    const { url, ran } = await open();
    const { message } = await readMessage(await begin(url));
    const part = message?.parts.find(({ type }) => type === 'tool-refund') as { approval: { id: string } };
    const edited = { ...approvedIn(message), edits: { [part.approval.id]: { amount: 3 } } };
    expect((await ask(url, 'u1', edited)).status).toBe(403);
    await (await ask(url, 'clerk', edited)).text();
    await whenIdle(url);
    expect(ran).toEqual([{ amount: 3 }]);
  });

  test('an approval of a tool that has changed is a conflict, and the chat stays suspended', async () => {
    const { url, ran, tools } = await open('ui-messages', { approver: 'may-answer' });
    const { message } = await readMessage(await begin(url));
    tools.splice(0, 1, refund(ran, 'may-answer', ['reason']));
    const refused = await ask(url, 'u1', approvedIn(message));
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({
      error: { message: expect.stringMatching(/'refund' has changed.*reason/) },
    });
    const part = message?.parts.find(({ type }) => type === 'tool-refund') as { approval: { id: string } };
    const edited = { ...approvedIn(message), edits: { [part.approval.id]: { amount: 5, reason: 'broken' } } };
    expect((await ask(url, 'u1', edited)).status).toBe(200);
    await whenIdle(url);
    expect(ran).toEqual([{ amount: 5, reason: 'broken' }]);
  });

  test('an approval of a call whose arguments would change is a conflict, and the page then shows the new call', async () => {
    const { url, ran, tools } = await open('ui-messages', { approver: 'may-answer' });
    const { message } = await readMessage(await begin(url));
    const changed = refund(ran, 'may-answer');
    const tip = { type: 'integer', default: 50 } as const;
    const { properties } = changed.parameters as { readonly properties: object };
    tools.splice(0, 1, { ...changed, parameters: { type: 'object', properties: { ...properties, tip } } });
    const refused = await ask(url, 'u1', approvedIn(message));
    expect([refused.status, await refused.text()]).toEqual([409, expect.stringMatching(/with 'tip' added/)]);
    const { message: again, violations } = await readMessage(await ask(`${url}/c1/stream`, 'u1'));
    expect(violations).toEqual([]);
    expect(again?.parts.at(-1)).toMatchObject({
      state: 'approval-requested',
      approval: { descriptor: { description: expect.stringContaining("with 'tip' added") } },
    });
    expect((await ask(url, 'u1', approvedIn(again))).status).toBe(200);
    await whenIdle(url);
    expect(ran).toEqual([{ amount: 5, tip: 50 }]);
  });

  test('AG-UI has the same rules', async () => {
    const { url, ran } = await open('ag-ui');
    const run = (user: string, more: object) =>
      ask(url, user, {
        threadId: 'c1',
        runId: crypto.randomUUID(),
        messages: [],
        tools: [],
        context: [],
        ...more,
      });
    const message = { id: 'm1', role: 'user', content: 'Refund SECRET order' };
    await (await run('u1', { messages: [message] })).text();
    const shown = await framesOf(await ask(`${url}?id=c1`, 'clerk'));
    expect(shown.data.join()).not.toContain('SECRET');
    const { outcome } = JSON.parse(shown.data.at(-1) ?? '{}');
    expect(outcome).toMatchObject({ type: 'interrupt', interrupts: [{ reason: 'tool_call' }] });
    const resume = [
      { interruptId: outcome.interrupts[0].id, status: 'resolved', payload: { approved: true } },
    ];
    expect((await run('u1', { resume })).status).toBe(403);
    expect((await run('clerk', { messages: [message] })).status).toBe(403);
    const answered = await framesOf(await run('clerk', { resume }));
    expect(answered.data.join()).not.toContain('SECRET');
    expect(JSON.parse(answered.data.at(-1) ?? '{}')).toMatchObject({ type: 'RUN_FINISHED' });
    await whenIdle(url);
    expect(ran).toEqual([{ amount: 5 }]);
  });

  test('an invalid `mayAnswer`, and option names of the NestJS module, throw', () => {
    const given = { provider: new ScriptedProvider([]), model: 'm', store: new MemoryRunStore() };
    const authenticate = () => 'u1';
    for (const [more, text] of [
      [{ mayAnswer: 'clerk' }, /mayAnswer/],
      [{ mayAnswer: undefined }, /mayAnswer/],
      [{ owner: authenticate }, /authenticate/],
      [{ scopeOf: () => ({}) }, /scope: /],
    ] as const)
      expect(() => createChatHandler({ ...given, authenticate, ...(more as object) })).toThrow(text);
  });
});

/** Waits until the turn has ended, as seen by its owner. */
async function whenIdle(url: string): Promise<void> {
  for (let said = ''; !said.includes('SECRET result'); )
    said = await (await ask(`${url}/c1/messages`, 'u1')).text();
}
