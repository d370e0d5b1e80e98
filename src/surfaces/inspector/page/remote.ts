import { useEffect, useState } from 'preact/hooks';

/** An error response of the server. */
export class RemoteFault extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

const TOKEN = 'toolwright-inspector-token';

/** Removes the token from the address, so that histories and screenshots do not show it. */
export function takeToken(): string | undefined {
  const given = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (given !== undefined) {
    sessionStorage.setItem(TOKEN, decodeURIComponent(given));
    history.replaceState(null, '', '#/tools');
  }
  return sessionStorage.getItem(TOKEN) ?? undefined;
}

/** Stores a token for this tab. */
export function keepToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

function headers(): Record<string, string> {
  return { authorization: `Bearer ${sessionStorage.getItem(TOKEN) ?? ''}` };
}

async function ask<Answer>(path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(`api/${path}`, init);
  const answer = (await response.json()) as Answer & { readonly error?: string };
  if (!response.ok) throw new RemoteFault(answer.error ?? response.statusText, response.status);
  return answer;
}

export function get<Answer>(path: string): Promise<Answer> {
  return ask(path, { headers: headers() });
}

export function post<Answer>(path: string, body: unknown = {}): Promise<Answer> {
  const sent = { ...headers(), 'content-type': 'application/json' };
  return ask(path, { method: 'POST', headers: sent, body: JSON.stringify(body) });
}

/** They receive the topics that have changed. */
const listeners = new Set<(changed: readonly string[]) => void>();
/** They receive the id of a run that a text belongs to. */
const textListeners = new Set<(runId: string) => void>();

/** The streamed texts, by run and request. A text may arrive before the page has loaded its run. */
const written = new Map<string, string>();
const MOST_WRITTEN = 20;

function keyOf(runId: string, iteration: number): string {
  return `${iteration} ${runId}`;
}

/** The text of a request that was streamed to this page. */
export function useWritten(runId: string, iteration: number): string {
  const [text, setText] = useState('');
  useEffect(() => {
    const read = () => setText(written.get(keyOf(runId, iteration)) ?? '');
    const listener = (of: string) => of === runId && read();
    read();
    textListeners.add(listener);
    return () => {
      textListeners.delete(listener);
    };
  }, [runId, iteration]);
  return text;
}

const PAUSE_MS = 1_000;
const TOPICS = ['tools', 'calls', 'runs', 'pending', 'held', 'recordings'];

/** Follows the events of the server, and reconnects when they end. */
export async function followNews(onState: (state: 'open' | 'lost') => void): Promise<never> {
  for (;;) {
    try {
      const response = await fetch('api/events', { headers: headers() });
      if (!response.ok || response.body === null) throw new RemoteFault(response.statusText, response.status);
      onState('open');
      for (const listener of listeners) listener(TOPICS);
      await readNews(response.body);
    } catch {
      // The server stopped or restarted: try again.
    }
    onState('lost');
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

async function readNews(body: ReadableStream<Uint8Array>): Promise<void> {
  let rest = '';
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    rest += decoder.decode(read.value, { stream: true });
    const parts = rest.split('\n\n');
    rest = parts.pop() ?? '';
    for (const part of parts) {
      if (!part.startsWith('data: ')) continue;
      const { changed, texts } = JSON.parse(part.slice('data: '.length)) as News;
      for (const { runId, iteration, text } of texts) {
        const key = keyOf(runId, iteration);
        written.set(key, (written.get(key) ?? '') + text);
        for (const oldest of written.keys()) {
          if (written.size <= MOST_WRITTEN) break;
          written.delete(oldest);
        }
        for (const listener of textListeners) listener(runId);
      }
      if (changed.length > 0) for (const listener of listeners) listener(changed);
    }
  }
}

interface News {
  readonly changed: readonly string[];
  readonly texts: readonly {
    readonly runId: string;
    readonly iteration: number;
    readonly text: string;
  }[];
}

/** A response that is kept up to date. */
export interface Remote<Answer> {
  readonly answer?: Answer;
  readonly fault?: string;
  refresh(): void;
}

const SETTLE_MS = 60;

/** Requests a path, and again whenever one of the topics has changed. */
export function useRemote<Answer>(path: string | undefined, topics: readonly string[]): Remote<Answer> {
  const [state, setState] = useState<{ path?: string; answer?: Answer; fault?: string }>({});
  const [turn, setTurn] = useState(0);
  const wanted = topics.join();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const listener = (changed: readonly string[]): void => {
      if (!changed.some((topic) => wanted.split(',').includes(topic))) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        setTurn((before) => before + 1);
      }, SETTLE_MS);
    };
    listeners.add(listener);
    return () => {
      clearTimeout(timer);
      listeners.delete(listener);
    };
  }, [wanted]);
  useEffect(() => {
    if (path === undefined) return;
    let isCurrent = true;
    get<Answer>(path).then(
      (answer) => isCurrent && setState({ path, answer }),
      (error: Error) => isCurrent && setState({ path, fault: error.message }),
    );
    return () => {
      isCurrent = false;
    };
  }, [path, turn]);
  const { answer, fault } = state.path === path ? state : {};
  return { answer, fault, refresh: () => setTurn((before) => before + 1) };
}
