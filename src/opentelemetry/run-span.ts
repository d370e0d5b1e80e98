import type { RunTrace, TracedRequest, TracedRun, TracedRunEnd } from '../contract/telemetry.js';
import { ContentWriter, type RecordedContent } from './content.js';
import { ERROR_TYPE, GEN_AI, OWN } from './gen-ai-names.js';
import { RequestSpan } from './request-span.js';
import { type Failure, given, linkTo, OpenSpan, type Recorder, typeOfError } from './spans.js';

/** `invoke_agent {name}`: one run, from its beginning, or from where it goes on, to its end or its suspension. */
export class RunSpan extends OpenSpan<TracedRunEnd> implements RunTrace {
  readonly #run: TracedRun;
  readonly #content: RecordedContent;

  constructor(recorder: Recorder, run: TracedRun, content: RecordedContent) {
    const { agent, runId, model, conversationId, before } = run;
    super(recorder, {
      name: agent === undefined ? 'invoke_agent' : `invoke_agent ${agent}`,
      kind: recorder.api.SpanKind.INTERNAL,
      attributes: given({
        [GEN_AI.operation]: 'invoke_agent',
        [GEN_AI.agent]: agent,
        [GEN_AI.requestModel]: model,
        [GEN_AI.conversation]: conversationId,
        [OWN.runId]: runId,
        [OWN.runWaited]: before?.at === undefined ? undefined : Math.max(0, Date.now() - before.at) / 1000,
      }),
      links: linkTo(recorder, before, 'goes_on_from'),
    });
    this.#run = run;
    this.#content = content;
  }

  startRequest(request: TracedRequest): RequestSpan {
    return new RequestSpan(this.recorder, request, { content: this.#content, parent: this.context });
  }

  protected conclude(end: TracedRunEnd, seconds: number): Failure | undefined {
    const { status, error, requests, calls } = end;
    const failure = error === undefined ? undefined : { type: typeOfError(named(error)) };
    const { agentDuration, agentRequests, agentCalls } = this.recorder.instruments;
    const { agent } = this.#run;
    const about = agent === undefined ? {} : { [GEN_AI.agent]: agent };
    const outcome = failure === undefined ? about : { ...about, [ERROR_TYPE]: failure.type };
    agentDuration.record(seconds, outcome, this.context);
    agentRequests.record(requests, about, this.context);
    agentCalls.record(calls, about, this.context);
    if (this.span.isRecording()) this.#describe(end, status);
    return failure;
  }

  #describe({ usage, waits, messages }: TracedRunEnd, status: string): void {
    this.span.setAttributes(
      given({
        [OWN.runStatus]: status,
        [OWN.runWaits]: waits === undefined ? undefined : [...waits],
        [GEN_AI.inputTokens]: usage.inputTokens,
        [GEN_AI.outputTokens]: usage.outputTokens,
      }),
    );
    const { redaction } = this.#run;
    if (!this.#content.messages || redaction === undefined) return;
    const writer = new ContentWriter(redaction);
    this.span.setAttribute(GEN_AI.inputMessages, writer.input(messages));
  }
}

/** Our own errors have numbers for codes; their names say the same in words. */
function named(error: unknown): unknown {
  return error instanceof Error && error.name !== 'Error' ? { name: error.name } : error;
}
