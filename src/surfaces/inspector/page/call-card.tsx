import { type ComponentChildren, toChildArray } from 'preact';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { Icon } from './icon.js';
import { duration, Line, Pairs, Result, Status, statusKind, tokensOf } from './parts.js';
import type { CallSpan } from './run.js';

interface CallCardProps {
  readonly call: CallSpan & { readonly status: string };
  /** Fields to answer what the call waits for. */
  readonly children?: ComponentChildren;
}

/** A call in a conversation: arguments, status, progress and result. */
export function CallCard({ call, children }: CallCardProps) {
  const { tool, key, status, ms, progress, forLLM } = call;
  const isWaiting = toChildArray(children).length > 0;
  const facts = [
    ...(ms === undefined ? [] : [duration(ms)]),
    ...(forLLM === undefined ? [] : [`~${tokensOf(forLLM)} tokens`]),
  ];
  const name = <strong class="code">{visibleText(tool)}</strong>;
  return (
    <article class={isWaiting ? 'call asks' : 'call'} aria-label={`Call of ${visibleText(tool)}`}>
      <header>
        <span class="kind-call">
          <Icon name="tools" />
        </span>
        {key === undefined ? name : <a href={`#/calls/${key}`}>{name}</a>}
        <Status value={isWaiting ? 'waiting' : status} />
        <span class="faint small">{facts.join(' · ')}</span>
      </header>
      {!isWaiting && (
        <div class="inside">
          <Pairs label={`Arguments of ${tool}`} value={call.checked ?? call.arguments} />
        </div>
      )}
      {progress !== undefined && status === 'running' && <Progress update={progress} />}
      {forLLM !== undefined && (
        <details open={statusKind(status) === 'bad'}>
          <summary>
            Result{' '}
            <code>
              <Line value={forLLM} />
            </code>
          </summary>
          <Result label={`Result of ${tool}`} value={forLLM} />
        </details>
      )}
      {children}
    </article>
  );
}

/** Progress of a running tool: a bar for `{ done, total }`, otherwise text. */
function Progress({ update }: { update: unknown }) {
  const { done, total, message } = Object(update) as Readonly<Record<string, unknown>>;
  const hasBar = typeof done === 'number' && typeof total === 'number' && total > 0;
  const told = typeof update === 'string' ? update : typeof message === 'string' ? message : undefined;
  const text = told ?? (hasBar ? `${done} of ${total}` : JSON.stringify(update));
  return (
    <div class="inside">
      {hasBar && <progress value={Number(done)} max={Number(total)} aria-label="Progress" />}
      <p class="hint" role="status">
        {visibleText(text)}
      </p>
    </div>
  );
}
