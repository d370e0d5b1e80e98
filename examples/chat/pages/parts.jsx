import { useEffect, useRef, useState } from 'react';
import { createRoot } from 'react-dom/client';

/** Shows a page for the chat and the user that its address names: `?chat=…&user=…`. */
export async function openPage(makePage) {
  const query = new URLSearchParams(location.search);
  const chatId = query.get('chat') ?? crypto.randomUUID();
  const user = query.get('user') ?? 'ada';
  // After a reload the page shows the same chat.
  query.set('chat', chatId);
  history.replaceState(null, '', `?${query}`);
  const headers = { authorization: `Bearer token-${user}` };
  createRoot(document.getElementById('page')).render(await makePage({ chatId, headers }));
}

/** The result of a tool that the browser executes; `undefined` for other tools. */
export async function runClientTool(name) {
  if (name === 'where_am_i') return { timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone };
  return undefined;
}

/** The page: a bar, the messages and the composer. */
export function ChatFrame({ title, status, error, composer, children }) {
  const end = useRef(null);
  // Keeps new messages in view.
  useEffect(() => {
    end.current.scrollIntoView({ block: 'nearest' });
  }, [children.length, status]);
  return (
    <>
      <header>
        <strong>Lamp shop</strong>
        <h1>{title}</h1>
        <p role="status">{status}</p>
      </header>
      <main>
        <ol>{children}</ol>
        {error && <p role="alert">{error}</p>}
        <div className="end" ref={end} />
        {composer}
      </main>
    </>
  );
}

/**
 * Enter sends, Shift+Enter starts a new line. While a turn runs, `onStop` ends it on the server. `edited` is the text
 * of a message that is being edited.
 */
export function Composer({ onSend, onStop, isBusy, isWaiting, edited, onLeave }) {
  const [text, setText] = useState(edited ?? '');
  const send = () => {
    if (isBusy || isWaiting || text.trim() === '') return;
    setText('');
    onSend(text);
  };
  const press = (event) => {
    // An input method uses Enter to finish a character.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {edited !== undefined && (
        <p className="hint">
          You are editing your last message. Everything after it is removed.{' '}
          <button type="button" className="quiet" onClick={onLeave}>
            Cancel
          </button>
        </p>
      )}
      <div className="box">
        <textarea
          aria-label="Message"
          rows={1}
          placeholder={isWaiting ? 'Answer above first' : 'Write a message'}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={press}
        />
        {isBusy ? (
          <button type="button" onClick={onStop}>
            Stop
          </button>
        ) : (
          <button type="submit" className="main" disabled={isWaiting}>
            Send
          </button>
        )}
      </div>
      <p className="hint">Enter sends, Shift+Enter starts a new line</p>
    </form>
  );
}

const STATES = { running: '…', waiting: '?', done: '✓', failed: '✕', refused: '✕' };

/** A call in a message: arguments, status, result, and a form if it is waiting. */
export function CallCard({ name, state, args, output, children }) {
  return (
    <section aria-label={name} data-state={state} className="call">
      <p className="name">
        <code>{name}</code> <span className={`state ${state}`}>{`${STATES[state]} ${state}`}</span>
      </p>
      {state !== 'waiting' && <Pairs value={args} />}
      {output !== undefined && (
        <output>{typeof output === 'string' ? output : JSON.stringify(output)}</output>
      )}
      {children}
    </section>
  );
}

function Pairs({ value }) {
  const members = Object.entries(value ?? {});
  if (members.length === 0) return null;
  return (
    <dl>
      {members.map(([key, member]) => (
        <div key={key}>
          <dt>{key}</dt>
          <dd>{JSON.stringify(member)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Approves or refuses a call; its arguments can be edited. */
export function ApprovalForm({ name, args, onAnswer }) {
  const [text, setText] = useState();
  const [fault, setFault] = useState();
  const approveChanged = () => {
    try {
      onAnswer(true, JSON.parse(text));
    } catch (error) {
      setFault(`This is not JSON: ${error.message}`);
    }
  };
  return (
    <form onSubmit={(event) => event.preventDefault()}>
      {text === undefined ? (
        <Pairs value={args} />
      ) : (
        <label>
          Arguments of {name}
          <textarea rows={2} value={text} onChange={(event) => setText(event.target.value)} />
        </label>
      )}
      {fault && <p role="alert">{fault}</p>}
      {text === undefined ? (
        <>
          <button type="button" className="main" onClick={() => onAnswer(true)}>
            Approve
          </button>
          <button type="button" onClick={() => setText(JSON.stringify(args, null, 2))}>
            Edit arguments
          </button>
        </>
      ) : (
        <button type="button" className="main" onClick={approveChanged}>
          Approve with changes
        </button>
      )}
      <button type="button" className="danger" onClick={() => onAnswer(false)}>
        Refuse
      </button>
    </form>
  );
}

export function QuestionForm({ question, onAnswer }) {
  const [text, setText] = useState('');
  const submit = (event) => {
    event.preventDefault();
    onAnswer(text);
  };
  return (
    <form onSubmit={submit}>
      <label>
        {question}
        <input value={text} onChange={(event) => setText(event.target.value)} />
      </label>
      <button type="submit" className="main">
        Answer
      </button>
    </form>
  );
}
