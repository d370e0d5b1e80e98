import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from 'ai';
import { useState } from 'react';
import { ApprovalForm, openPage, PromptForm, QuestionForm, runClientTool } from './parts.jsx';

/** Sends everything at once: as long as somebody has not answered, the server would wait on. */
const isAnswered = (given) =>
  lastAssistantMessageIsCompleteWithApprovalResponses(given) ||
  lastAssistantMessageIsCompleteWithToolCalls(given);

function ChatPage({ chatId, headers, said }) {
  // Arguments that were changed with an approval, by its id: they go with the next request.
  const [edits] = useState({});
  const [transport] = useState(
    () => new DefaultChatTransport({ api: '/api/chat', headers, body: () => ({ edits }) }),
  );
  const chat = useChat({
    id: chatId,
    messages: said,
    resume: true,
    transport,
    sendAutomaticallyWhen: isAnswered,
    async onToolCall({ toolCall }) {
      const output = await runClientTool(toolCall.toolName);
      if (output !== undefined)
        chat.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output });
    },
  });
  const { messages, status, error, sendMessage, regenerate, stop } = chat;

  const approve = (id, approved, args) => {
    if (args !== undefined) edits[id] = args;
    chat.addToolApprovalResponse({ id, approved });
  };
  const end = async () => {
    // `stop` only stops reading: the turn goes on without a reader, until the server is told to end it.
    await fetch(`/api/chat?id=${encodeURIComponent(chatId)}`, { method: 'DELETE', headers });
    await stop();
  };

  return (
    <main>
      <h1>Chat</h1>
      <ol>
        {messages.map((message) => (
          <li key={message.id} data-role={message.role} data-id={message.id}>
            {message.parts.map((part, index) => (
              <Part
                key={index}
                part={part}
                parts={message.parts}
                approve={approve}
                answer={chat.addToolOutput}
              />
            ))}
          </li>
        ))}
      </ol>
      <p role="status">{status}</p>
      {error && <p role="alert">{error.message}</p>}
      <PromptForm onPrompt={(text) => sendMessage({ text })} isBusy={status === 'streaming'} />
      <button type="button" onClick={end}>
        Stop
      </button>
      <button type="button" onClick={() => regenerate()}>
        Answer anew
      </button>
      <button
        type="button"
        onClick={() => {
          const last = messages.findLast(({ role }) => role === 'user');
          const text = prompt('Say instead', last?.parts[0]?.text);
          if (last && text) sendMessage({ messageId: last.id, text });
        }}
      >
        Edit
      </button>
    </main>
  );
}

function Part({ part, parts, approve, answer }) {
  if (part.type === 'text') return <p>{part.text}</p>;
  if (part.type === 'reasoning') return <em>{part.text}</em>;
  if (part.type === 'data-question') {
    const asked = parts.find(({ toolCallId }) => toolCallId === part.data.callId);
    if (asked?.state !== 'input-available') return null;
    const { tool, callId: toolCallId } = part.data;
    return (
      <QuestionForm
        question={part.data.message}
        onAnswer={(output) => answer({ tool, toolCallId, output })}
      />
    );
  }
  if (!part.type.startsWith('tool-')) return null;
  const name = part.type.slice(5);
  return (
    <section aria-label={name} data-state={part.state}>
      <code>{JSON.stringify(part.input)}</code>
      {part.state === 'approval-requested' && (
        <ApprovalForm
          name={name}
          args={part.input}
          onAnswer={(approved, args) => approve(part.approval.id, approved, args)}
        />
      )}
      {part.state === 'output-available' && <output>{String(part.output)}</output>}
      {part.state === 'output-error' && <output>failed: {part.errorText}</output>}
      {part.state === 'output-denied' && <output>refused</output>}
    </section>
  );
}

openPage(async ({ chatId, headers }) => {
  const response = await fetch(`/api/chat/${encodeURIComponent(chatId)}/messages`, { headers });
  return <ChatPage chatId={chatId} headers={headers} said={await response.json()} />;
});
