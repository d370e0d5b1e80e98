import type { MeterProvider, TracerProvider } from '@opentelemetry/api';
import type {
  CallTrace,
  RequestTrace,
  RunTrace,
  Telemetry,
  Trace,
  TracedCall,
  TracedMessage,
  TracedMessageEnd,
  TracedRequest,
  TracedRun,
  TracedRunEnd,
  TracedTask,
} from '../contract/telemetry.js';
import type { ToolResult } from '../contract/tool-result.js';
import { checkOptions } from '../errors/author-fault.js';
import { BOOLEAN, either, objectOf, optionTable, withMethods } from '../kernel/options.js';
import { CallSpan, MessageSpan, TaskSpan } from './call-span.js';
import type { RecordedContent } from './content.js';
import { loadApi } from './load-api.cjs';
import { RequestSpan } from './run-span.js';
import {
  COMMON,
  createInstruments,
  type Failure,
  GEN_AI,
  given,
  type Instruments,
  linkTo,
  OpenSpan,
  OWN,
  type Recorder,
  typeOfError,
} from './spans.js';

/** Options of {@link openTelemetry}. */
export interface OpenTelemetryOptions {
  /**
   * What of the contents is recorded, without the secrets that the log leaves out; `true`: all of it. Default:
   * nothing, because contents hold what people said and what concerns them.
   */
  readonly content?: boolean | RecordedContent;
  /** Default: the one that the application has registered. */
  readonly tracerProvider?: TracerProvider;
  /** Default: the one that the application has registered. */
  readonly meterProvider?: MeterProvider;
}

const OPTIONS = optionTable<OpenTelemetryOptions>(
  'openTelemetry',
  {
    content: either(
      BOOLEAN,
      objectOf<RecordedContent>(
        { arguments: BOOLEAN, results: BOOLEAN, messages: BOOLEAN },
        { fix: '{ arguments: true, results: true, messages: true }' },
      ),
    ),
    tracerProvider: withMethods(['getTracer'], 'a TracerProvider of OpenTelemetry'),
    meterProvider: withMethods(['getMeter'], 'a MeterProvider of OpenTelemetry'),
  },
  {
    recordInputs: 'content: { arguments: true, messages: true }',
    recordOutputs: 'content: { results: true }',
  },
);

/**
 * Records runs, requests to models, calls of tools and messages of MCP as spans and metrics of OpenTelemetry, by the
 * names of its GenAI conventions. It goes where a logger goes: to a registry, to a run, to NestJS, to MCP. Nothing is
 * recorded, and nothing is slower, as long as the application has no SDK registered.
 *
 * Contents are recorded only where `content` asks for it. `@opentelemetry/api` has to be installed; it is loaded when
 * this is called.
 *
 * @throws InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * import { openTelemetry } from 'toolwright/opentelemetry';
 *
 * const telemetry = openTelemetry();
 * const tools = new ToolRegistry({ telemetry });
 * const run = await runToolLoop({ provider, model: 'gpt-5', tools, agentName: 'shop' }, messages);
 * ```
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  checkOptions(options, OPTIONS);
  return new OpenTelemetry(options);
}

/** The scope of all that is recorded here. */
const SCOPE = 'toolwright';
const ALL: RecordedContent = { arguments: true, results: true, messages: true };

/** Where the API keeps what an application registers; asking the API itself takes as long as half a call. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');
/** In case an API keeps it elsewhere, it is asked now and then all the same. */
const ASK_EVERY = 256;

function isUnregistered(): boolean {
  const registered = (globalThis as { readonly [REGISTERED]?: { trace?: object; metrics?: object } })[
    REGISTERED
  ];
  return registered === undefined || (registered.trace === undefined && registered.metrics === undefined);
}

class OpenTelemetry implements Telemetry {
  readonly #api = loadApi();
  readonly #options: OpenTelemetryOptions;
  readonly #content: RecordedContent;
  /** Where nobody has registered anything, the API has one that does nothing. */
  readonly #noTracers = new this.#api.ProxyTracerProvider().getDelegate();
  readonly #noMeter = this.#api.createNoopMeter();
  #asked = 0;
  #instruments: { readonly of: MeterProvider; readonly made: Instruments } | undefined;

  constructor(options: OpenTelemetryOptions) {
    this.#options = options;
    const { content = false } = options;
    this.#content = typeof content === 'object' ? content : content ? ALL : {};
  }

  get isOn(): boolean {
    const { tracerProvider, meterProvider } = this.#options;
    if (tracerProvider !== undefined || meterProvider !== undefined) return true;
    if (isUnregistered() && this.#asked++ % ASK_EVERY !== 0) return false;
    const tracers = this.#api.trace.getTracerProvider();
    if (!(tracers instanceof this.#api.ProxyTracerProvider) || tracers.getDelegate() !== this.#noTracers)
      return true;
    return this.#api.metrics.getMeter(SCOPE) !== this.#noMeter;
  }

  startRun(run: TracedRun): RunTrace {
    return new RunSpan(this.#recorder, run, this.#content);
  }

  startRequest(request: TracedRequest): RequestTrace {
    return new RequestSpan(this.#recorder, request, { content: this.#content });
  }

  startCall(call: TracedCall): CallTrace {
    return new CallSpan(this.#recorder, call, this.#content);
  }

  startTask(task: TracedTask): Trace<ToolResult> {
    return new TaskSpan(this.#recorder, task);
  }

  startMessage(message: TracedMessage): Trace<TracedMessageEnd> & Pick<CallTrace, 'carrier'> {
    return new MessageSpan(this.#recorder, message);
  }

  get #recorder(): Recorder {
    const { trace, metrics } = this.#api;
    const { tracerProvider = trace, meterProvider = metrics.getMeterProvider() } = this.#options;
    if (this.#instruments?.of !== meterProvider)
      this.#instruments = { of: meterProvider, made: createInstruments(meterProvider.getMeter(SCOPE)) };
    return {
      api: this.#api,
      tracer: tracerProvider.getTracer(SCOPE),
      instruments: this.#instruments.made,
    };
  }
}

/** `invoke_agent {name}`: one run, from its beginning, or from where it goes on, to its end or its suspension. */
class RunSpan extends OpenSpan<TracedRunEnd> implements RunTrace {
  readonly #run: TracedRun;
  readonly #content: RecordedContent;
  #last: RequestSpan | undefined;

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
    this.#last = new RequestSpan(this.recorder, request, { content: this.#content, parent: this.context });
    return this.#last;
  }

  protected conclude(end: TracedRunEnd, seconds: number): Failure | undefined {
    const { status, error, requests, calls, cost } = end;
    const failure = error === undefined ? undefined : { type: typeOfError(named(error)) };
    const { agentDuration, agentRequests, agentCalls, agentCost } = this.recorder.instruments;
    const { agent } = this.#run;
    const about = agent === undefined ? {} : { [GEN_AI.agent]: agent };
    const outcome = failure === undefined ? about : { ...about, [COMMON.errorType]: failure.type };
    agentDuration.record(seconds, outcome, this.context);
    agentRequests.record(requests, about, this.context);
    agentCalls.record(calls, about, this.context);
    if (cost !== undefined) agentCost.record(cost, about, this.context);
    if (this.span.isRecording()) this.#describe(end, status);
    return failure;
  }

  #describe({ usage, waits, cost }: TracedRunEnd, status: string): void {
    this.span.setAttributes(
      given({
        [OWN.runStatus]: status,
        [OWN.runCost]: cost,
        [OWN.runWaits]: waits === undefined ? undefined : [...waits],
        [GEN_AI.inputTokens]: usage.inputTokens,
        [GEN_AI.outputTokens]: usage.outputTokens,
      }),
    );
    // What was said, as the last request had it: hooks may have hidden some of the history.
    const { [GEN_AI.toolDefinitions]: _, ...said } = this.#last?.contents ?? {};
    this.span.setAttributes(said);
  }
}

/** Our own errors have numbers for codes; their names say the same in words. */
function named(error: unknown): unknown {
  return error instanceof Error && error.name !== 'Error' ? { name: error.name } : error;
}
