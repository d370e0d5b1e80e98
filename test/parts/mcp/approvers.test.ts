import { describe, expect, test } from '@jest/globals';
import { type Approver, defineTool, ToolRegistry } from 'toolwright';
import { connectClient, ERAS, listen } from './mcp-connections.js';

describe.each(Object.entries(ERAS))('approval.approver with a client of %s', (_era, options) => {
  /** Calls the tool with a client whose user accepts every request. */
  async function refund(approver: Approver, scope: object) {
    const ran: unknown[] = [];
    let asked = 0;
    const tools = new ToolRegistry().register(
      defineTool({
        name: 'refund',
        description: 'Refund',
        parameters: { type: 'object', properties: { amount: { type: 'integer' } } },
        approval: { approver },
        execute: (args) => `refunded ${ran.push(args)}`,
      }),
    );
    const listening = await listen(tools, { scope: () => scope });
    const client = await connectClient(listening.url, {
      options: { ...options, capabilities: { elicitation: {} } },
      prepare: (one) =>
        one.setRequestHandler('elicitation/create', () => {
          asked += 1;
          return { action: 'accept', content: {} };
        }),
    });
    try {
      const result = await client.callTool({ name: 'refund', arguments: { amount: 5 } });
      return { result, ran, asked };
    } finally {
      await client.close();
      await listening.close();
    }
  }

  const OWNER = { owner: { user: 'u1' } };

  test('the user counts as the owner: a call that the owner may not approve is refused without asking', async () => {
    for (const scope of [OWNER, {}]) {
      const { result, ran, asked } = await refund('not-the-owner', scope);
      expect(result).toMatchObject({
        isError: true,
        content: [
          {
            text: expect.stringMatching(/'refund' needs an approval that cannot be given on this connection/),
          },
        ],
      });
      expect([ran, asked]).toEqual([[], 0]);
    }
  });

  test('a function that accepts the owner lets the user approve, and a function that throws does not', async () => {
    const accepted = await refund(({ answeredBy, owner }) => answeredBy === owner || true, OWNER);
    expect([accepted.ran, accepted.asked]).toEqual([[{ amount: 5 }], 1]);
    const thrown = await refund(() => {
      throw new Error('no directory');
    }, OWNER);
    expect([thrown.ran, thrown.asked, thrown.result.isError]).toEqual([[], 0, true]);
  });
});
