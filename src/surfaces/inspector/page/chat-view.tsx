import { useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { Action, Fault, Heading, Status, Text, useFieldId } from './parts.js';
import { post, useRemote, useWritten } from './remote.js';
import { MessageView } from './runs-view.js';
import { ScopeFields, scopeOf, useScope } from './scope-fields.js';

interface Chat {
  readonly id: string;
  readonly messages: readonly {
    readonly role: string;
    readonly content: unknown;
    readonly tool_calls?: readonly unknown[];
  }[];
  readonly asked?: string;
  readonly runId?: string;
  readonly status: string;
  readonly error?: string;
}

interface About {
  readonly hasModel: boolean;
  readonly model?: string;
}

const KEPT = 'toolwright-inspector-chat';

function chatId(): string {
  const kept = sessionStorage.getItem(KEPT) ?? crypto.randomUUID();
  sessionStorage.setItem(KEPT, kept);
  return kept;
}

/** A chat to try the tools with. */
export function ChatView() {
  const [id, setId] = useState(chatId);
  const { answer: chat, fault } = useRemote<Chat>(`chats/${id}`, ['runs', 'pending']);
  const { answer: about } = useRemote<About>('about', []);
  const [text, setText] = useState('');
  const [refused, setRefused] = useState<string>();
  const [model, setModel] = useState<'configured' | 'offline'>();
  const [scope, setScope] = useScope();
  const field = useFieldId();
  // Nobody is chosen before it is known who can answer.
  const asked = about && (model ?? (about.hasModel ? 'configured' : 'offline'));
  const send = async () => {
    if (asked === undefined || text.trim() === '') return;
    setRefused(undefined);
    try {
      await post(`chats/${id}`, { text, with: asked, scope: scopeOf(scope) });
      setText('');
    } catch (error) {
      setRefused((error as Error).message);
    }
  };
  const begin = () => {
    sessionStorage.removeItem(KEPT);
    setId(chatId());
  };
  return (
    <>
      <Heading subtitle="Try the tools with a model; what comes of it stands under Runs, too.">Chat</Heading>
      <Fault message={fault} />
      <ol class="messages" aria-label="Messages">
        {(chat?.messages ?? []).map((message, index) => (
          <li key={index}>
            <MessageView message={message} />
          </li>
        ))}
        {chat?.asked !== undefined && (
          <li>
            <MessageView message={{ role: 'user', content: chat.asked }} />
          </li>
        )}
      </ol>
      <Answering chat={chat} />
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <div class="field">
          <label for={field}>Message</label>
          <textarea
            id={field}
            rows={2}
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send();
            }}
          />
        </div>
        <fieldset class="modes" disabled={asked === undefined}>
          <legend>Who answers</legend>
          <label>
            <input
              type="radio"
              name={`${field}-model`}
              disabled={!about?.hasModel}
              checked={asked === 'configured'}
              onChange={() => setModel('configured')}
            />{' '}
            {about?.hasModel
              ? `the model ${visibleText(about.model ?? '')}`
              : 'the model (none is configured)'}
          </label>
          <label>
            <input
              type="radio"
              name={`${field}-model`}
              checked={asked === 'offline'}
              onChange={() => setModel('offline')}
            />{' '}
            the offline stand-in
          </label>
        </fieldset>
        <ScopeFields texts={scope} onChange={setScope} />
        <p>
          <button type="submit" class="main" disabled={asked === undefined}>
            Send
          </button>{' '}
          <span class="faint">Ctrl+Enter</span>{' '}
          <button type="button" onClick={begin}>
            New chat
          </button>
        </p>
        <Fault message={refused} />
      </form>
    </>
  );
}

/** What the run of the last message is about. */
function Answering({ chat }: { chat: Chat | undefined }) {
  const runId = chat?.runId;
  const written = useWritten(runId);
  if (chat === undefined || runId === undefined) return null;
  const isRunning = chat.status === 'running';
  return (
    <div aria-live="polite">
      {isRunning && written !== '' && <Text label="What the model writes" value={written} />}
      <p>
        <Status value={chat.status} /> <a href={`#/runs/${encodeURIComponent(runId)}`}>the run</a>
        {chat.status === 'suspended' && (
          <>
            , which waits: <a href="#/pending">answer it</a>
          </>
        )}{' '}
        {chat.asked !== undefined && <Action onDo={() => post(`chat-aborts/${chat.id}`)}>Abort</Action>}
      </p>
      {chat.error !== undefined && <p class="fault">{visibleText(chat.error)}</p>}
    </div>
  );
}
