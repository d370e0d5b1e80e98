import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from 'ai';
import { useState } from 'react';
import {
  ApprovalForm,
  CallCard,
  ChatFrame,
  Composer,
  openPage,
  QuestionForm,
  runClientTool,
} from './parts.jsx';

/** Sends everything at once: as long as somebody has not answered, the server would wait on. */
const isAnswered = (given) =>
  lastAssistantMessageIsCompleteWithApprovalResponses(given) ||
  lastAssistantMessageIsCompleteWithToolCalls(given);

function ChatPage({ chatId, headers, said }) {
  // Arguments that were changed with an approval, by its id: they go with the next request.
  const [edits] = useState({});
  const [transport] = useState(
    () =>
      new DefaultChatTransport({
        api: '/api/chat',
        headers,
        prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => {
          // The server has the history: it needs the last message, and the edits of its calls.
          const [last] = messages.slice(-1);
          const ids = last.parts
            .map(({ approval }) => approval?.id)
            .filter((known) => Object.hasOwn(edits, known));
          const own = Object.fromEntries(ids.map((known) => [known, edits[known]]));
          return { body: { id, messages: [last], trigger, messageId, edits: own } };
        },
      }),
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
  // The message of the user that is being edited.
  const [edited, setEdited] = useState();

  const approve = (id, approved, args) => {
    if (args !== undefined) edits[id] = args;
    chat.addToolApprovalResponse({ id, approved });
  };
  const send = (text) => {
    setEdited(undefined);
    sendMessage(edited === undefined ? { text } : { messageId: edited.id, text });
  };
  const end = async () => {
    // `stop` only stops reading: the turn goes on without a reader, until the server is told to end it.
    await fetch(`/api/chat?id=${encodeURIComponent(chatId)}`, { method: 'DELETE', headers });
    await stop();
  };
  const isBusy = status === 'submitted' || status === 'streaming';
  const last = messages.at(-1);
  const isWaiting = last?.parts.some(({ state }) => state === 'approval-requested') ?? false;
  const lastOfUser = messages.findLast(({ role }) => role === 'user');

  return (
    <ChatFrame
      title="useChat"
      status={status}
      error={error?.message}
      composer={
        <Composer
          key={edited?.id}
          onSend={send}
          onStop={end}
          isBusy={isBusy}
          isWaiting={isWaiting}
          edited={edited?.parts[0]?.text}
          onLeave={() => setEdited(undefined)}
        />
      }
    >
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
          {!isBusy && !isWaiting && message === last && message.role === 'assistant' && (
            <button type="button" className="quiet" onClick={() => regenerate()}>
              Answer anew
            </button>
          )}
          {!isBusy && !isWaiting && message === lastOfUser && (
            <button type="button" className="quiet" onClick={() => setEdited(message)}>
              Edit
            </button>
          )}
        </li>
      ))}
    </ChatFrame>
  );
}

const STATES = {
  'approval-requested': 'waiting',
  'output-available': 'done',
  'output-error': 'failed',
  'output-denied': 'refused',
};

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
    <CallCard
      name={name}
      state={STATES[part.state] ?? 'running'}
      args={part.input}
      output={part.output ?? part.errorText}
    >
      {part.state === 'approval-requested' && (
        <ApprovalForm
          name={name}
          args={part.input}
          onAnswer={(approved, args) => approve(part.approval.id, approved, args)}
        />
      )}
    </CallCard>
  );
}

openPage(async ({ chatId, headers }) => {
  const response = await fetch(`/api/chat/${encodeURIComponent(chatId)}/messages`, { headers });
  return <ChatPage chatId={chatId} headers={headers} said={await response.json()} />;
});
