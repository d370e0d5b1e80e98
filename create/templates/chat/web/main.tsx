import type { UIMessage } from 'ai';
import { createRoot } from 'react-dom/client';
import { Chat } from './chat.js';
import './chat.css';

// The address names the chat, so that reloading the page continues it.
const query = new URLSearchParams(location.search);
const id = query.get('chat') ?? crypto.randomUUID();
query.set('chat', id);
history.replaceState(null, '', `?${query}`);

const response = await fetch(`/api/chat/${encodeURIComponent(id)}/messages`);
const messages = response.ok ? ((await response.json()) as UIMessage[]) : [];
createRoot(document.getElementById('root') as HTMLElement).render(<Chat id={id} messages={messages} />);
