import { defineTool } from 'toolwright';
import { createChatHandler } from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';

const ADDRESS = 'http://localhost/api/chat';

/** The streams of a conversation with an approval, the stream of a reader that reconnects, and the messages. */
export async function chatReport(): Promise<readonly string[]> {
  const sendMail = defineTool({
    name: 'send_mail',
    description: 'Send mail',
    approval: true,
    execute: () => 'sent',
  });
  const provider = new ScriptedProvider([
    { content: 'I ask first.', toolCalls: [{ id: 'c1', name: 'send_mail', arguments: {} }] },
    { content: 'It is sent: grüße 👋' },
  ]);
  const chat = createChatHandler({
    provider,
    model: 'none',
    tools: [sendMail],
    store: new MemoryRunStore(),
    authenticate: ({ headers }) => headers.get('authorization'),
  });
  // A route of Next exports `fetch` without its object.
  const { fetch: route } = chat;
  const headers = { authorization: 'ada', 'content-type': 'application/json' };
  const post = async (message: object): Promise<string> => {
    const body = JSON.stringify({ id: 'chat-1', messages: [message] });
    return (await route(new Request(ADDRESS, { method: 'POST', headers, body }))).text();
  };
  const get = async (path: string): Promise<string> =>
    (await route(new Request(`${ADDRESS}/chat-1/${path}`, { headers }))).text();
  const asked = await post({ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Send it' }] });
  const waiting = await get('stream');
  const { toolCallId, approvalId } = JSON.parse(
    /data: (.*"tool-approval-request".*)/.exec(asked)?.[1] ?? '{}',
  );
  const answered = await post({
    id: 'turn-1',
    role: 'assistant',
    parts: [
      {
        type: 'tool-send_mail',
        toolCallId,
        state: 'approval-responded',
        approval: { id: approvalId, approved: true },
      },
    ],
  });
  const messages = await get('messages');
  await chat.close();
  return [asked, waiting, answered, messages];
}
