import { useEffect, useRef, useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { Icon } from './icon.js';
import { Action, duration, Fault, Heading, Status, useFieldId } from './parts.js';
import { post, useRemote } from './remote.js';
import { costText, type Run } from './run.js';
import { ScopeFields, type ScopeTexts, scopeOf, useScope } from './scope-fields.js';
import { TurnView } from './turn-view.js';

interface Chat {
  readonly id: string;
  readonly turns: readonly { readonly asked: string; readonly runId: string }[];
  readonly status: string;
  readonly error?: string;
}

interface About {
  readonly hasModel: boolean;
  readonly model?: string;
}

type Model = 'configured' | 'offline';

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
  const [refused, setRefused] = useState<string>();
  const [model, setModel] = useState<Model>();
  const [scope, setScope] = useScope();
  // No radio button is checked until the server has said whether there is a model.
  const asked = about && (model ?? (about.hasModel ? 'configured' : 'offline'));
  const ask = async (path: 'chats' | 'chat-retries', text?: string) => {
    setRefused(undefined);
    try {
      await post(`${path}/${id}`, { text, with: asked, scope: scopeOf(scope) });
      return true;
    } catch (error) {
      setRefused((error as Error).message);
      return false;
    }
  };
  const begin = () => {
    sessionStorage.removeItem(KEPT);
    setId(chatId());
  };
  const { turns = [] } = chat ?? {};
  const isBusy = chat?.status === 'running' || chat?.status === 'suspended';
  return (
    <div class="chat">
      <div class="conversation">
        <Heading subtitle="Try the tools with a model.">Chat</Heading>
        <Fault message={fault} />
        {chat && turns.length === 0 && (
          <p class="empty">Ask for something that the tools can do. Each answer is also listed under Runs.</p>
        )}
        <ol class="messages" aria-label="Messages">
          {turns.map((turn, index) => (
            <li key={turn.runId}>
              <Turn
                {...turn}
                isLast={index === turns.length - 1}
                error={chat?.error}
                onRetry={isBusy ? undefined : () => ask('chat-retries')}
              />
            </li>
          ))}
        </ol>
        <Composer
          isReady={asked !== undefined}
          onSend={(text) => ask('chats', text)}
          onStop={isBusy ? () => post(`chat-aborts/${id}`) : undefined}
        />
        <Fault message={refused} />
      </div>
      <aside aria-label="Settings of the chat">
        <Settings {...{ about, model: asked, onModel: setModel, scope, onScope: setScope }} />
        <button type="button" onClick={begin}>
          <Icon name="plus" /> New chat
        </button>
      </aside>
    </div>
  );
}

interface TurnProps {
  readonly asked: string;
  readonly runId: string;
  readonly isLast: boolean;
  /** Error of a chat whose run could not start. */
  readonly error: string | undefined;
  readonly onRetry: (() => Promise<unknown>) | undefined;
}

function Turn({ asked, runId, isLast, error, onRetry }: TurnProps) {
  const { answer: run, fault } = useRemote<Run>(`runs/${runId}`, isLast ? ['runs'] : []);
  const turn = useFollowed(isLast);
  return (
    <div ref={turn}>
      <TurnView prompt={asked} run={run} />
      <Fault message={fault && (error ?? fault)} />
      {run && (
        <div class="turn-end turn">
          <TurnEnd run={run} />
          {isLast && onRetry && (
            <Action kind="quiet" icon="retry" onDo={onRetry}>
              Retry
            </Action>
          )}
        </div>
      )}
    </div>
  );
}

/** How far from the end of the page somebody still follows it. */
const NEAR_PX = 160;

/** Scrolls to the end of a growing element, unless somebody has scrolled away or works in it. */
function useFollowed(isFollowed: boolean) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { current } = element;
    if (!isFollowed || current === null) return;
    let height = 0;
    const observer = new ResizeObserver(() => {
      const isNear = scrollY + innerHeight >= height - NEAR_PX;
      height = document.documentElement.scrollHeight;
      if (isNear && !current.contains(document.activeElement)) current.scrollIntoView({ block: 'end' });
    });
    observer.observe(current);
    return () => observer.disconnect();
  }, [isFollowed]);
  return element;
}

function TurnEnd({ run }: { run: Run }) {
  const { runId, status, usage, cost, isEstimate, spans, begin } = run;
  const end = spans.at(-1)?.end;
  return (
    <>
      <Status value={status} />
      {end !== undefined && <span>{duration(end - begin)}</span>}
      {usage !== undefined && usage.totalTokens !== 0 && <span>{usage.totalTokens} tokens</span>}
      {cost !== undefined && <span>{costText(cost, isEstimate)}</span>}
      <a href={`#/runs/${encodeURIComponent(runId)}`}>open the run</a>
    </>
  );
}

interface ComposerProps {
  readonly isReady: boolean;
  onSend(text: string): Promise<boolean>;
  /** Absent if nothing is running. */
  readonly onStop: (() => Promise<unknown>) | undefined;
}

/** Enter sends, Shift+Enter starts a new line. */
function Composer({ isReady, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState('');
  const field = useFieldId();
  const send = async () => {
    if (!isReady || onStop !== undefined || text.trim() === '') return;
    if (await onSend(text)) setText('');
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div class="box">
        <label for={field} class="hidden">
          Message
        </label>
        <textarea
          id={field}
          rows={1}
          placeholder="Write a message"
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
          onKeyDown={(event) => {
            // An input method uses Enter to finish a character.
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            send();
          }}
        />
        {onStop === undefined ? (
          <button type="submit" class="main" disabled={!isReady}>
            <Icon name="send" /> Send
          </button>
        ) : (
          <Action icon="stop" onDo={onStop}>
            Stop
          </Action>
        )}
      </div>
      <p class="hint">
        <kbd>Enter</kbd> sends, <kbd>Shift</kbd> <kbd>Enter</kbd> starts a new line
      </p>
    </form>
  );
}

interface SettingsProps {
  readonly about: About | undefined;
  readonly model: Model | undefined;
  onModel(model: Model): void;
  readonly scope: ScopeTexts;
  onScope(scope: ScopeTexts): void;
}

function Settings({ about, model, onModel, scope, onScope }: SettingsProps) {
  const name = useFieldId();
  return (
    <>
      <fieldset class="modes" disabled={model === undefined}>
        <legend>Model</legend>
        <label>
          <input
            type="radio"
            name={name}
            disabled={!about?.hasModel}
            checked={model === 'configured'}
            onChange={() => onModel('configured')}
          />{' '}
          {about?.hasModel ? `the model ${visibleText(about.model ?? '')}` : 'the model (not configured)'}
        </label>
        <label>
          <input type="radio" name={name} checked={model === 'offline'} onChange={() => onModel('offline')} />{' '}
          the offline stand-in
        </label>
      </fieldset>
      <ScopeFields texts={scope} onChange={onScope} />
    </>
  );
}
