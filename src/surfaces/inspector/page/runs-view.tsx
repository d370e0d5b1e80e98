import { useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import {
  duration,
  Fault,
  Filter,
  Heading,
  hasWords,
  Json,
  Line,
  Split,
  Status,
  Text,
  time,
} from './parts.js';
import { RecordingActions } from './recording-actions.js';
import { useRemote } from './remote.js';
import { costText, type Message, type Run } from './run.js';
import { Entry, Figures, Timeline } from './timeline.js';
import { TurnView } from './turn-view.js';

interface RunLine {
  readonly runId: string;
  readonly status: string;
  readonly begin: number;
  readonly place: 'process' | 'store';
  readonly title: string;
  readonly model?: string;
  readonly calls: number;
  readonly tokens?: number;
  readonly ms?: number;
}

/** The list of runs of this process and of the store, and the selected run. */
export function RunsView({ runId }: { runId: string }) {
  const { answer, fault } = useRemote<{ readonly runs: readonly RunLine[] }>('runs', ['runs', 'pending']);
  const [words, setWords] = useState('');
  const [wanted, setWanted] = useState('');
  const runs = answer?.runs ?? [];
  const found = runs.filter(
    ({ runId: id, status, title, model = '' }) =>
      hasWords(`${title} ${id} ${model}`, words) && (wanted === '' || status === wanted),
  );
  const list = (
    <>
      {runId === '' && (
        <Heading subtitle="Runs with these tools, in this process and in the store.">Runs</Heading>
      )}
      <Filter
        label="Filter runs"
        text={words}
        onText={setWords}
        statuses={[...new Set(runs.map(({ status }) => status))]}
        status={wanted}
        onStatus={setWanted}
      />
      <Fault message={fault} />
      {answer && runs.length === 0 && (
        <p class="empty">No runs yet. Start one in the chat or in your application.</p>
      )}
      {runs.length > 0 && found.length === 0 && <p class="empty">No run matches the filter.</p>}
      <ul class="rows">
        {found.map((run) => (
          <li key={run.runId}>
            <RunRow run={run} isChosen={run.runId === runId} />
          </li>
        ))}
      </ul>
    </>
  );
  return (
    <Split label="Runs" list={list}>
      {runId !== '' && <RunView key={runId} runId={runId} />}
    </Split>
  );
}

function RunRow({ run, isChosen }: { run: RunLine; isChosen: boolean }) {
  const { runId, status, begin, place, title, model, calls, tokens, ms } = run;
  const facts = [
    ...(model === undefined ? [] : [model]),
    place === 'store' ? 'in the store' : `${calls} ${calls === 1 ? 'call' : 'calls'}`,
    tokens === undefined || tokens === 0 ? '' : `${tokens} tokens`,
    ms === undefined ? '' : duration(ms),
    time(begin),
  ];
  return (
    <a href={`#/runs/${encodeURIComponent(runId)}`} aria-current={isChosen ? 'page' : undefined}>
      <strong>{title ? <Line value={title} /> : <code>{visibleText(runId)}</code>}</strong>
      <Status value={status} />
      <span class="about">
        {facts.map((fact, index) => (
          <span key={index}>{visibleText(fact)}</span>
        ))}
      </span>
    </a>
  );
}

function RunView({ runId }: { runId: string }) {
  const { answer: run, fault } = useRemote<Run>(`runs/${encodeURIComponent(runId)}`, ['runs']);
  const [chosen, setChosen] = useState<number>();
  const at = chosen ?? firstChosen(run);
  const span = run?.spans[at];
  return (
    <>
      <p class="back">
        <a href="#/runs">All runs</a>
      </p>
      <Heading subtitle={<code>{visibleText(runId)}</code>}>
        {run?.title ? <Line value={run.title} /> : 'Run'}
      </Heading>
      <Fault message={fault} />
      {run && (
        <>
          <div class="run-head">
            <Status value={run.status} />
            <Figures figures={figuresOf(run)} />
          </div>
          {run.error && <p class="fault">{visibleText(`${run.error.name}: ${run.error.message}`)}</p>}
          <div class="run-parts">
            <section aria-label="Timeline and entry">
              <h2>Timeline</h2>
              {run.isStored && (
                <p class="hint">A store has the durations of calls, but no times of requests.</p>
              )}
              <Timeline run={run} chosen={at} onChoose={setChosen} />
            </section>
            {span && <Entry run={run} span={span} />}
          </div>
          <Conversation run={run} />
          {!run.isStored && run.status !== 'running' && <RecordingActions source={{ runId }} />}
        </>
      )}
    </>
  );
}

/** The entry that is selected first: a failed call, otherwise the first call. */
function firstChosen(run: Run | undefined): number {
  const spans = run?.spans ?? [];
  const failed = spans.findIndex((span) => span.kind === 'call' && span.status === 'error');
  return Math.max(0, failed < 0 ? spans.findIndex(({ kind }) => kind === 'call') : failed);
}

function figuresOf({ begin, model, iterations, usage, cost, isEstimate, spans }: Run) {
  const end = spans.at(-1)?.end;
  return [
    ['Begun', time(begin)] as const,
    ...(end === undefined ? [] : [['Duration', duration(end - begin)] as const]),
    ...(model === undefined ? [] : [['Model', model] as const]),
    ...(iterations === undefined ? [] : [['Requests', String(iterations)] as const]),
    ...(usage ? [['Tokens', `${usage.inputTokens} in, ${usage.outputTokens} out`] as const] : []),
    ...(cost === undefined
      ? []
      : [[isEstimate ? 'Cost by list prices' : 'Cost', costText(cost, isEstimate)] as const]),
  ];
}

/** The earlier messages, and the run as a turn of a conversation. */
function Conversation({ run }: { run: Run }) {
  const { messages, given = 0 } = run;
  const before = messages.slice(0, Math.max(0, given - 1));
  const prompt = messages[given - 1]?.content;
  return (
    <>
      <h2>Conversation</h2>
      <div class="messages">
        {before.length > 0 && (
          <details class="fold">
            <summary>
              {before.length} earlier {before.length === 1 ? 'message' : 'messages'}
            </summary>
            {before.map((message, index) => (
              <MessageView key={index} message={message} />
            ))}
          </details>
        )}
        <TurnView prompt={typeof prompt === 'string' ? prompt : run.title} run={run} />
      </div>
      <details class="fold">
        <summary>Messages as JSON</summary>
        <Json label="Messages" value={messages} />
      </details>
    </>
  );
}

function MessageView({ message }: { message: Message }) {
  const { role, content, tool_calls: calls } = message;
  return (
    <>
      <h3>{visibleText(role)}</h3>
      {typeof content === 'string' ? (
        content !== '' && <Text label={`Message of ${role}`} value={content} />
      ) : (
        <Json label={`Message of ${role}`} value={content} />
      )}
      {calls !== undefined && <Json label="Calls" value={calls} />}
    </>
  );
}
