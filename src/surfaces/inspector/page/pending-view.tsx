import { useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { AnswerFields, type CallWait } from './answer-fields.js';
import { Icon } from './icon.js';
import { Action, Fault, Heading, Pairs, Text, time, useFieldId } from './parts.js';
import { Refusal } from './refusal.js';
import { post, useRemote } from './remote.js';

type Way = 'here' | 'worker' | 'conversation';

export interface WaitingRun {
  readonly runId: string;
  readonly owner?: unknown;
  readonly since: number;
  readonly place: 'process' | 'store';
  readonly goesOn: readonly Way[];
  readonly pending: readonly (CallWait & { readonly id: string; readonly callId: string })[];
}

interface Held {
  readonly key: string;
  readonly tool: string;
  readonly since: number;
  readonly arguments: unknown;
}

const WAYS: Readonly<Record<Way, string>> = {
  here: 'in this process',
  worker: 'in a process that recovers runs (toolwright worker)',
  conversation: 'in its conversation',
};

/** The waits of a run; `undefined` if it is not waiting. */
export function useWaitingRun(runId: string | undefined): WaitingRun | undefined {
  const { answer } = useRemote<{ readonly runs: readonly WaitingRun[] }>(runId && 'pending', ['pending']);
  return answer?.runs.find((run) => run.runId === runId);
}

/** Waiting runs, and calls at breakpoints. */
export function PendingView() {
  const { answer, fault } = useRemote<{ readonly runs: readonly WaitingRun[] }>('pending', ['pending']);
  const { answer: held } = useRemote<{ readonly held: readonly Held[] }>('held', ['held']);
  const isEmpty = answer?.runs.length === 0 && held?.held.length === 0;
  return (
    <div class="narrow">
      <Heading subtitle="Runs that wait for an answer, and calls at breakpoints.">Pending</Heading>
      <Fault message={fault} />
      {isEmpty && <p class="empty">Nothing is waiting.</p>}
      {(held?.held ?? []).map((call) => (
        <HeldCall key={call.key} call={call} />
      ))}
      {(answer?.runs ?? []).map((run) => (
        <Waiting key={run.runId} run={run} />
      ))}
    </div>
  );
}

function HeldCall({ call }: { call: Held }) {
  return (
    <section class="card" aria-label={`Held call of ${call.tool}`}>
      <h2 class="code">Breakpoint: {visibleText(call.tool)}</h2>
      <p class="faint small">since {time(call.since)}</p>
      <Pairs label={`Arguments of ${call.tool}`} value={call.arguments} />
      <div class="actions">
        <Action kind="main" onDo={() => post(`held/${call.key}`, { how: 'go' })}>
          Continue
        </Action>
        <Refusal onRefuse={(reason) => post(`held/${call.key}`, { how: 'refuse', reason })}>Refuse</Refusal>
      </div>
    </section>
  );
}

/** From the tool, for the person who answers. */
export function About({ wait }: { wait: CallWait }) {
  const { tool, title, risk, description, expiresAt, path = [] } = wait;
  const facts = [
    ...(path.length === 0 ? [] : [`within ${path.map((call) => call.tool).join(' › ')}`]),
    ...(title === undefined ? [] : [tool]),
    ...(risk === undefined ? [] : [`risk: ${risk}`]),
    ...(expiresAt === undefined ? [] : [`until ${new Date(expiresAt).toLocaleString()}`]),
  ];
  return (
    <>
      {facts.length > 0 && <p class="faint small">{visibleText(facts.join(', '))}</p>}
      {description !== undefined && <Text label="Description" value={description} />}
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
      <p class="turn-end">
        <span>
          Run <a href={`#/runs/${encodeURIComponent(runId)}`}>{visibleText(runId)}</a>
        </span>
        <span>since {time(since)}</span>
        {owner !== undefined && <span>of {visibleText(JSON.stringify(owner))}</span>}
      </p>
      {place === 'process' && <p class="hint">Your application is not notified of answers on this page.</p>}
      {goesOn.length === 0 && (
        <p class="fault">
          It can only be answered in its conversation, or by an inspector with a provider and a model.
        </p>
      )}
      {goesOn.length > 1 && (
        <div class="field">
          <label for={id}>It continues</label>
          <select id={id} value={way} onChange={({ currentTarget }) => setWay(currentTarget.value as Way)}>
            {goesOn.map((one) => (
              <option key={one} value={one}>
                {WAYS[one]}
              </option>
            ))}
          </select>
        </div>
      )}
      {pending.map((wait, index) => (
        <section
          key={wait.id}
          aria-label={`${index + 1} of ${pending.length} in run ${runId}: ${wait.kind} of ${wait.tool}`}
        >
          <h2 class="with-icon">
            <span class="kind-wait">
              <Icon name="pending" />
            </span>
            {wait.kind}: {visibleText(wait.title ?? wait.tool)}
          </h2>
          <About wait={wait} />
          {goesOn.length > 0 && <AnswerFields wait={wait} onAnswer={answer(wait.id)} />}
        </section>
      ))}
    </section>
  );
}
