import { useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { type CallDetail, CallResult } from './call-result.js';
import { duration, Fault, Filter, Heading, hasWords, Split, Status, time } from './parts.js';
import { useRemote } from './remote.js';

interface CallLine {
  readonly key: string;
  readonly tool: string;
  readonly at: number;
  readonly isTrial: boolean;
  readonly status: string;
  readonly ms?: number;
}

/** The list of calls, and the selected call. */
export function CallsView({ id }: { id: string }) {
  const { answer, fault } = useRemote<{ readonly calls: readonly CallLine[] }>('calls', ['calls', 'held']);
  const [words, setWords] = useState('');
  const [wanted, setWanted] = useState('');
  const calls = answer?.calls ?? [];
  const found = calls.filter(
    ({ tool, status }) => hasWords(tool, words) && (wanted === '' || status === wanted),
  );
  const list = (
    <>
      {id === '' && (
        <Heading subtitle="The last calls in this process: by the application, by runs and from this page.">
          Calls
        </Heading>
      )}
      <Filter
        label="Filter calls"
        text={words}
        onText={setWords}
        statuses={[...new Set(calls.map(({ status }) => status))]}
        status={wanted}
        onStatus={setWanted}
      />
      <Fault message={fault} />
      {answer && calls.length === 0 && <p class="empty">No calls yet.</p>}
      {calls.length > 0 && found.length === 0 && <p class="empty">No call matches the filter.</p>}
      <ul class="rows">
        {found.map(({ key, tool, at, isTrial, status, ms }) => (
          <li key={key}>
            <a href={`#/calls/${key}`} aria-current={key === id ? 'page' : undefined}>
              <strong class="code">{visibleText(tool)}</strong>
              <Status value={status} />
              <span class="about">
                {isTrial && <span>from this page</span>}
                {ms !== undefined && <span>{duration(ms)}</span>}
                <span>{time(at)}</span>
              </span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
  return (
    <Split label="Calls" list={list}>
      {id !== '' && <CallView key={id} id={id} />}
    </Split>
  );
}

function CallView({ id }: { id: string }) {
  const { answer, fault } = useRemote<CallDetail>(`calls/${id}`, ['calls', 'held']);
  const [next, setNext] = useState<CallDetail>();
  const call = next ?? answer;
  return (
    <>
      <p class="back">
        <a href="#/calls">All calls</a>
      </p>
      <Heading
        subtitle={call?.runId && <a href={`#/runs/${encodeURIComponent(call.runId)}`}>open its run</a>}
      >
        Call{call && ` of ${visibleText(call.tool)}`}
      </Heading>
      <Fault message={fault} />
      <h2 class="hidden">Result</h2>
      {call && <CallResult key={call.key} call={call} onNext={setNext} />}
    </>
  );
}
