import { visibleText } from '../../../core/kernel/visible-text.js';
import { Fault, Heading, Json, Line, Status, time } from './parts.js';
import { RecordingActions } from './recording-actions.js';
import { useRemote } from './remote.js';

interface RecordingLine {
  readonly id: string;
  readonly kind: string;
  readonly title: string;
  readonly at: number;
  readonly status: string;
}

/** What was kept, to be made again after a change. */
export function RecordingsView() {
  const { answer, fault } = useRemote<{ readonly recordings: readonly RecordingLine[] }>('recordings', [
    'recordings',
  ]);
  const recordings = answer?.recordings ?? [];
  return (
    <>
      <Heading subtitle="Calls and runs that were kept: made again after a change of code, they show what is different.">
        Recordings
      </Heading>
      <Fault message={fault} />
      {answer && recordings.length === 0 && (
        <p>Nothing is kept. A call or a run has a button that keeps it.</p>
      )}
      <ul class="rows">
        {recordings.map(({ id, kind, title, at, status }) => (
          <li key={id}>
            <a href={`#/recordings/${encodeURIComponent(id)}`}>
              <Status value={status} /> <strong>{<Line value={title} />}</strong>
              <span class="faint small">
                {kind}, {time(at)}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

export function RecordingView({ id }: { id: string }) {
  const { answer, fault } = useRemote<RecordingLine & { readonly outcome: unknown }>(
    `recordings/${encodeURIComponent(id)}`,
    [],
  );
  return (
    <>
      <p class="back">
        <a href="#/recordings">All recordings</a>
      </p>
      <Heading subtitle={answer?.kind}>{answer ? visibleText(answer.title) : 'Recording'}</Heading>
      <Fault message={fault} />
      {answer && (
        <>
          <RecordingActions source={{ recording: id }} />
          <h2>What it came to</h2>
          <Json label="Outcome" value={answer.outcome} />
        </>
      )}
    </>
  );
}
