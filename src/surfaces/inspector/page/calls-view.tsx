import { useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { type CallDetail, CallResult } from './call-result.js';
import { duration, Fault, Heading, Status, time } from './parts.js';
import { useRemote } from './remote.js';

interface CallLine {
  readonly key: string;
  readonly tool: string;
  readonly at: number;
  readonly isTrial: boolean;
  readonly status: string;
  readonly ms?: number;
}

/** The last calls, whoever made them. */
export function CallsView() {
  const { answer, fault } = useRemote<{ readonly calls: readonly CallLine[] }>('calls', ['calls', 'held']);
  const calls = answer?.calls ?? [];
  return (
    <>
      <Heading subtitle="The last calls of this process: those of the application, of runs and of this page.">
        Calls
      </Heading>
      <Fault message={fault} />
      {answer && calls.length === 0 && <p>No call yet.</p>}
      <ul class="rows">
        {calls.map(({ key, tool, at, isTrial, status, ms }) => (
          <li key={key}>
            <a href={`#/calls/${key}`}>
              <Status value={status} /> <strong>{visibleText(tool)}</strong>
              <span class="faint small">
                {time(at)}
                {ms !== undefined && `, ${duration(ms)}`}
                {isTrial && ', from this page'}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

export function CallView({ id }: { id: string }) {
  const { answer, fault } = useRemote<CallDetail>(`calls/${id}`, ['calls', 'held']);
  const [next, setNext] = useState<CallDetail>();
  const call = next ?? answer;
  return (
    <>
      <p class="back">
        <a href="#/calls">All calls</a>
      </p>
      <Heading subtitle={call?.runId && <a href={`#/runs/${encodeURIComponent(call.runId)}`}>its run</a>}>
        Call{call && ` of ${visibleText(call.tool)}`}
      </Heading>
      <Fault message={fault} />
      {call && <CallResult key={call.key} call={call} onNext={setNext} />}
    </>
  );
}
