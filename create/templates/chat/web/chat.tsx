import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  type DynamicToolUIPart,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type ToolUIPart,
  type UIMessage,
} from 'ai';
import { type KeyboardEvent, useState } from 'react';

const transport = new DefaultChatTransport({
  api: '/api/chat',
  // The server has the history; the whole chat would exceed its limit of 4 MB one day.
  prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
    body: { id, messages: messages.slice(-1), trigger, messageId },
  }),
});

export function Chat(props: { readonly id: string; readonly messages: UIMessage[] }) {
  const { messages, status, error, sendMessage, stop, addToolApprovalResponse } = useChat({
    ...props,
    transport,
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const isBusy = status === 'submitted' || status === 'streaming';
  const last = messages.at(-1);
  const isWaiting = last?.parts.some((part) => isToolUIPart(part) && isOpen(outcomeOf(part, last))) ?? false;

  // `stop` only stops reading; this request makes the server end the turn.
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
              <Part key={index} part={part} message={message} onAnswer={addToolApprovalResponse} />
            ))}
          </li>
        ))}
      </ol>
      {isBusy && <p role="status">Working …</p>}
      {error && <Failure error={error} />}
      <Composer isBusy={isBusy} isWaiting={isWaiting} onSend={(text) => sendMessage({ text })} onStop={end} />
    </main>
  );
}

/** Everything is in the store of the server: loading the page again shows it, and follows a turn that continues. */
export function Failure({ error }: { readonly error: Error }) {
  return (
    <p role="alert">
      {messageOf(error)}{' '}
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </p>
  );
}

/** The server refuses with `{ "error": { "message": "…" } }`. */
function messageOf({ message }: Error): string {
  try {
    return JSON.parse(message).error.message;
  } catch {
    return message;
  }
}

type Call = ToolUIPart | DynamicToolUIPart;
type Outcome = 'running' | 'waiting' | 'answered' | 'done' | 'failed' | 'refused' | 'unknown';

const OUTCOMES: Partial<Record<Call['state'], Outcome>> = {
  'approval-requested': 'waiting',
  'approval-responded': 'answered',
  'output-available': 'done',
  'output-error': 'failed',
  'output-denied': 'refused',
};

/** A call is `unknown` if the server ended before it could store the result. */
function outcomeOf(call: Call, { parts }: UIMessage): Outcome {
  if (call.state === 'output-available' && call.preliminary) return 'running';
  const isInterrupted = parts.some(
    (part) =>
      part.type === 'data-outcome' && (part as { data: { callId: string } }).data.callId === call.toolCallId,
  );
  return OUTCOMES[call.state] ?? (isInterrupted ? 'unknown' : 'running');
}

/** The chat accepts no message until these are answered. */
function isOpen(outcome: Outcome): boolean {
  return outcome === 'waiting' || outcome === 'unknown';
}

interface PartProps {
  readonly part: UIMessage['parts'][number];
  readonly message: UIMessage;
  readonly onAnswer: (answer: { id: string; approved: boolean }) => void;
}

function Part({ part, message, onAnswer }: PartProps) {
  if (part.type === 'text') return <p>{part.text}</p>;
  if (!isToolUIPart(part)) return null;
  const name = part.type.replace(/^tool-/, '');
  const outcome = outcomeOf(part, message);
  return (
    <section aria-label={name} data-outcome={outcome}>
      <strong>
        {name}: {outcome}
      </strong>
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
      {outcome === 'unknown' && (
        <output>
          The server ended during this call, which may have happened. README.md explains how to answer.
        </output>
      )}
    </section>
  );
}

function toText(output: unknown): string {
  return typeof output === 'string' ? output : JSON.stringify(output);
}

interface ComposerProps {
  readonly isBusy: boolean;
  readonly isWaiting: boolean;
  readonly onSend: (text: string) => void;
  readonly onStop: () => void;
}

/** Enter sends; Shift and Enter begin a new line. */
function Composer({ isBusy, isWaiting, onSend, onStop }: ComposerProps) {
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
        placeholder={isWaiting ? 'The call above has to be answered first' : 'Show order "ord_1"'}
        disabled={isWaiting}
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
        <button type="submit" disabled={isWaiting}>
          Send
        </button>
      )}
    </form>
  );
}
