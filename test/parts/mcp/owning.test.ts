import { expect, test } from '@jest/globals';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { defineTool, ToolRegistry } from 'toolwright';
import { ERAS, listen } from './mcp-connections.js';

test.each([
  ['its owner', 'anna', 'anna'],
  ['another owner', 'anna', 'mallory'],
  ['a caller without an owner', 'anna', ''],
  ['an owner although the call had none', '', 'mallory'],
])(
  'createMcpServer: only the owner can resume a suspended call: resumed by %s',
  async (_, asked, answered) => {
    const ran: unknown[] = [];
    const pay = defineTool({
      name: 'pay',
      description: 'Pays',
      approval: true,
      execute: (_args, context) => {
        ran.push(context.data.mcp?.headers?.get('x-user'));
        return 'paid';
      },
    });
    const listening = await listen(new ToolRegistry().register(pay), {
      scope: ({ headers }) => {
        const user = headers?.get('x-user');
        return user ? { owner: { user } } : {};
      },
    });
    let user = asked;
    const client = new Client(
      { name: 'a-client', version: '1' },
      { ...ERAS['2026-07-28'], capabilities: { elicitation: {} } },
    );
    client.setRequestHandler('elicitation/create', () => {
      user = answered;
      return { action: 'accept' as const, content: {} };
    });
    const send: typeof fetch = (url, init) => {
      const headers = new Headers(init?.headers);
      if (user !== '') headers.set('x-user', user);
      return fetch(url, { ...init, headers });
    };
    await client.connect(new StreamableHTTPClientTransport(listening.url, { fetch: send }));
    const call = client.callTool({ name: 'pay' });
    if (asked === answered) {
      expect(await call).toMatchObject({ content: [{ text: 'paid' }] });
      expect(ran).toEqual([asked]);
    } else {
      await expect(call).rejects.toThrow('Invalid or expired requestState');
      expect(ran).toEqual([]);
    }
    await client.close();
    await listening.close();
  },
);
