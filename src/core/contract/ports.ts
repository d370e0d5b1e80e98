/** The severity of a log message. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Structured data of a log message. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Receives log messages. A winston logger can be passed unchanged, and other loggers need only a thin wrapper.
 * `isLevelEnabled` saves work: without it, every level counts as enabled.
 */
export interface Logger {
  debug(message: string, fields?: LogFields): unknown;
  info(message: string, fields?: LogFields): unknown;
  warn(message: string, fields?: LogFields): unknown;
  error(message: string, fields?: LogFields): unknown;
  isLevelEnabled?(level: string): boolean;
}

/** A position in a trace (W3C Trace Context), as plain JSON: it is stored with states and jobs. */
export interface TracePlace {
  readonly traceparent: string;
  readonly tracestate?: string;
  /** For suspended work: when it stopped, in milliseconds since 1970. */
  readonly at?: number;
}

/** The key of an instance: a class, or a token of the container. */
export type InjectionToken<Instance = unknown> =
  // biome-ignore lint/suspicious/noExplicitAny: only `any` accepts every constructor signature
  (new (...args: any[]) => Instance) | string | symbol;

/** A resolver that lives for one call and is closed when the call is completed. */
export interface ScopedResolver {
  resolve<Instance>(token: InjectionToken<Instance>): Instance;
  dispose(): void | Promise<void>;
}

/**
 * The interface to a dependency-injection container. tsyringe containers can be passed unchanged. For other
 * containers, implement `resolve`, and `createScope` if the container supports instances per call.
 */
export interface InstanceResolver {
  resolve<Instance>(token: InjectionToken<Instance>): Instance;
  createScope?(): ScopedResolver;
}
