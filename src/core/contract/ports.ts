/** How much a log message matters. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Facts beside a log message: plain data. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Where the framework logs. Any winston logger satisfies it as it is, and so does a thin wrapper of
 * another one. `isLevelEnabled` saves work: without it every level counts as enabled.
 */
export interface Logger {
  debug(message: string, fields?: LogFields): unknown;
  info(message: string, fields?: LogFields): unknown;
  warn(message: string, fields?: LogFields): unknown;
  error(message: string, fields?: LogFields): unknown;
  isLevelEnabled?(level: string): boolean;
}

/** Where work stands in a trace (W3C Trace Context), as plain JSON: it is stored with states and jobs. */
export interface TracePlace {
  readonly traceparent: string;
  readonly tracestate?: string;
  /** Milliseconds since 1970 at which work stopped there; of what waited. */
  readonly at?: number;
}

/** What an instance is asked for by: a class, or a token that the container knows. */
export type InjectionToken<Instance = unknown> =
  // biome-ignore lint/suspicious/noExplicitAny: only `any` accepts every constructor signature
  (new (...args: any[]) => Instance) | string | symbol;

/** A resolver that lives for one call and is closed when the call has completed. */
export interface ScopedResolver {
  resolve<Instance>(token: InjectionToken<Instance>): Instance;
  dispose(): void | Promise<void>;
}

/**
 * The port to a dependency-injection container. tsyringe containers are taken as they are; for any other,
 * two methods do: `resolve`, and `createScope` where the container knows per-call instances.
 */
export interface InstanceResolver {
  resolve<Instance>(token: InjectionToken<Instance>): Instance;
  createScope?(): ScopedResolver;
}
