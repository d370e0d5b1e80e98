import { visibleText } from '../../../core/kernel/visible-text.js';
import { AnswerFields, type CallWait } from './answer-fields.js';
import { CallCard } from './call-card.js';
import { Markdown } from './markdown.js';
import { About, useWaitingRun, type WaitingRun } from './pending-view.js';
import { post, useWritten } from './remote.js';
import type { CallSpan, RequestSpan, Run, Span } from './run.js';

type Part = { readonly kind: 'request'; readonly span: RequestSpan & Span } | CallPart;

interface CallPart {
  readonly kind: 'call';
  readonly call: CallSpan;
}

/** A call that waited starts again after the answer; its entries become one part. */
function partsOf(spans: readonly Span[]): readonly Part[] {
  const parts: Part[] = [];
  for (const span of spans) {
    if (span.kind === 'request') parts.push({ kind: 'request', span });
    const call = span.kind === 'call' ? span : span.kind === 'wait' ? waitingCall(span) : undefined;
    if (call === undefined) continue;
    const before = parts.findLastIndex((part) => part.kind === 'call' && part.call.callId === call.callId);
    const known = parts[before];
    if (known?.kind === 'call' && (known.call.status ?? 'suspended') === 'suspended')
      parts[before] = { kind: 'call', call: { ...known.call, status: undefined, ...call } };
    else parts.push({ kind: 'call', call });
  }
  return parts;
}

function waitingCall({
  tool,
  callId,
  arguments: args,
  pending = [],
}: Span & { kind: 'wait' }): CallSpan | undefined {
  const id = callId ?? pending[0]?.callId;
  if (id === undefined) return undefined;
  const shown = args === undefined ? {} : { arguments: args };
  return { kind: 'call', callId: id, tool, status: 'suspended', ...shown } as CallSpan;
}

/** A prompt and the reply: texts and calls in order, with fields for open questions and approvals. */
export function TurnView({ prompt, run }: { prompt: string; run: Run | undefined }) {
  const waiting = useWaitingRun(run?.status === 'suspended' ? run.runId : undefined);
  const parts = run === undefined ? [] : partsOf(run.spans);
  const calls = new Set(parts.flatMap((part) => (part.kind === 'call' ? [part.call.callId] : [])));
  const elsewhere = waiting?.pending.filter((wait) => !calls.has(callOf(wait))) ?? [];
  const lastText = parts.findLastIndex((part) => part.kind === 'request' && part.span.text !== '');
  return (
    <div class="turn">
      <div class="prompt">{visibleText(prompt)}</div>
      {run &&
        parts.map((part, index) =>
          part.kind === 'request' ? (
            <Reply
              key={index}
              run={run}
              span={part.span}
              isAnswer={run.status === 'completed' && index === lastText}
            />
          ) : (
            <CallCard key={index} call={{ ...part.call, status: part.call.status ?? run.status }}>
              {waiting?.pending
                .filter((wait) => callOf(wait) === part.call.callId)
                .map((wait) => (
                  <Answering key={wait.id} run={waiting} wait={wait} />
                ))}
            </CallCard>
          ),
        )}
      {waiting && elsewhere.map((wait) => <Answering key={wait.id} run={waiting} wait={wait} />)}
      {run?.error && run.status !== 'aborted' && (
        <p class="fault">{visibleText(`${run.error.name}: ${run.error.message}`)}</p>
      )}
    </div>
  );
}

/** The call of this run that is waiting, also if the question is from a nested run. */
function callOf({ callId, path = [] }: WaitingRun['pending'][number]): string {
  return path[0]?.callId ?? callId;
}

interface ReplyProps {
  readonly run: Run;
  readonly span: RequestSpan & Span;
  readonly isAnswer: boolean;
}

function Reply({ run, span, isAnswer }: ReplyProps) {
  const isOpen = span.end === undefined && run.status === 'running';
  const written = useWritten(run.runId, span.iteration);
  const text = isOpen && written.length > span.text.length ? written : span.text;
  if (text === '' && !isOpen) return null;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset has fields, and this has a name alone
    <div role="group" aria-label={isAnswer ? 'Answer' : 'Text of the model'} class={isOpen ? 'writing' : ''}>
      <Markdown text={text} />
    </div>
  );
}

function Answering({ run, wait }: { run: WaitingRun; wait: CallWait & { readonly id: string } }) {
  const [goesOn] = run.goesOn;
  if (goesOn === undefined)
    return (
      <p class="asking">
        It can only be answered in its conversation, or by an inspector with a provider and a model.
      </p>
    );
  const answer = (given: Readonly<Record<string, unknown>>) =>
    post('answers', { runId: run.runId, answers: [{ id: wait.id, ...given }], goesOn });
  return (
    <div class="asking">
      <About wait={wait} />
      <AnswerFields wait={wait} onAnswer={answer} />
    </div>
  );
}
