import type { Attributes, Context, Link, Span, SpanKind, Tracer } from '@opentelemetry/api';
import type { TracePlace } from '../contract/ports.js';
import type { Trace, TraceCarrier, TraceEvent } from '../contract/telemetry.js';
import { ERROR_TYPE, EXCEPTION, OWN } from './gen-ai-names.js';
import type { Instruments } from './instruments.js';
import type { Api } from './load-api.cjs';

/** What spans are recorded with. */
export interface Recorder {
  readonly api: Api;
  readonly tracer: Tracer;
  readonly instruments: Instruments;
}

/** How a span begins. */
interface SpanStart {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  /** Default: what is active. */
  readonly parent?: Context | undefined;
  readonly links?: readonly Link[] | undefined;
}

/** Why something failed: its type for `error.type`, words for people, and the event that tells what was thrown. */
export interface Failure {
  readonly type: string;
  readonly message?: string | undefined;
  readonly event?: string | undefined;
}

/** A span with the context that is active in it, and the time since it began. */
export abstract class OpenSpan<End> implements Trace<End> {
  protected readonly recorder: Recorder;
  protected readonly span: Span;
  readonly context: Context;
  readonly #since = performance.now();
  #isEnded = false;

  constructor(recorder: Recorder, { name, kind, attributes, parent, links }: SpanStart) {
    const { api, tracer } = recorder;
    const around = parent ?? api.context.active();
    this.recorder = recorder;
    this.span = tracer.startSpan(name, { kind, attributes, ...(links ? { links: [...links] } : {}) }, around);
    this.context = api.trace.setSpan(around, this.span);
  }

  get place(): TracePlace | undefined {
    const { isSpanContextValid } = this.recorder.api;
    const at = this.span.spanContext();
    if (!isSpanContextValid(at)) return undefined;
    const flags = at.traceFlags.toString(16).padStart(2, '0');
    const tracestate = at.traceState?.serialize();
    return {
      traceparent: `00-${at.traceId}-${at.spanId}-${flags}`,
      ...(tracestate ? { tracestate } : {}),
    };
  }

  /** What goes along with a message to another process. */
  get carrier(): TraceCarrier {
    const carrier = {};
    this.recorder.api.propagation.inject(this.context, carrier);
    return carrier;
  }

  within<Value>(work: () => Value): Value {
    return this.recorder.api.context.with(this.context, work);
  }

  event(event: TraceEvent): void {
    if (!this.span.isRecording()) return;
    switch (event.type) {
      case 'request-retry':
        this.span.addEvent(OWN.retry, {
          [OWN.retryDelay]: event.delayMs / 1000,
          [ERROR_TYPE]: typeOfError(event.error),
        });
        return;
      case 'replay':
        this.span.addEvent(OWN.replay, { [OWN.replayOf]: event.of, [OWN.replayKey]: event.key });
        return;
      case 'settled-before':
        this.span.addEvent(OWN.settled, { [OWN.settledCalls]: [...event.callIds] });
    }
  }

  end(end: End): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const failure = this.conclude(end, (performance.now() - this.#since) / 1000);
    if (failure !== undefined && this.span.isRecording()) {
      const { type, message, event } = failure;
      this.span.setAttribute(ERROR_TYPE, type);
      if (event !== undefined)
        this.span.addEvent(event, given({ [EXCEPTION.type]: type, [EXCEPTION.message]: message }));
      this.span.setStatus({
        code: this.recorder.api.SpanStatusCode.ERROR,
        ...(message === undefined ? {} : { message }),
      });
    }
    this.span.end();
  }

  /** Seconds since it began. */
  protected get seconds(): number {
    return (performance.now() - this.#since) / 1000;
  }

  /** Records how it ended, and says why where that is a failure. */
  protected abstract conclude(end: End, seconds: number): Failure | undefined;
}

/** A link to work elsewhere; none where its place is not one. */
export function linkTo(
  { api }: Pick<Recorder, 'api'>,
  place: TracePlace | undefined,
  what: string,
): readonly Link[] {
  const parts = /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/.exec(place?.traceparent ?? '');
  if (parts === null) return [];
  const [, traceId = '', spanId = '', flags = ''] = parts;
  const context = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(place?.tracestate ? { traceState: api.createTraceState(place.tracestate) } : {}),
  };
  return api.isSpanContextValid(context) ? [{ context, attributes: { [OWN.link]: what } }] : [];
}

/** What an error is called where it is counted: the status or the code of a server, or the name of its class. */
export function typeOfError(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '_OTHER';
  try {
    const { status, code, name } = error as Readonly<Record<string, unknown>>;
    if (typeof status === 'number') return String(status);
    if (typeof code === 'string' && /^[\w.-]{1,64}$/.test(code)) return code;
    if (typeof name === 'string' && name !== 'Error' && /^[\w$.-]{1,64}$/.test(name)) return name;
    const { name: made } = error.constructor;
    return made === '' || made === 'Object' ? '_OTHER' : made;
  } catch {
    return '_OTHER';
  }
}

/** Attributes without those that have no value. */
export function given(attributes: Readonly<Record<string, Attributes[string] | undefined>>): Attributes {
  const set: Attributes = {};
  for (const name in attributes) if (attributes[name] !== undefined) set[name] = attributes[name];
  return set;
}
