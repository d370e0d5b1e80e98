import { diffLines } from 'diff';
import { useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { Action, CodeField, Copy, Status, Text } from './parts.js';
import { post, useRemote } from './remote.js';

/** A call, a run of this process or a saved recording. */
export type RecordingSource =
  | { readonly key: string }
  | { readonly runId: string }
  | { readonly recording: string };

interface Outcome {
  readonly status: string;
  readonly content: string;
  readonly calls: readonly unknown[];
}

interface Replay {
  readonly runId: string;
  readonly before: Outcome;
  readonly after: Outcome;
}

interface WrittenTest {
  readonly name: string;
  readonly text: string;
  readonly path?: string;
}

interface About {
  readonly tests?: { readonly folder: string; readonly setup: string };
  readonly hasModel: boolean;
}

/** Buttons to save, replay and write a test. */
export function RecordingActions({ source }: { source: RecordingSource }) {
  const [replayed, setReplayed] = useState<Replay>();
  const [test, setTest] = useState<WrittenTest>();
  const { answer: about } = useRemote<About>('about', []);
  const [kept, setKept] = useState('');
  const again = async (who: 'recorded' | 'model') =>
    setReplayed(await post('replays', { ...source, with: who }));
  const write = async () => setTest(await post('tests', source));
  const keep = async () => {
    const { title } = await post<{ readonly title: string }>('recordings', source);
    setKept(`Saved: ${visibleText(title)}`);
  };
  return (
    <div class="recording">
      <div class="actions">
        {!('recording' in source) && <Action onDo={keep}>Save as recording</Action>}
        <Action onDo={() => again('recorded')}>Replay</Action>
        {about?.hasModel && <Action onDo={() => again('model')}>Replay with the model</Action>}
        <Action onDo={write}>Write a test</Action>
      </div>
      <p role="status" class="small faint">
        {kept}
      </p>
      {replayed && <Difference replay={replayed} />}
      {test && <TestText test={test} source={source} about={about} onSaved={setTest} />}
    </div>
  );
}

/** The differences, line by line. */
function Difference({ replay }: { replay: Replay }) {
  const { before, after, runId } = replay;
  const [one, other] = [before, after].map((outcome) =>
    JSON.stringify(outcome, null, 2).replaceAll('\\n', '\n'),
  );
  const parts = diffLines(one ?? '', other ?? '');
  const isSame = parts.every(({ added, removed }) => !added && !removed);
  return (
    <section aria-label="Replay">
      <p role="status">
        <Status value={after.status} /> {isSame ? 'Same as before.' : 'Different from before:'}{' '}
        <a href={`#/runs/${encodeURIComponent(runId)}`}>open the run</a>
      </p>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset has fields, and this has a name alone */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached without a mouse */}
      <pre class="text" role="group" tabIndex={0} aria-label="Difference">
        {parts.map(({ value, added, removed }, index) => {
          const sign = added ? '+' : removed ? '-' : ' ';
          const lines = visibleText(value).replace(/\n$/, '').replace(/^/gm, sign);
          const kind = added ? 'added' : removed ? 'removed' : 'same';
          return (
            <span key={index} class={kind}>
              {`${lines}\n`}
            </span>
          );
        })}
      </pre>
    </section>
  );
}

interface TestProps {
  readonly test: WrittenTest;
  readonly source: RecordingSource;
  readonly about: About | undefined;
  onSaved(test: WrittenTest): void;
}

function TestText({ test, source, about, onSaved }: TestProps) {
  const [setup, setSetup] = useState(about?.tests?.setup ?? '');
  const write = async (save: boolean) => onSaved(await post('tests', { ...source, setup, save }));
  return (
    <section aria-label="Test">
      <h3>{visibleText(test.path ?? test.name)}</h3>
      <CodeField label="Lines that import or create `tools`" rows={2} value={setup} onWrite={setSetup} />
      <Text label="The test" value={test.text} />
      <div class="actions">
        <Action onDo={() => write(false)}>Update the test</Action>
        {about?.tests && (
          <Action kind="main" onDo={() => write(true)}>
            Save as test
          </Action>
        )}
        <Copy text={test.text} what="test" />
      </div>
      <p role="status">{test.path !== undefined && `Saved as ${visibleText(test.path)}`}</p>
    </section>
  );
}
