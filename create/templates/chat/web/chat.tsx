import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai';
import { type KeyboardEvent, useState } from 'react';

const transport = new DefaultChatTransport({ api: '/api/chat' });

export function Chat(props: { readonly id: string; readonly messages: UIMessage[] }) {
  const { messages, status, error, sendMessage, stop, addToolApprovalResponse } = useChat({
    ...props,
    transport,
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const isBusy = status === 'submitted' || status === 'streaming';

  // `stop` only stops reading; the server ends the turn when it is told to.
  const end = async () => {
    await fetch(`/api/chat/${encodeURIComponent(props.id)}/stream`, { method: 'DELETE' });
    await stop();
  };

  return (
    <main>
      <h1>Tea shop</h1>
      <ol aria-live="polite">
        {messages.map((message) => (
          <li key={message.id} className={message.role}>
            {message.parts.map((part, index) => (
              <Part key={index} part={part} onAnswer={addToolApprovalResponse} />
            ))}
          </li>
        ))}
      </ol>
      {error && <p role="alert">{error.message}</p>}
      <Composer isBusy={isBusy} onSend={(text) => sendMessage({ text })} onStop={end} />
    </main>
  );
}

interface PartProps {
  readonly part: UIMessage['parts'][number];
  readonly onAnswer: (answer: { id: string; approved: boolean }) => void;
}

function Part({ part, onAnswer }: PartProps) {
  if (part.type === 'text') return <p>{part.text}</p>;
  if (!isToolUIPart(part)) return null;
  const name = part.type.replace(/^tool-/, '');
  return (
    <section aria-label={name} data-state={part.state}>
      <strong>{name}</strong>
      <code>{JSON.stringify(part.input)}</code>
      {part.state === 'approval-requested' && (
        <p>
          <button type="button" onClick={() => onAnswer({ id: part.approval.id, approved: true })}>
            Approve
          </button>
          <button type="button" onClick={() => onAnswer({ id: part.approval.id, approved: false })}>
            Refuse
          </button>
        </p>
      )}
      {part.state === 'output-available' && <output>{toText(part.output)}</output>}
      {part.state === 'output-error' && <output>{part.errorText}</output>}
      {part.state === 'output-denied' && <output>Refused</output>}
    </section>
  );
}

function toText(output: unknown): string {
  return typeof output === 'string' ? output : JSON.stringify(output);
}

interface ComposerProps {
  readonly isBusy: boolean;
  readonly onSend: (text: string) => void;
  readonly onStop: () => void;
}

/** Enter sends; Shift and Enter begin a new line. */
function Composer({ isBusy, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState('');
  const send = () => {
    if (isBusy || text.trim() === '') return;
    onSend(text);
    setText('');
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        aria-label="Message"
        placeholder='Show order "ord_1"'
        rows={2}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {isBusy ? (
        <button type="button" onClick={onStop}>
          Stop
        </button>
      ) : (
        <button type="submit">Send</button>
      )}
    </form>
  );
}
