import { useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { AnswerFields, type CallWait } from './answer-fields.js';
import { Action, Fault, Heading, Json, Text, time, useFieldId } from './parts.js';
import { post, useRemote } from './remote.js';

type Way = 'here' | 'worker' | 'conversation';

interface WaitingRun {
  readonly runId: string;
  readonly owner?: unknown;
  readonly since: number;
  readonly place: 'process' | 'store';
  readonly goesOn: readonly Way[];
  readonly pending: readonly (CallWait & { readonly id: string })[];
}

interface Held {
  readonly key: string;
  readonly tool: string;
  readonly since: number;
  readonly arguments: unknown;
}

const WAYS: Readonly<Record<Way, string>> = {
  here: 'here, in this process',
  worker: 'in whatever process recovers runs (toolwright worker)',
  conversation: 'in its conversation, wherever that is held',
};

/** What waits for somebody: runs, and calls at breakpoints. */
export function PendingView() {
  const { answer, fault } = useRemote<{ readonly runs: readonly WaitingRun[] }>('pending', ['pending']);
  const { answer: held } = useRemote<{ readonly held: readonly Held[] }>('held', ['held']);
  const isEmpty = answer?.runs.length === 0 && held?.held.length === 0;
  return (
    <>
      <Heading subtitle="Runs that wait for an answer, and calls that a breakpoint holds.">Pending</Heading>
      <Fault message={fault} />
      {isEmpty && <p>Nothing waits.</p>}
      {(held?.held ?? []).map((call) => (
        <HeldCall key={call.key} call={call} />
      ))}
      {(answer?.runs ?? []).map((run) => (
        <Waiting key={run.runId} run={run} />
      ))}
    </>
  );
}

function HeldCall({ call }: { call: Held }) {
  const [reason, setReason] = useState('');
  const id = useFieldId();
  return (
    <section class="card" aria-label={`Held call of ${call.tool}`}>
      <h2>Held: {visibleText(call.tool)}</h2>
      <p class="faint">since {time(call.since)}</p>
      <Json label={`Arguments of ${call.tool}`} value={call.arguments} />
      <div class="field">
        <label for={id}>Reason of a refusal</label>
        <input id={id} value={reason} onInput={({ currentTarget }) => setReason(currentTarget.value)} />
      </div>
      <Action onDo={() => post(`held/${call.key}`, { how: 'go' })}>Let it go</Action>{' '}
      <Action onDo={() => post(`held/${call.key}`, { how: 'refuse', reason })}>Refuse it</Action>
    </section>
  );
}

/** What its tool says to whoever is asked. */
function About({ wait }: { wait: CallWait }) {
  const { tool, title, risk, description, expiresAt, path = [] } = wait;
  const facts = [
    ...(path.length === 0 ? [] : [`within ${path.map((call) => call.tool).join(' › ')}`]),
    ...(title === undefined ? [] : [tool]),
    ...(risk === undefined ? [] : [`risk: ${risk}`]),
    ...(expiresAt === undefined ? [] : [`until ${new Date(expiresAt).toLocaleString()}`]),
  ];
  return (
    <>
      {facts.length > 0 && <p class="faint">{visibleText(facts.join(', '))}</p>}
      {description !== undefined && <Text label="What a yes comes to" value={description} />}
    </>
  );
}

function Waiting({ run }: { run: WaitingRun }) {
  const { runId, owner, since, place, goesOn, pending } = run;
  const [way, setWay] = useState<Way | undefined>(goesOn[0]);
  const id = useFieldId();
  const answer = (of: string) => (given: Readonly<Record<string, unknown>>) =>
    post('answers', { runId, answers: [{ id: of, ...given }], goesOn: way });
  return (
    <section class="card" aria-label={`Waiting run ${runId}`}>
      <h2>
        Run <a href={`#/runs/${encodeURIComponent(runId)}`}>{visibleText(runId)}</a>
      </h2>
      <p class="faint">
        since {time(since)}
        {owner !== undefined && `, of ${visibleText(JSON.stringify(owner))}`}
      </p>
      {place === 'process' && (
        <p class="hint">Your application is not notified when somebody answers on this page.</p>
      )}
      {goesOn.length === 0 && (
        <p class="fault">
          It is answered where its conversation is held, or by an inspector with a provider and a model.
        </p>
      )}
      {goesOn.length > 1 && (
        <div class="field">
          <label for={id}>It goes on</label>
          <select id={id} value={way} onChange={({ currentTarget }) => setWay(currentTarget.value as Way)}>
            {goesOn.map((one) => (
              <option key={one} value={one}>
                {WAYS[one]}
              </option>
            ))}
          </select>
        </div>
      )}
      {pending.map((wait) => (
        <section key={wait.id} aria-label={`${wait.kind} of ${wait.tool}`}>
          <h3>
            {wait.kind}: {visibleText(wait.title ?? wait.tool)}
          </h3>
          <About wait={wait} />
          {goesOn.length > 0 && <AnswerFields wait={wait} onAnswer={answer(wait.id)} />}
        </section>
      ))}
    </section>
  );
}
