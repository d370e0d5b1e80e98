import type { UIMessage } from 'ai';
import { createRoot } from 'react-dom/client';
import { Chat, Failure } from './chat.js';
import './chat.css';

// The address names the chat, so that reloading the page continues it.
const query = new URLSearchParams(location.search);
const id = query.get('chat') ?? crypto.randomUUID();
query.set('chat', id);
history.replaceState(null, '', `?${query}`);

const root = createRoot(document.getElementById('root') as HTMLElement);
try {
  await fetch('/api/session', { method: 'POST' });
  const response = await fetch(`/api/chat/${encodeURIComponent(id)}/messages`);
  if (!response.ok) throw new Error((await response.text()) || response.statusText);
  root.render(<Chat id={id} messages={(await response.json()) as UIMessage[]} />);
} catch (error) {
  root.render(<Failure error={error as Error} />);
}
