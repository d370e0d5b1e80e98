import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HttpAgent } from '@ag-ui/client';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DefaultChatTransport, readUIMessageStream, type UIMessage } from 'ai';
import { describeBrowser } from '../browser/browser.js';
import { builtFile } from '../processes/built-file.js';
import { NodeProcess } from '../processes/node-process.js';

// Runs examples/chat as its command does, and uses it as its two pages do.

const folder = mkdtempSync(join(tmpdir(), 'toolwright-chat-'));
let process: NodeProcess;
let url = '';

const ADA = { authorization: 'Bearer token-ada' };

beforeAll(async () => {
  process = new NodeProcess([builtFile('dist/examples/chat/main.js')], {
    folder,
    environment: { PORT: '0', CHAT_DATA: folder },
  });
  process.endInput();
  [, url = ''] = await process.waitFor(/The chat is open at (\S+)\n/);
});

afterAll(async () => {
  await process?.kill();
  rmSync(folder, { recursive: true, force: true });
});

const said = (text: string): UIMessage => ({
  id: crypto.randomUUID(),
  role: 'user',
  parts: [{ type: 'text', text }],
});

async function lastOf(stream: ReadableStream, before?: UIMessage): Promise<UIMessage> {
  let last = before;
  for await (const message of readUIMessageStream({ stream, ...(before ? { message: before } : {}) }))
    last = message;
  return last as UIMessage;
}

describe('the chat example', () => {
  test('takes an order through the AI SDK transport, with edited arguments', async () => {
    const edits: Record<string, unknown> = {};
    const transport = new DefaultChatTransport({
      api: `${url}/api/chat`,
      headers: ADA,
      body: () => ({ edits }),
    });
    const send = (...messages: UIMessage[]) =>
      transport.sendMessages({
        trigger: 'submit-message',
        chatId: 'c1',
        messageId: undefined,
        abortSignal: undefined,
        messages,
      });
    const asked = await lastOf(await send(said("Place an order of the item 'lamp'")));
    const [step, call] = asked.parts;
    expect(call).toMatchObject({
      type: 'tool-place_order',
      state: 'approval-requested',
      input: { item: 'lamp' },
    });
    const { approval } = call as { approval: { id: string } };
    edits[approval.id] = { item: 'vase', quantity: 2 };
    const approved = { ...call, state: 'approval-responded', approval: { ...approval, approved: true } };
    const answered = { ...asked, parts: [step, approved] } as UIMessage;
    const done = await lastOf(await send(answered), answered);
    expect(done.parts[1]).toMatchObject({
      state: 'output-available',
      output: expect.stringContaining('vase'),
    });
    const kept = (await (
      await fetch(`${url}/api/chat/c1/messages`, { headers: ADA })
    ).json()) as readonly UIMessage[];
    expect(kept).toHaveLength(2);
    expect(kept[1]?.id).toBe(asked.id);
    expect((await fetch(`${url}/api/chat/c1/messages`)).status).toBe(401);
    const eve = { authorization: 'Bearer token-eve' };
    expect((await fetch(`${url}/api/chat/c1/messages`, { headers: eve })).status).toBe(403);
  });

  test('takes an order through an AG-UI agent', async () => {
    const agent = new HttpAgent({ url: `${url}/api/agent`, threadId: 'c2', headers: ADA });
    agent.addMessage({ id: 'm1', role: 'user', content: "Place an order of the item 'rug'" });
    await agent.runAgent();
    const interruptId = agent.pendingInterrupts[0]?.id as string;
    await agent.runAgent({ resume: [{ interruptId, status: 'resolved', payload: { approved: true } }] });
    expect(agent.messages.find(({ role }) => role === 'tool')?.content).toContain('rug');
    expect(agent.messages.at(-1)?.role).toBe('assistant');
  });
});

describeBrowser('the pages of the chat example', (browser) => {
  test.each(['use-chat', 'ag-ui'])('%s takes an order', async (name) => {
    const { page, faults } = await browser.newPage();
    await page.goto(url);
    await page.getByRole('link', { name }).click();
    await page.getByRole('status').getByText('ready').waitFor();
    await page.getByLabel('Message').fill("Place an order of the item 'mirror'");
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('button', { name: 'Approve', exact: true }).click();
    await page.locator('output', { hasText: 'mirror' }).waitFor();
    expect(faults).toEqual([]);
  });
});
