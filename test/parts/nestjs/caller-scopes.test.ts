import { expect, test } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { defineTool, type Message, Tool, ToolContext } from 'toolwright';
import type { ToolwrightModuleOptions } from 'toolwright/nestjs';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';
import { boot } from './boot.js';

interface Asking {
  readonly user: Fields & { readonly id: string };
}

type Fields = Readonly<Record<string, unknown>>;

@Injectable()
class Shop {
  @Tool({ description: 'Pay', approval: true, scopes: ['w'] })
  pay(context: ToolContext): string {
    return `paid with ${context.scopes?.join(' ')}`;
  }
}

const ASKED: Message[] = [{ role: 'user', content: 'Pay' }];
const SECRET = 'a secret of more than thirty-two characters';

const open = (options: ToolwrightModuleOptions = {}) =>
  boot({
    options: {
      provider: new ScriptedProvider([{ toolCalls: [{ name: 'pay', arguments: {} }] }, { content: 'Done.' }]),
      model: 'm',
      store: new MemoryRunStore(),
      stateSecret: SECRET,
      owner: ({ user }: Asking) => ({ user: user.id }),
      ...options,
    },
    providers: [Shop],
  });

type Toolwright = Awaited<ReturnType<typeof open>>['toolwright'];

/** The result of the call after it was approved. */
async function pay(toolwright: Toolwright, user: Asking['user'], by = user): Promise<unknown> {
  const { runId = '', pending = [] } = await toolwright.run(ASKED, { request: { user } });
  const answers = pending.map(({ id }) => ({ id, approved: true }));
  const { messages } = await toolwright.resumeStored(runId, answers, { request: { user: by } });
  return messages.find(({ role }) => role === 'tool')?.content;
}

const granting = {
  scopeOf: async ({ user }: { readonly user: string }) => ({
    request: { user: { id: user } },
    scopes: ['w'],
  }),
} satisfies ToolwrightModuleOptions;

/** The owner’s user has the scopes, as after a login. */
const loggingIn = {
  scopeOf: ({ user }: { readonly user: string }) => ({ request: { user: { id: user, scope: 'r w' } } }),
} satisfies ToolwrightModuleOptions;

test.each<Fields>([{ scopes: ['r', 'w'] }, { scope: 'r w' }, { scp: ['r', 'w'] }])(
  'a run and its resume have the scopes of the user of their request (%j), as over MCP',
  async (claims) => {
    const { toolwright } = await open();
    expect(await pay(toolwright, { id: 'ada', ...claims })).toBe('paid with r w');
  },
);

test('a user without scopes gets those that `scopeOf` returns for the owner, as in chats', async () => {
  const { toolwright } = await open(granting);
  expect(await pay(toolwright, { id: 'ada' })).toBe('paid with w');
  const others = await open(loggingIn);
  expect(await pay(others.toolwright, { id: 'ada' })).toBe('paid with r w');
});

test('streams and resumed states have these scopes, too', async () => {
  const { toolwright } = await open(granting);
  const request = { user: { id: 'ada' } };
  const { state, pending = [] } = await toolwright.stream(ASKED, { request }).result;
  const answers = pending.map(({ id }) => ({ id, approved: true }));
  const resumed = [
    await toolwright.resume(state, answers, { request }),
    await toolwright.streamResumed(state, answers, { request }).result,
  ];
  for (const { messages } of resumed)
    expect(messages.find(({ role }) => role === 'tool')?.content).toBe('paid with w');
});

test('`scopeOf` never widens the scopes of the user, and explicit scopes take precedence', async () => {
  const { toolwright } = await open(granting);
  expect(await pay(toolwright, { id: 'ada', scope: 'w' }, { id: 'ada', scope: 'r' })).toMatch(
    /refused: the caller lacks the OAuth scopes w/,
  );
  const others = await open(granting);
  const given = await others.toolwright.run(ASKED, {
    request: { user: { id: 'ada', scope: 'w' } },
    scopes: ['r'],
  });
  expect(given.status).toBe('completed');
  expect(given.messages.find(({ role }) => role === 'tool')?.content).toMatch(/lacks the OAuth scopes w/);
});

test('a call that another user approved runs with the scopes of the owner’s user', async () => {
  const { toolwright } = await open({ ...loggingIn, mayAnswer: () => true });
  expect(await pay(toolwright, { id: 'ada', scope: 'w' }, { id: 'clerk' })).toBe('paid with r w');
});

test('a single call with `scopeOf(request)` has the scopes of the user', async () => {
  const { tools, toolwright } = await open();
  const scope = toolwright.scopeOf({ user: { id: 'ada', scope: 'w' } });
  expect(scope.scopes).toEqual(['w']);
  expect((await tools.executeWithContext('pay', {}, scope)).forLLM).not.toContain('lacks');
});

test('a ToolContext that is passed on keeps the owner and the scopes of its call', async () => {
  const { tools, toolwright } = await open();
  const seen: unknown[] = [];
  tools.register(
    defineTool({
      name: 'pass_on',
      description: 'Passes its context on',
      execute: async (_args, context) => {
        const { owner, scopes, data } = toolwright.scopeOf({}, context);
        const run = await toolwright.run(ASKED, context);
        seen.push({ owner, scopes, data }, run.status);
      },
    }),
  );
  const scope = { owner: { user: 'ada' }, scopes: ['w'], data: { shop: 7 } };
  expect(await tools.executeWithContext('pass_on', {}, scope)).toMatchObject({ isError: false });
  expect(seen).toEqual([scope, 'suspended']);
});

test('a run whose tools need scopes is refused if nothing provides scopes', async () => {
  const { toolwright } = await open({ scopeOf: () => ({}) });
  await expect(toolwright.run(ASKED, { request: { user: { id: 'ada' } } })).rejects.toThrow(
    'the scope has no `scopes`',
  );
});
