import { visibleText } from '../../../core/kernel/visible-text.js';
import { duration, Fault, Heading, Json, Line, Status, Text, time } from './parts.js';
import { RecordingActions } from './recording-actions.js';
import { useRemote } from './remote.js';

interface RunLine {
  readonly runId: string;
  readonly status: string;
  readonly begin: number;
  readonly place: 'process' | 'store';
  readonly title: string;
  readonly calls: number;
  readonly tokens?: number;
}

/** A bar of the waterfall: of this process with times, of a store with durations alone. */
interface Span {
  readonly kind: 'request' | 'call' | 'wait';
  readonly begin?: number;
  readonly end?: number;
  readonly ms?: number;
  readonly label?: string;
  readonly status?: string;
  readonly tool?: string;
  readonly iteration?: number;
  readonly progress?: unknown;
  readonly record?: { readonly status: string };
  readonly detail?: unknown;
}

interface Run {
  readonly runId: string;
  readonly status: string;
  readonly begin: number;
  readonly model?: string;
  readonly iterations?: number;
  readonly usage?: Readonly<Record<string, number>>;
  readonly cost?: number;
  /** The cost is in dollars, by the prices of the package. */
  readonly isEstimate?: boolean;
  readonly isStored: boolean;
  readonly content?: string;
  readonly text?: string;
  readonly error?: { readonly name: string; readonly message: string };
  readonly owner?: unknown;
  readonly messages: readonly Message[];
  readonly spans: readonly Span[];
}

interface Message {
  readonly role: string;
  readonly content: unknown;
  readonly tool_calls?: readonly unknown[];
}

/** The currency of a budget is that of its prices. */
function costText(cost: number, isEstimate = false): string {
  const amount = cost.toLocaleString('en', { maximumSignificantDigits: 3 });
  return isEstimate ? `, about $${amount} by list prices` : `, cost ${amount}`;
}

/** The runs of this process and of the store. */
export function RunsView() {
  const { answer, fault } = useRemote<{ readonly runs: readonly RunLine[] }>('runs', ['runs', 'pending']);
  const runs = answer?.runs ?? [];
  return (
    <>
      <Heading subtitle="Runs over these tools: those of this process as they go on, and those that the store keeps.">
        Runs
      </Heading>
      <Fault message={fault} />
      {answer && runs.length === 0 && <p>No run yet. Begin one in the chat, or in the application.</p>}
      <ul class="rows">
        {runs.map(({ runId, status, begin, place, title, calls, tokens }) => (
          <li key={runId}>
            <a href={`#/runs/${encodeURIComponent(runId)}`}>
              <Status value={status} />{' '}
              <strong>{title ? <Line value={title} /> : <code>{visibleText(runId)}</code>}</strong>
              <span class="faint small">
                {time(begin)}
                {place === 'store' ? ', in the store' : `, ${calls} ${calls === 1 ? 'call' : 'calls'}`}
                {tokens !== undefined && tokens > 0 && `, ${tokens} tokens`}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

export function RunView({ runId }: { runId: string }) {
  const { answer: run, fault } = useRemote<Run>(`runs/${encodeURIComponent(runId)}`, ['runs']);
  return (
    <>
      <p class="back">
        <a href="#/runs">All runs</a>
      </p>
      <Heading subtitle={<code>{visibleText(runId)}</code>}>Run</Heading>
      <Fault message={fault} />
      {run && (
        <>
          <p>
            <Status value={run.status} /> begun at {time(run.begin)}
            {run.model && `, model ${visibleText(run.model)}`}
            {run.iterations !== undefined && `, ${run.iterations} requests`}
            {run.usage && `, ${run.usage.inputTokens} tokens in, ${run.usage.outputTokens} out`}
            {run.cost !== undefined && costText(run.cost, run.isEstimate)}
          </p>
          {run.error && <p class="fault">{visibleText(`${run.error.name}: ${run.error.message}`)}</p>}
          {run.status === 'suspended' && (
            <p>
              It waits: <a href="#/pending">answer it</a>
            </p>
          )}
          <h2>Timeline</h2>
          {run.isStored && <p class="hint">A store keeps how long calls took, and no times of requests.</p>}
          <Waterfall spans={run.spans} begin={run.begin} />
          {run.content && (
            <>
              <h2>Answer</h2>
              <Text label="Answer" value={run.content} />
            </>
          )}
          <h2>Messages</h2>
          <ol class="messages">
            {run.messages.map((message, index) => (
              <li key={index}>
                <MessageView message={message} />
              </li>
            ))}
          </ol>
          {!run.isStored && run.status !== 'running' && <RecordingActions source={{ runId }} />}
        </>
      )}
    </>
  );
}

export function MessageView({ message }: { message: Message }) {
  const { role, content, tool_calls: calls } = message;
  return (
    <>
      <strong>{visibleText(role)}</strong>
      {typeof content === 'string' ? (
        content !== '' && <Text label={`Message of ${role}`} value={content} />
      ) : (
        <Json label={`Message of ${role}`} value={content} />
      )}
      {calls !== undefined && <Json label="Calls" value={calls} />}
    </>
  );
}

/** Bars by their times; where there are none, one after the other. */
function Waterfall({ spans, begin }: { spans: readonly Span[]; begin: number }) {
  if (spans.length === 0) return <p class="faint">Nothing yet.</p>;
  const now = Date.now();
  let offset = 0;
  const bars = spans.map((span) => {
    const from = span.begin === undefined ? offset : span.begin - begin;
    const ms = span.begin === undefined ? (span.ms ?? 0) : (span.end ?? now) - span.begin;
    offset = from + ms;
    return { span, from, ms };
  });
  const total = Math.max(1, ...bars.map(({ from, ms }) => from + ms));
  return (
    <ol class="waterfall">
      {bars.map(({ span, from, ms }, index) => (
        <li key={index}>
          <details>
            <summary>
              <span class="bar-label">
                {labelOf(span)}{' '}
                <span class="faint small">
                  {span.end === undefined && span.begin !== undefined ? 'goes on' : duration(ms)}
                </span>
              </span>
              <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                <rect
                  class={`span-${span.kind}`}
                  x={(from / total) * 100}
                  width={Math.max(0.5, (ms / total) * 100)}
                  height="4"
                />
              </svg>
            </summary>
            <Json label={`Details of ${labelOf(span)}`} value={span.detail ?? detailOf(span)} />
          </details>
        </li>
      ))}
    </ol>
  );
}

function labelOf({ kind, iteration, tool, label, record, status }: Span): string {
  const ended = record?.status ?? status;
  if (kind === 'request') return `request ${iteration ?? ''}`;
  const name = visibleText(tool ?? label ?? '');
  if (kind === 'wait') return `waiting for an answer: ${name}`;
  return ended === undefined || ended === 'success' ? name : `${name} (${ended.replaceAll('_', ' ')})`;
}

function detailOf({ kind: _1, begin: _2, end: _3, ...others }: Span): unknown {
  return others;
}
