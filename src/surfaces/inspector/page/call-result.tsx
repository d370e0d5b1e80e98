import { useState } from 'preact/hooks';
import { AnswerFields, type Wait } from './answer-fields.js';
import { Copy, duration, Json, Status, Text, time } from './parts.js';
import { RecordingActions } from './recording-actions.js';
import { get, post } from './remote.js';

/** A call as the inspector tells it. */
export interface CallDetail {
  readonly key: string;
  readonly callId: string;
  readonly tool: string;
  readonly at: number;
  readonly runId?: string;
  readonly status: string;
  readonly ms?: number;
  readonly arguments: unknown;
  readonly checked?: Readonly<Record<string, unknown>>;
  readonly repairs?: readonly string[];
  readonly removed?: readonly string[];
  readonly steps: readonly { readonly step: string; readonly ms: number }[];
  readonly forLLM?: string;
  readonly forUser?: string;
  readonly details?: unknown;
  readonly error?: unknown;
  readonly waits?: readonly Wait[];
  readonly canAnswer?: boolean;
  readonly texts?: { readonly curl: string; readonly scripted: string };
}

/** What came of a call. */
export function CallResult({ call, onNext }: { call: CallDetail; onNext(call: CallDetail): void }) {
  const { status, ms, repairs = [], removed = [], forLLM, forUser, details, waits, checked } = call;
  return (
    <section class="result" aria-label={`Call of ${call.tool}`}>
      <p>
        <Status value={status} /> at {time(call.at)}
        {ms !== undefined && `, ${duration(ms)}`}
      </p>
      <Steps steps={call.steps} />
      {waits !== undefined && call.canAnswer && (
        <AnswerFields
          wait={{ ...waits[0]!, mayRemember: undefined, tool: call.tool, arguments: checked ?? {} }}
          onAnswer={async (answer) => onNext(await post(`call-answers/${call.key}`, answer))}
        />
      )}
      {forLLM !== undefined && waits === undefined && (
        <>
          <h3>For the model</h3>
          <Text label="Result for the model" value={forLLM} />
        </>
      )}
      {forUser !== undefined && forUser !== '' && (
        <>
          <h3>For the user</h3>
          <Text label="Result for the user" value={forUser} />
        </>
      )}
      {details !== undefined && (
        <>
          <h3>Details</h3>
          <Json label="Details" value={details} />
        </>
      )}
      <h3>Arguments</h3>
      {repairs.length > 0 && <p>Repaired: {repairs.join(', ')}</p>}
      {removed.length > 0 && <p>Removed, because the schema does not know them: {removed.join(', ')}</p>}
      <Json label="Arguments, checked" value={checked ?? call.arguments} />
      <Others call={call} />
    </section>
  );
}

/** The time of each step, as one bar and as a list. */
function Steps({ steps }: { steps: CallDetail['steps'] }) {
  const total = steps.reduce((sum, { ms }) => sum + ms, 0);
  if (total === 0) return null;
  let offset = 0;
  const parts = steps.map(({ step, ms }) => {
    const x = offset;
    const width = (ms / total) * 100;
    offset += width;
    return { step, ms, x, width };
  });
  return (
    <div class="steps">
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        {parts.map(({ step, x, width }) => (
          <rect key={step} class={`step-${step}`} x={x} width={width} height="4" />
        ))}
      </svg>
      <ul aria-label="Time of each step">
        {parts.map(({ step, ms }) => (
          <li key={step}>
            <span class={`swatch step-${step}`} aria-hidden="true" />
            {step} {duration(ms)}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The same call elsewhere. */
function Others({ call }: { call: CallDetail }) {
  const [texts, setTexts] = useState(call.texts);
  const open = async () => {
    if (texts !== undefined) return;
    const { texts: found } = await get<CallDetail>(`calls/${call.key}`);
    setTexts(found);
  };
  return (
    <>
      <details onToggle={({ currentTarget }) => currentTarget.open && open()}>
        <summary>The same call elsewhere</summary>
        {texts && (
          <>
            <h4>curl</h4>
            <Text label="The call as curl" value={texts.curl} />
            <Copy text={texts.curl} what="curl" />
            <h4>As a reply of a ScriptedProvider</h4>
            <Text label="The call as a scripted reply" value={texts.scripted} />
            <Copy text={texts.scripted} what="reply" />
          </>
        )}
      </details>
      <RecordingActions source={{ key: call.key }} />
    </>
  );
}
