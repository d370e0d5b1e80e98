import { useState } from 'react';
import { createRoot } from 'react-dom/client';

/** Shows a page for the chat and the user that its address names: `?chat=…&user=…`. */
export async function openPage(makePage) {
  const query = new URLSearchParams(location.search);
  const chatId = query.get('chat') ?? crypto.randomUUID();
  const user = query.get('user') ?? 'ada';
  // Loaded anew, the page shows the same chat.
  query.set('chat', chatId);
  history.replaceState(null, '', `?${query}`);
  const headers = { authorization: `Bearer token-${user}` };
  createRoot(document.getElementById('page')).render(await makePage({ chatId, headers }));
}

/** What the browser makes of a call that is its own to execute; `undefined` for any other. */
export async function runClientTool(name) {
  if (name === 'where_am_i') return { timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone };
  return undefined;
}

export function PromptForm({ onPrompt, isBusy }) {
  const [text, setText] = useState('');
  const submit = (event) => {
    event.preventDefault();
    if (text.trim() === '') return;
    setText('');
    onPrompt(text);
  };
  return (
    <form onSubmit={submit}>
      <label>
        Message <input value={text} onChange={(event) => setText(event.target.value)} />
      </label>
      <button type="submit" disabled={isBusy}>
        Send
      </button>
    </form>
  );
}

/** Asks for a yes or a no; the arguments may be changed. */
export function ApprovalForm({ name, args, onAnswer }) {
  const [text, setText] = useState(JSON.stringify(args));
  return (
    <form onSubmit={(event) => event.preventDefault()}>
      <label>
        Arguments of {name} <input value={text} onChange={(event) => setText(event.target.value)} />
      </label>
      <button type="button" onClick={() => onAnswer(true)}>
        Approve
      </button>
      <button type="button" onClick={() => onAnswer(true, JSON.parse(text))}>
        Approve with changes
      </button>
      <button type="button" onClick={() => onAnswer(false)}>
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
        {question} <input value={text} onChange={(event) => setText(event.target.value)} />
      </label>
      <button type="submit">Answer</button>
    </form>
  );
}
