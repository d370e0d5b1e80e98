import { context, metrics, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';

/** One point of a metric. */
export interface MetricPoint {
  readonly name: string;
  readonly unit: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The sum of a counter, or count and sum of a histogram. */
  readonly value: unknown;
}

/** An SDK as an application registers it, and the data that it has recorded. */
export class Recording {
  readonly #spans = new InMemorySpanExporter();
  /** Span ids in the order of their start, which a clock in milliseconds does not provide. */
  readonly #begun: string[] = [];
  readonly #metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly #reader = new PeriodicExportingMetricReader({
    exporter: this.#metrics,
    exportIntervalMillis: 3_600_000,
  });
  readonly #tracers: TracerProvider;
  readonly #meters = new MeterProvider({ readers: [this.#reader] });

  constructor(options: { readonly sampler?: Sampler } = {}) {
    this.#tracers = new TracerProvider({
      ...options,
      spanProcessors: [
        {
          onStart: (span) => void this.#begun.push(span.spanContext().spanId),
          onEnd() {},
          forceFlush: async () => {},
          shutdown: async () => {},
        },
        new SimpleSpanProcessor({ exporter: this.#spans }),
      ],
    });
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator(
      new CompositePropagator({ propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()] }),
    );
    trace.setGlobalTracerProvider(this.#tracers);
    metrics.setGlobalMeterProvider(this.#meters);
  }

  /** The ended spans in the order of their start. */
  get spans(): readonly ReadableSpan[] {
    const order = (span: ReadableSpan) => this.#begun.indexOf(span.spanContext().spanId);
    return this.#spans.getFinishedSpans().toSorted((one, other) => order(one) - order(other));
  }

  /** Each span with its parent, in alphabetical order. */
  get family(): readonly string[] {
    return this.spans.map((span) => `${span.name} < ${this.parentOf(span) ?? '-'}`).toSorted();
  }

  get names(): readonly string[] {
    return this.spans.map(({ name }) => name);
  }

  /** The span with this name; throws if there is not exactly one. */
  span(name: string): ReadableSpan {
    const found = this.spans.filter((span) => span.name === name);
    if (found.length !== 1)
      throw new Error(`${found.length} spans '${name}' among: ${this.names.join(', ')}`);
    return found[0] as ReadableSpan;
  }

  /** The name of the parent of a span. */
  parentOf(span: ReadableSpan): string | undefined {
    const id = span.parentSpanContext?.spanId;
    return this.spans.find((other) => other.spanContext().spanId === id)?.name;
  }

  /** All measurements so far. */
  async points(): Promise<readonly MetricPoint[]> {
    await this.#reader.forceFlush();
    const latest = this.#metrics.getMetrics().at(-1);
    return (latest?.scopeMetrics ?? []).flatMap(({ metrics: measured }) =>
      measured.flatMap(({ descriptor: { name, unit }, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => ({ name, unit, attributes, value })),
      ),
    );
  }

  forget(): void {
    this.#spans.reset();
  }

  async end(): Promise<void> {
    for (const api of [trace, metrics, context, propagation]) api.disable();
    await Promise.all([this.#tracers.shutdown(), this.#meters.shutdown()]);
  }
}
