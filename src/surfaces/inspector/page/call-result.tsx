import { useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { AnswerFields, type Wait } from './answer-fields.js';
import type { AppData } from './app-host.js';
import { AppView } from './app-view.js';
import { Copy, duration, Json, Pairs, Result, Status, Text, time, tokensOf } from './parts.js';
import { RecordingActions } from './recording-actions.js';
import { get, post } from './remote.js';
import type { ShownCall } from './run.js';

/** Use this call elsewhere. */
export interface CallTexts {
  readonly curl: string;
  readonly script: string;
  readonly scripted: string;
}

/** A call as the server sends it. */
export interface CallDetail extends ShownCall {
  readonly key: string;
  readonly callId: string;
  readonly at: number;
  readonly runId?: string;
  readonly status: string;
  readonly steps: readonly { readonly step: string; readonly ms: number }[];
  readonly waits?: readonly Wait[];
  readonly canAnswer?: boolean;
  readonly texts?: CallTexts;
  /** For the view of its tool. */
  readonly app?: AppData;
}

/** Status, steps and result of a call. */
export function CallResult({ call, onNext }: { call: CallDetail; onNext(call: CallDetail): void }) {
  const { tool, status, ms, waits, checked, forLLM } = call;
  return (
    <section class="card" aria-label={`Call of ${tool}`}>
      <p class="turn-end">
        <Status value={status} />
        <span>{time(call.at)}</span>
        {ms !== undefined && <span>{duration(ms)}</span>}
        {forLLM !== undefined && waits === undefined && <span>about {tokensOf(forLLM)} tokens</span>}
      </p>
      <Steps steps={call.steps} />
      {waits !== undefined && call.canAnswer ? (
        <AnswerFields
          wait={{ ...waits[0]!, mayRemember: undefined, tool, arguments: checked ?? {} }}
          onAnswer={async (answer) => onNext(await post(`call-answers/${call.key}`, answer))}
        />
      ) : (
        <Outcome call={waits === undefined ? call : { ...call, forLLM: undefined }} />
      )}
      {call.app && (
        <>
          <h3>View</h3>
          <AppView key={call.key} tool={tool} data={call.app} />
        </>
      )}
      <Others call={call} />
    </section>
  );
}

/** The results for the model and the user, and the arguments after repairs. */
export function Outcome({ call }: { call: ShownCall }) {
  const {
    repairs = [],
    removed = [],
    attempts = 1,
    forLLM,
    forUser,
    details,
    error,
    edited,
    answeredBy,
  } = call;
  return (
    <>
      {forLLM !== undefined && (
        <>
          <h3>For the model</h3>
          <Result label="Result for the model" value={forLLM} />
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
      {error !== undefined && <p class="fault small">{errorText(error)}</p>}
      <h3>Arguments</h3>
      <Pairs label="Arguments, checked" value={call.checked ?? call.arguments} />
      {attempts > 1 && <p class="hint">Attempt {attempts} of the model.</p>}
      {repairs.length > 0 && <p class="hint">Repaired: {repairs.join(', ')}</p>}
      {removed.length > 0 && (
        <p class="hint">Removed, because they are not in the schema: {removed.join(', ')}</p>
      )}
      {answeredBy !== undefined && <p class="hint">Answered by {JSON.stringify(answeredBy)}</p>}
      {edited !== undefined && (
        <>
          <h3>Edited</h3>
          <Json label="Arguments before the edit" value={edited} />
        </>
      )}
    </>
  );
}

function errorText(error: unknown): string {
  const { name, message } = Object(error) as { readonly name?: string; readonly message?: string };
  return visibleText(message === undefined ? JSON.stringify(error) : `${name}: ${message}`);
}

/** The time of each step, as one bar and as a list. */
function Steps({ steps }: { steps: CallDetail['steps'] }) {
  const total = steps.reduce((sum, { ms }) => sum + ms, 0);
  if (total === 0) return null;
  return (
    <div class="steps">
      <div class="bar-of-steps" aria-hidden="true">
        {steps.map(({ step, ms }, index) => (
          <span key={index} class={`step-${step}`} style={{ flexGrow: String(ms / total) }} />
        ))}
      </div>
      <ul aria-label="Time of each step">
        {steps.map(({ step, ms }, index) => (
          <li key={index}>
            <span class={`swatch step-${step}`} aria-hidden="true" />
            {step} {duration(ms)}
          </li>
        ))}
      </ul>
    </div>
  );
}

const TEXTS = [
  ['curl', 'curl'],
  ['script', 'a script'],
  ['scripted', 'a scripted reply'],
] as const;

/** Use this call elsewhere. */
function Others({ call }: { call: CallDetail }) {
  const [texts, setTexts] = useState(call.texts);
  const open = async () => {
    if (texts === undefined) setTexts((await get<CallDetail>(`calls/${call.key}`)).texts);
  };
  return (
    <>
      <RecordingActions source={{ key: call.key }} />
      <details class="fold" onToggle={({ currentTarget }) => currentTarget.open && open()}>
        <summary>Use this call elsewhere</summary>
        {texts &&
          TEXTS.map(([kind, label]) => (
            <div key={kind}>
              <Text label={`The call as ${label}`} value={texts[kind]} />
              <Copy text={texts[kind]} what={`as ${label}`} />
            </div>
          ))}
      </details>
    </>
  );
}
