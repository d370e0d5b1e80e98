import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { CallsView } from './calls-view.js';
import { ChatView } from './chat-view.js';
import { Icon } from './icon.js';
import { useFieldId } from './parts.js';
import { PendingView } from './pending-view.js';
import { RecordingsView } from './recordings-view.js';
import { followNews, keepToken, takeToken, useRemote } from './remote.js';
import { RunsView } from './runs-view.js';
import { ToolsView } from './tools-view.js';

const VIEWS = [
  ['tools', 'Tools'],
  ['calls', 'Calls'],
  ['runs', 'Runs'],
  ['chat', 'Chat'],
  ['pending', 'Pending'],
  ['recordings', 'Recordings'],
] as const;

interface Route {
  readonly view: string;
  readonly id: string;
}

function readRoute(): Route {
  const [view = '', ...rest] = location.hash.replace(/^#\/?/, '').split('/');
  try {
    return { view: view || 'tools', id: decodeURIComponent(rest.join('/')) };
  } catch {
    return { view: 'tools', id: '' };
  }
}

function useRoute(): Route {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    const change = () => setRoute(readRoute());
    // The address may have changed before this listener was added.
    change();
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return route;
}

/** Digits open views and a slash focuses the filter, unless a field has the focus. */
function useKeys(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { target, key } = event;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (target instanceof HTMLElement && target.closest('input, textarea, select')) return;
      const view = VIEWS[Number(key) - 1];
      if (view !== undefined) location.hash = `#/${view[0]}`;
      const filter = document.querySelector<HTMLElement>('[data-filter]');
      if (key !== '/' || filter === null) return;
      event.preventDefault();
      filter.focus();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

function Page() {
  const { view, id } = useRoute();
  const [state, setState] = useState<'open' | 'lost'>('open');
  useKeys();
  useEffect(() => {
    followNews(setState);
  }, []);
  return (
    <>
      <button type="button" class="skip" onClick={skip}>
        Skip to content
      </button>
      <header class="top">
        <p class="brand">
          <Icon name="tools" /> Toolwright <span class="faint">inspector</span>
        </p>
        <nav aria-label="Views">
          <ul>
            {VIEWS.map(([name, label], index) => (
              <li key={name}>
                <a
                  href={`#/${name}`}
                  aria-current={view === name ? 'page' : undefined}
                  title={`Key ${index + 1}`}
                >
                  <Icon name={name} />
                  {label}
                  {name === 'pending' && <Waiting />}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <p role="status" class="state">
          {state === 'lost' && 'The inspector is not reachable. Trying again…'}
        </p>
      </header>
      <main id="main" tabIndex={-1}>
        <View key={view} view={view} id={id} />
      </main>
    </>
  );
}

/** Not a link, because its hash would replace the view in the address. */
function skip(): void {
  document.getElementById('main')?.focus();
}

/** The number of waiting runs and held calls. */
function Waiting() {
  const { answer: pending } = useRemote<{ readonly runs: readonly unknown[] }>('pending', ['pending']);
  const { answer: held } = useRemote<{ readonly held: readonly unknown[] }>('held', ['held']);
  const count = (pending?.runs.length ?? 0) + (held?.held.length ?? 0);
  return count === 0 ? null : <span class="badge">{count}</span>;
}

function View({ view, id }: Route) {
  if (view === 'calls') return <CallsView id={id} />;
  if (view === 'runs') return <RunsView runId={id} />;
  if (view === 'chat') return <ChatView />;
  if (view === 'pending') return <PendingView />;
  if (view === 'recordings') return <RecordingsView id={id} />;
  return <ToolsView name={id} />;
}

/** Asks for the token if the address has none. */
function TokenForm({ onToken }: { onToken(): void }) {
  const [token, setToken] = useState('');
  const id = useFieldId();
  return (
    <main class="token">
      <h1>Toolwright inspector</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          keepToken(token);
          onToken();
        }}
      >
        <div class="field">
          <label for={id}>Token: the part of the printed address after #token=</label>
          <input
            id={id}
            value={token}
            autocomplete="off"
            onInput={({ currentTarget }) => setToken(currentTarget.value)}
          />
        </div>
        <button type="submit" class="main">
          Open
        </button>
      </form>
    </main>
  );
}

function Entry() {
  const [hasToken, setHasToken] = useState(() => takeToken() !== undefined);
  return hasToken ? <Page /> : <TokenForm onToken={() => setHasToken(true)} />;
}

const page = document.getElementById('page');
if (page !== null) render(<Entry />, page);
