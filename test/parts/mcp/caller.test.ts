import { afterEach, describe, expect, test } from '@jest/globals';
import type { Client } from '@modelcontextprotocol/client';
import { defineTool, ToolRegistry } from 'toolwright';
import type { McpServerOptions } from 'toolwright/mcp';
import { connectClient, ERAS, type Listening, listen } from './mcp-connections.js';

const registry = new ToolRegistry({
  policy: ({ tool, context }) =>
    tool.name !== 'delete_all' || context.data.mcp?.authInfo?.extra?.sub === 'ada'
      ? true
      : { allow: false, reason: 'only Ada may' },
}).register(
  defineTool({
    name: 'who_am_i',
    description: 'Tells what it knows of its caller',
    execute(_args, { data, channel, conversationId }) {
      const { mcp, user } = data;
      return {
        user,
        channel,
        conversation: conversationId === undefined ? 'none' : 'session',
        sub: mcp?.authInfo?.extra?.sub,
        tenant: mcp?.headers?.get('x-tenant'),
        client: mcp?.client?.name,
        protocol: mcp?.protocolVersion,
      };
    },
  }),
  defineTool({ name: 'delete_all', description: 'Deletes', execute: () => 'gone' }),
);

let listening: Listening | undefined;
const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  await listening?.close();
});

async function connectAs(user: string | undefined, options: object): Promise<Client> {
  if (listening === undefined) throw new Error('nobody listens');
  const client = await connectClient(listening.url, { options, ...(user === undefined ? {} : { user }) });
  clients.push(client);
  return client;
}

const textOf = async (client: Client, name: string) => {
  const { content } = await client.callTool({ name });
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
};

describe.each(Object.entries(ERAS))('%s', (era, options) => {
  test('a tool can read who calls, and through which channel and client', async () => {
    listening = await listen(registry, {
      scope: ({ authInfo }) => ({ data: { user: authInfo?.extra?.sub } }),
    });
    const ada = await connectAs('ada', options);
    expect(JSON.parse(await textOf(ada, 'who_am_i'))).toEqual({
      user: 'ada',
      channel: 'mcp',
      conversation: era === '2025-11-25' ? 'session' : 'none',
      sub: 'ada',
      tenant: 'acme',
      client: 'a-client',
      protocol: era,
    });
  });

  test('a scope may have getters', async () => {
    listening = await listen(registry, {
      scope: ({ authInfo }) =>
        new (class {
          get channel() {
            return 'desk';
          }
          get data() {
            return { user: authInfo?.extra?.sub };
          }
        })(),
    });
    const ada = await connectAs('ada', options);
    expect(JSON.parse(await textOf(ada, 'who_am_i'))).toEqual(
      expect.objectContaining({ user: 'ada', channel: 'desk', sub: 'ada' }),
    );
  });

  test('an invalid scope is reported, and the call is refused', async () => {
    const reported: unknown[] = [];
    listening = await listen(registry, {
      scope: ({ authInfo }) => ({ owner: new Map([['sub', authInfo?.extra?.sub]]) }),
      onError: (error) => reported.push(error),
    });
    const ada = await connectAs('ada', options);
    await expect(ada.callTool({ name: 'who_am_i' })).rejects.toThrow('could not be prepared');
    expect(reported).toContainEqual(expect.objectContaining({ name: 'InvalidOptions' }));
  });

  test('a policy decides each call by its caller', async () => {
    listening = await listen(registry);
    const [ada, bob, nobody] = await Promise.all([
      connectAs('ada', options),
      connectAs('bob', options),
      connectAs(undefined, options),
    ]);
    expect(await textOf(ada, 'delete_all')).toBe('gone');
    expect(await textOf(bob, 'delete_all')).toContain('only Ada may');
    expect(await textOf(nobody, 'delete_all')).toContain('only Ada may');
  });

  test('a tool that a caller may not see can be neither listed nor called', async () => {
    const visible: McpServerOptions['visible'] = ({ authInfo }) =>
      authInfo?.extra?.sub === 'ada' ? {} : { deny: ['delete_*'] };
    listening = await listen(registry, { visible });
    const [ada, bob] = await Promise.all([connectAs('ada', options), connectAs('bob', options)]);
    expect((await ada.listTools()).tools.map(({ name }) => name)).toEqual(['who_am_i', 'delete_all']);
    expect((await bob.listTools()).tools.map(({ name }) => name)).toEqual(['who_am_i']);
    await expect(bob.callTool({ name: 'delete_all' })).rejects.toMatchObject({ code: -32602 });
  });

  test.each(['scope', 'visible'] as const)(
    'a call is refused without details if `%s` throws, and the error is reported',
    async (name) => {
      const errors: unknown[] = [];
      const refuse = () => {
        throw new Error('the directory is down, see db-7.internal');
      };
      listening = await listen(registry, { [name]: refuse, onError: (error) => errors.push(error) });
      const ada = await connectAs('ada', options);
      await expect(ada.callTool({ name: 'who_am_i' })).rejects.toMatchObject({
        code: -32603,
        message: expect.not.stringContaining('db-7'),
      });
      expect(String(errors)).toContain('db-7');
    },
  );
});
