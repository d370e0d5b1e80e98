import { visibleText } from '../../../core/kernel/visible-text.js';
import { Fault, Heading, Json, Line, Split, Status, time } from './parts.js';
import { RecordingActions } from './recording-actions.js';
import { useRemote } from './remote.js';

interface RecordingLine {
  readonly id: string;
  readonly kind: string;
  readonly title: string;
  readonly at: number;
  readonly status: string;
}

/** The list of recordings, and the selected recording. */
export function RecordingsView({ id }: { id: string }) {
  const { answer, fault } = useRemote<{ readonly recordings: readonly RecordingLine[] }>('recordings', [
    'recordings',
  ]);
  const recordings = answer?.recordings ?? [];
  const list = (
    <>
      {id === '' && (
        <Heading subtitle="Saved calls and runs. Replay a recording after a code change to see the differences.">
          Recordings
        </Heading>
      )}
      <Fault message={fault} />
      {answer && recordings.length === 0 && (
        <p class="empty">No recordings yet. Open a call or a run and save it.</p>
      )}
      <ul class="rows">
        {recordings.map((recording) => (
          <li key={recording.id}>
            <a
              href={`#/recordings/${encodeURIComponent(recording.id)}`}
              aria-current={recording.id === id ? 'page' : undefined}
            >
              <strong>
                <Line value={recording.title} />
              </strong>
              <Status value={recording.status} />
              <span class="about">
                <span>{recording.kind}</span>
                <span>{time(recording.at)}</span>
              </span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
  return (
    <Split label="Recordings" list={list}>
      {id !== '' && <RecordingView key={id} id={id} />}
    </Split>
  );
}

function RecordingView({ id }: { id: string }) {
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
          <h2>Outcome</h2>
          <Json label="Outcome" value={answer.outcome} />
        </>
      )}
    </>
  );
}
