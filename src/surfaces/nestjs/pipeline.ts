import { createHmac, randomBytes } from 'node:crypto';
import { type InspectOptions, inspect } from 'node:util';
import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  type ExceptionFilter,
  type ExecutionContext,
  ForbiddenException,
  type LogLevel,
  type NestInterceptor,
  Logger as NestLogger,
  type PipeTransform,
} from '@nestjs/common';
import type { ApplicationConfig, ContextId, ModulesContainer } from '@nestjs/core';
import { catchError, isObservable, lastValueFrom, Observable, takeUntil, tap } from 'rxjs';
import type { LogFields, Logger } from '../../core/contract/ports.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import { errorResult, RetryToolCall, ToolResult } from '../../core/contract/tool-result.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { andThen, isAsyncIterable, onAbort } from '../../core/kernel/async.js';
import { cached } from '../../core/kernel/cached.js';
import { errorMessage, isClientError, isHttpError } from '../../core/kernel/error-message.js';
import { isObject } from '../../core/kernel/json.js';
import { visibleText } from '../../core/kernel/visible-text.js';
import { CallContext, CallSuspended } from '../../run/call/context.js';
import { logFailure } from '../../run/call/failure-log.js';
import { loggedFields } from '../../run/call/log.js';
import { planOf } from '../../run/call/plan.js';
import { createRedaction, type Redaction } from '../../run/call/redact.js';
import { drain, isToolResultLike } from '../../run/call/result-form.js';
import { type DescribeError, failedResult } from '../../run/call/result-text.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { listFaults } from '../../tools/checking/faults.js';
import {
  type CallOrigin,
  type RequestContexts,
  RequestInterceptor,
  type RunningCalls,
  SHUTDOWN,
  ToolCallInfo,
} from './calls.js';
import type { CallTarget, TargetInContext } from './handlers.js';
import {
  ExternalExceptionFilterContext,
  type ExternalExceptionsHandler,
  enhancerClasses,
  enhancersAt,
  GuardsConsumer,
  type InstanceWrapper,
  InterceptorsConsumer,
  instanceIn,
  isStatic,
  NestEnhancers,
  PipesConsumer,
  toolExecutionContext,
} from './nest-internals.js';
import type { ToolwrightModuleOptions } from './options.js';

/** Describes an error for the model; never throws. */
export function createErrorDescriber(options: ToolwrightModuleOptions): DescribeError {
  const { describeError, exposeErrors } = options;
  if (exposeErrors === true && describeError === undefined) return exceptionText;
  const describe = describeError ?? ((thrown, tool) => publicText(thrown) ?? internalError(thrown, tool));
  return (thrown, tool) => {
    try {
      return String(describe(thrown, tool));
    } catch {
      return internalError(thrown, tool);
    }
  };
}

/** The text of an error that may be shown: of an `HttpException` below 500 and of the framework's own errors. */
function publicText(thrown: unknown): string | undefined {
  return isPublic(thrown) ? exceptionText(thrown) : undefined;
}

/** The message, or what an `HttpException` contains besides it: the list of a pipe's errors, or a custom body. */
function exceptionText(exception: unknown): string {
  const response: unknown = isHttpError(exception) ? exception.getResponse() : undefined;
  if (!isObject(response)) return errorMessage(exception);
  const message: unknown = Reflect.get(response, 'message');
  if (Array.isArray(message)) return message.join('; ');
  return typeof message === 'string' ? errorMessage(exception) : JSON.stringify(response);
}

/** Whether an error may be shown; an error of the framework with a cause only if its cause may be. */
function isPublic(thrown: unknown): boolean {
  // As in Nest's own responses: messages of server errors are not shown.
  if (isHttpError(thrown)) return isClientError(thrown);
  if (RetryToolCall.is(thrown) || thrown === SHUTDOWN) return true;
  return ToolwrightError.is(thrown) && (thrown.cause === undefined || isPublic(thrown.cause));
}

const REFERENCE_KEY = randomBytes(16);

/**
 * Replaces the text of an unexpected error. The same error has the same reference, so that repeated calls are noticed.
 * Without the key, the reference reveals nothing about the error.
 */
function internalError(thrown: unknown, tool: string): string {
  const text = `${tool}\n${errorMessage(thrown)}`;
  const reference = createHmac('sha256', REFERENCE_KEY).update(text).digest('hex').slice(0, 8);
  return `Internal error (ref ${reference})`;
}

/**
 * A log message with fields, in two forms. Loggers for data (`json: true`, pino, winston) find its own properties.
 * Nest's console logger inspects objects and gets one line of text, followed by the stack of an unexpected error.
 */
class LogEntry {
  readonly message: string;
  /** The error itself if `error` contains its message; pino has a serializer for this name. */
  declare readonly err?: Error;

  constructor(message: string, fields: LogFields) {
    this.message = message;
    const { error } = fields;
    const shown = error instanceof Error ? { error: error.message, err: error } : {};
    // JSON.stringify shows only own enumerable properties of errors. Fields may have any name, and assigning `toString`
    // fails if `Object.prototype` is frozen.
    Object.defineProperties(this, Object.getOwnPropertyDescriptors({ ...fields, ...shown, message }));
  }

  [inspect.custom](_depth: number, options: InspectOptions): string {
    const { message, err, ...fields } = this as LogEntry & LogFields;
    const texts = Object.entries(fields).map(([name, value]) => `${name}=${textOf(value)}`);
    const line = [message, ...texts].join(' ');
    // Messages of the framework's own errors are complete, except for their cause.
    const origin = ToolwrightError.is(err) ? (err as Error).cause : err;
    // Control characters are escaped, including those of colours.
    const stack = origin instanceof Error ? `\n${inspect(origin, { ...options, colors: false })}` : '';
    return visibleText(`${line}${stack}`);
  }
}

/** Without quotes if it is one word, otherwise as JSON. */
function textOf(text: unknown): string {
  if (typeof text === 'string') return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
  try {
    return JSON.stringify(text) ?? String(text);
  } catch {
    return inspect(text, { compact: true, breakLength: Number.POSITIVE_INFINITY });
  }
}

/**
 * Nest's logger as the framework's `Logger`. Events of calls are logged as `debug`, so that an application that logs
 * from `log` on sees only problems.
 */
export function nestLogger(): Logger {
  const logger = new NestLogger('Toolwright');
  const entry = (message: string, fields?: LogFields): LogEntry | string =>
    fields === undefined ? message : new LogEntry(message, fields);
  return {
    debug: (message, fields) => logger.debug(entry(message, fields)),
    info: (message, fields) => logger.debug(entry(message, fields)),
    warn: (message, fields) => logger.warn(entry(message, fields)),
    error: (message, fields) => logger.error(entry(message, fields)),
    // NestJS 11 reports every level as disabled if none was set, although all are enabled.
    isLevelEnabled: (level) =>
      NestLogger.isLevelEnabled((level === 'info' ? 'debug' : level) as LogLevel) ||
      !NestLogger.isLevelEnabled('fatal'),
  };
}

/** The name of a guard, filter or interceptor in logs: its class, if it has one. */
function enhancerName(enhancer: object): string {
  const { name } = enhancer.constructor ?? Object;
  return name === '' || name === 'Object' ? 'without a name' : name;
}

/** A value, or a promise of it. */
type Awaitable<Value> = Value | Promise<Value>;

/** A call with its injection context and instance. */
interface OpenedCall {
  readonly at: TargetInContext;
  readonly around: TargetEnhancers;
  readonly call: ToolCallInfo;
  /** The arguments in the `ExecutionContext` of enhancers. */
  readonly args: unknown[];
  readonly instance: object;
}

/**
 * Runs guards, interceptors, pipes and exception filters around a call, in the order of an HTTP request, with Nest's
 * own consumers. A refusal becomes a reason or a result, never an exception.
 */
export class CallPipeline {
  readonly #enhancers: Enhancers;
  readonly #guards = new GuardsConsumer();
  readonly #interceptors = new InterceptorsConsumer();
  readonly #pipes = new PipesConsumer();
  readonly #logger = new NestLogger('Toolwright');
  /** Filters and interceptors that a warning was logged for. */
  readonly #unfit = new WeakSet<object>();
  readonly #describeError: DescribeError;
  readonly #redaction: Redaction;

  constructor(enhancers: Enhancers, describeError: DescribeError, redaction: Redaction) {
    this.#enhancers = enhancers;
    this.#describeError = describeError;
    this.#redaction = redaction;
  }

  /** Asks the guards; returns why the call is refused, or `undefined`. */
  refusal(opened: OpenedCall): Awaitable<string | undefined> {
    return opened.around.guards.length === 0 ? undefined : this.#askGuards(opened);
  }

  /** Asks guards one by one, as Nest's own consumer does, to know which one refuses. */
  async #askGuards(opened: OpenedCall): Promise<string | undefined> {
    const execution = executionContext(opened);
    for (const guard of opened.around.guards) {
      try {
        if (!(await this.#guards.pickResult(guard.canActivate(execution) as boolean)))
          throw new ForbiddenException('Forbidden resource');
      } catch (refusal) {
        const { answer, exception } = await this.#filter(opened, refusal);
        if (answer !== undefined) return filteredText(answer);
        const hint = exception instanceof TypeError ? GUARD_HINT : '';
        const isOfGuard = exception === refusal;
        const why = isOfGuard ? `the guard ${enhancerName(guard)} threw${hint}` : 'an exception filter threw';
        return this.reasonOf(exception, opened.call.tool.name, why);
      }
    }
    return undefined;
  }

  /** The reason for the model. Unexpected exceptions are logged, and only described. */
  reasonOf(exception: unknown, tool: string, why: string): string {
    const meant = publicText(exception);
    if (meant !== undefined) return meant;
    const text = this.#describeError(exception, tool);
    const fields = loggedFields({ sent: text, error: exception }, this.#redaction);
    this.#logger.error(new LogEntry(`The tool '${tool}' was refused: ${why}`, fields));
    return text;
  }

  /** Runs the method with its enhancers; returns its result, or the filters' result for an exception. */
  perform(opened: OpenedCall, checked: unknown): unknown {
    const method: Method = { checked, progress: 'waiting' };
    if (opened.around.interceptors.length > 0)
      return this.#filtered(opened, method, () => this.#performAround(opened, method));
    try {
      const value = this.#invoke(opened, method);
      if (isComplete(value)) return value;
      return this.#filtered(opened, method, async () => {
        const settled = await value;
        if (isComplete(settled)) return settled;
        return lastOf(await returnedValue(settled, opened.call.context), opened.call);
      });
    } catch (exception) {
      return this.#thrown(opened, method, exception);
    }
  }

  async #filtered(opened: OpenedCall, method: Method, work: () => Promise<unknown>): Promise<unknown> {
    try {
      return await work();
    } catch (exception) {
      return this.#thrown(opened, method, exception);
    }
  }

  /**
   * Runs the method within its interceptors. A response envelope (`map((data) => ({ data }))`) is removed, because it
   * would hide acknowledgements and images from the model. If an interceptor breaks the declared `output`, the error
   * names the interceptors instead of the method.
   */
  async #performAround(opened: OpenedCall, method: Method): Promise<unknown> {
    const { around, at, args, call } = opened;
    const { interceptors } = around;
    const { declared, handler } = at.target;
    const next = (): Promise<unknown> =>
      followed(method, async () => returnedValue(await this.#invoke(opened, method), call.context));
    const context = [args, declared, handler] as const;
    const values: unknown = await this.#interceptors.intercept(interceptors, ...context, next, 'tool');
    const value = await lastOf(values, call);
    const { tool } = call;
    const { returned } = method;
    if (returned !== undefined && returned.value === value) return value;
    if (returned !== undefined && isToolResultLike(returned.value) && !ToolResult.is(value)) {
      if (Object.values(Object(value)).includes(returned.value)) return returned.value;
    }
    if (tool.output === undefined || tool.isOutputInferred || isToolResultLike(value)) return value;
    const { checkResult } = planOf(tool);
    const faults = checkResult?.(value) ?? [];
    const didFit = returned === undefined || checkResult?.(returned.value).length === 0;
    if (faults.length === 0 || !didFit) return value;
    const names = [...new Set(interceptors.map(enhancerName))].join(', ');
    const lines = [
      `The tool '${tool.name}' returned an invalid result:`,
      ...listFaults(faults),
      `The method has run, and its result fits; one of its interceptors (${names}) changed it. An interceptor for HTTP responses must skip tool calls: if (context.getType<string>() === 'tool') return next.handle();`,
    ];
    return failedResult('InvalidResult', lines.join('\n'));
  }

  /** Calls the method, after the pipes. */
  #invoke(opened: OpenedCall, method: Method): unknown {
    const { at, around, call, instance } = opened;
    const { target } = at;
    const invoke = (values: readonly unknown[]): unknown => {
      method.progress = 'begun';
      return target.invoke(instance, values);
    };
    const values = target.layOut(method.checked, call.context);
    if (around.pipes.length === 0 && target.isUndecorated) return invoke(values);
    return this.#pipe(opened, values).then(invoke);
  }

  #thrown(opened: OpenedCall, method: Method, exception: unknown): Promise<unknown> {
    const { context } = opened.call;
    // Exceptions that control the call are not failures; nor is the end of a stopped call.
    const isSteering = RetryToolCall.is(exception) || exception instanceof CallSuspended;
    if (isSteering || (context instanceof CallContext && context.isStopped)) throw exception;
    return this.#failure(opened, method, exception);
  }

  /** The result for an exception; rejects if no filter handled it. */
  async #failure(opened: OpenedCall, method: Method, exception: unknown): Promise<unknown> {
    const { call, around } = opened;
    const { name } = call.tool;
    const { progress } = method;
    const isOfMethod = progress === 'threw' && method.thrown === exception;
    const isAround = around.interceptors.length > 0 && !isOfMethod;
    if (isAround && exception instanceof TypeError) {
      const interceptor = enhancerThatThrew(exception);
      if (interceptor !== undefined)
        this.#warnOnce(interceptor, { ...UNFIT_INTERCEPTOR, tool: name, exception });
      // If an interceptor fails for lack of a response, report the method's own failure.
      if (progress === 'threw') return this.#failure(opened, method, method.thrown);
    }
    const { answer, exception: thrown } = await this.#filter(opened, exception);
    let worded: ToolResult | undefined;
    if (ToolResult.is(answer)) worded = answer;
    else if (answer !== undefined) {
      const error = new ToolwrightError('ToolExecutionFailed', errorMessage(exception), { cause: exception });
      worded = errorResult(filteredText(answer)).withError(error);
    }
    const isLost = isAround && (progress === 'returned' || progress === 'begun');
    if (worded !== undefined && !(isLost && worded.isError)) return worded;
    if (!isLost) throw thrown;
    // The model must not assume that the call had no effect.
    const text = worded?.forLLM ?? this.#describeError(thrown, name);
    const happened =
      progress === 'returned'
        ? `The tool '${name}' ran, but its result was lost afterwards: ${text}\nDo not repeat the call: the tool has already run.`
        : `The tool '${name}' had begun when its call failed: ${text}\nFind out what it did before you repeat the call: the tool may have run.`;
    return failedResult('ToolExecutionFailed', happened, exception);
  }

  async #pipe(opened: OpenedCall, laidOut: readonly unknown[]): Promise<readonly unknown[]> {
    const { at, around } = opened;
    const execution = executionContext(opened);
    const parameters = laidOut.map((_value, index) => at.target.parameterAt(index));
    const values = parameters.map(({ read }, index) => (read ? read(execution) : laidOut[index]));
    return Promise.all(
      values.map((value, index) => {
        const { metadata, pipes = [] } = at.target.parameterAt(index);
        if (metadata === undefined || around.pipes.length + pipes.length === 0) return value;
        return this.#pipes.applyPipes(value, metadata, [
          ...around.pipes,
          ...this.#enhancers.pipesOf(pipes, at),
        ]);
      }),
    );
  }

  async #filter(opened: OpenedCall, exception: unknown): Promise<Filtered> {
    try {
      const filters = this.#enhancers.filters(opened.at);
      const answer: unknown = await filters.invokeCustomFilters(exception, executionContext(opened));
      return { answer: answer ?? undefined, exception };
    } catch (thrown) {
      const filter = enhancerThatThrew(thrown);
      // A filter written for HTTP fails without a response; that must not hide the original exception.
      if (!(thrown instanceof TypeError) || filter === undefined) return { exception: thrown };
      this.#warnOnce(filter, { ...UNFIT_FILTER, tool: opened.call.tool.name, exception: thrown });
      return { exception };
    }
  }

  #warnOnce(enhancer: object, { kind, hint, tool, exception }: Unfit): void {
    const key = enhancer.constructor === Object ? enhancer : enhancer.constructor;
    if (this.#unfit.has(key)) return;
    this.#unfit.add(key);
    const why = `${exception.message} (at the tool '${tool}')`;
    this.#logger.warn(`The ${kind} ${enhancerName(enhancer)} cannot handle tool calls: ${why}. ${hint}`);
  }
}

/** The last value of a call's result. A method that observes the signal ends by itself and may return a value. */
function lastOf(value: unknown, { tool, context }: ToolCallInfo): unknown {
  return lastValue(value, tool.observesSignal ? undefined : context);
}

/** A call's method with its validated arguments, and its progress while interceptors run. */
interface Method {
  readonly checked: unknown;
  progress: 'waiting' | 'begun' | 'returned' | 'threw';
  /** What it returned to its interceptors; the last value of an observable. */
  returned?: { readonly value: unknown };
  thrown?: unknown;
}

/** Records in `method` what the work returns or throws. */
async function followed(method: Method, work: () => Promise<unknown>): Promise<unknown> {
  const next = (value: unknown): void => {
    method.returned = { value };
  };
  const error = (thrown: unknown): void => {
    method.progress = 'threw';
    method.thrown = thrown;
  };
  try {
    const value = await work();
    method.progress = 'returned';
    if (isObservable(value)) return value.pipe(tap({ next, error }));
    next(value);
    return value;
  } catch (thrown) {
    error(thrown);
    throw thrown;
  }
}

/** A hint for guards that expect HTTP. It must not suggest to let all tools pass. */
const GUARD_HINT =
  " (a tool call has no response, and no request if the run has none; a guard that is not for tools begins with: if (context.getType<string>() === 'tool') return true;)";

/** An enhancer that was written for HTTP and fails without a response. */
interface Unfit {
  readonly kind: string;
  readonly hint: string;
  readonly tool: string;
  readonly exception: Error;
}

const UNFIT_FILTER = {
  kind: 'exception filter',
  hint: "A tool call has no response; a filter that needs one begins with: if (host.getType<string>() === 'tool') throw exception;",
};

const UNFIT_INTERCEPTOR = {
  kind: 'interceptor',
  hint: "A tool call has no response, and no request if the run has none; an interceptor that needs one begins with: if (context.getType<string>() === 'tool') return next.handle();",
};

interface Filtered {
  /** The answer of a filter; `undefined` if none handled the exception. */
  readonly answer?: unknown;
  /** The exception, or what a filter threw instead. */
  readonly exception: unknown;
}

function executionContext({ at, args }: OpenedCall): ExecutionContext {
  const { declared, handler } = at.target;
  return toolExecutionContext(args, declared.constructor, handler);
}

/** Whether a return value needs no waiting: no promise, no observable, no async iterable. */
function isComplete(returned: unknown): boolean {
  if (!isObject(returned)) return true;
  return !('then' in returned || isAsyncIterable(returned) || isObservable(returned));
}

/** Waits for a method's return value. The values of an async iterable are progress; its return value counts. */
async function returnedValue(returned: unknown, context: ToolContext): Promise<unknown> {
  const value = await returned;
  if (!isAsyncIterable(value)) return value;
  return drain(value, {
    get isStopped() {
      return context.signal.aborted;
    },
    progress: (update) => context.progress(update),
  });
}

/** The answer of an exception filter, as text for the model. */
function filteredText(answer: unknown): string {
  if (ToolResult.is(answer)) return answer.forLLM;
  return typeof answer === 'string' ? answer : JSON.stringify(answer);
}

interface CallerParts {
  readonly enhancers: Enhancers;
  readonly pipeline: CallPipeline;
  readonly requests: RequestContexts;
  readonly running: RunningCalls;
  readonly visibility: ToolVisibility;
}

/** A tool call from the registry, with validated arguments. */
type RequestedCall = Omit<ToolCallInfo, 'request'>;

/** What the guards, the tool's method and its companions share in one call. */
interface PreparedCall {
  readonly target: CallTarget;
  readonly origin: CallOrigin;
  /** Where its objects are injected; absent until one is needed. */
  contextId: ContextId | undefined;
  /** Absent until the guards are asked: companions, which need only the instance, may come first. */
  opened: Awaitable<OpenedCall> | undefined;
  /** The guards have accepted it. */
  isAdmitted: boolean;
}

/**
 * Makes tool calls through Nest: finds the injection context, creates the instance, asks the guards and runs the method
 * with its enhancers. The registry's policy asks the guards first, before an approval is requested. Calls that bypass
 * the policy (of a tool taken out of the registry) are checked here.
 */
export class ToolCaller {
  readonly #parts: CallerParts;
  /** Also by target, because a tool may pass its context to another tool, which has its own guards. */
  readonly #prepared = new WeakMap<ToolContext, Map<CallTarget, PreparedCall>>();

  constructor(parts: CallerParts) {
    this.#parts = parts;
  }

  /** Prepares the enhancers of a target. */
  async prepare(target: CallTarget): Promise<void> {
    await this.#parts.enhancers.injectablesOf(target);
  }

  /** Why the call is refused; `undefined` if it is not. */
  refusal(target: CallTarget, requested: RequestedCall): Awaitable<string | undefined> {
    const prepared = this.#callOf(target, requested.context);
    return prepared.origin.run(() => this.#ask(prepared, requested));
  }

  /** Passes the instance that the tool's method has in a call to `use`, in the context of the call's owner. */
  withInstance(
    target: CallTarget,
    context: ToolContext,
    use: (instance: object) => unknown,
  ): Promise<unknown> {
    const prepared = this.#callOf(target, context);
    return prepared.origin.run(async () => use(await instanceIn(target, this.#contextIdOf(prepared))));
  }

  /** Runs the method. Throws or rejects with the error for the model. */
  perform(target: CallTarget, requested: RequestedCall): unknown {
    const { running, pipeline } = this.#parts;
    return running.call(requested, () => {
      const prepared = this.#callOf(target, requested.context);
      // Permission holds once: a second call with this context asks the guards again.
      this.#prepared.get(requested.context)?.delete(target);
      return prepared.origin.run(() => {
        const asked = prepared.isAdmitted ? undefined : this.#ask(prepared, requested);
        return andThen(asked, (reason) =>
          reason === undefined
            ? andThen(this.#opened(prepared, requested), (opened) =>
                pipeline.perform(opened, requested.arguments),
              )
            : failedResult('ToolRefused', `The tool '${requested.tool.name}' was refused: ${reason}`),
        );
      });
    });
  }

  #ask(prepared: PreparedCall, requested: RequestedCall): Awaitable<string | undefined> {
    const opened = this.#opened(prepared, requested);
    const isAtOnce = !(opened instanceof Promise) && !this.#parts.visibility.isLimited;
    const reason = isAtOnce
      ? this.#parts.pipeline.refusal(opened)
      : this.#askLater(prepared.origin, opened, requested.tool);
    const admit = (answer: string | undefined): string | undefined => {
      prepared.isAdmitted = answer === undefined;
      return answer;
    };
    return andThen(reason, admit);
  }

  async #askLater(
    { request, isForAbsent }: CallOrigin,
    opened: Awaitable<OpenedCall>,
    tool: ToolDefinition,
  ): Promise<string | undefined> {
    const { pipeline, visibility } = this.#parts;
    try {
      const ready = await opened;
      // Without a request, visibility cannot be checked; such a run has only the tools that it was offered before.
      const isVisible = isForAbsent || (await visibility.shows(request, tool));
      return isVisible ? await pipeline.refusal(ready) : 'it is not available';
    } catch (exception) {
      // A provider or an enhancer could not be created, so there is no permission.
      return pipeline.reasonOf(exception, tool.name, 'a dependency of its call could not be created');
    }
  }

  #callOf(target: CallTarget, context: ToolContext): PreparedCall {
    const ofContext = cached(this.#prepared, context, () => new Map<CallTarget, PreparedCall>());
    return cached(ofContext, target, () => {
      const origin = this.#parts.requests.originOf(context);
      return { target, origin, contextId: undefined, opened: undefined, isAdmitted: false };
    });
  }

  #contextIdOf(prepared: PreparedCall): ContextId {
    const { origin, target } = prepared;
    prepared.contextId ??= this.#parts.requests.contextIdOf(origin.request, target.wrapper);
    return prepared.contextId;
  }

  #opened(prepared: PreparedCall, requested: RequestedCall): Awaitable<OpenedCall> {
    prepared.opened ??= this.#open(prepared, requested);
    return prepared.opened;
  }

  /** Synchronous if the provider and all enhancers are singletons. */
  #open(prepared: PreparedCall, { tool, arguments: checked, context }: RequestedCall): Awaitable<OpenedCall> {
    const { enhancers } = this.#parts;
    const { target, origin } = prepared;
    try {
      const at = { target, contextId: this.#contextIdOf(prepared) };
      const call = { tool, arguments: checked, context, request: origin.request };
      // Enhancers for HTTP read the request first; a tool call has no response.
      const args = [call.request, undefined, undefined, call];
      const around = isStatic(target.wrapper) ? enhancers.staticOf(target) : undefined;
      if (around !== undefined) return { at, around, call, args, instance: target.wrapper.instance };
      return this.#make(at, call, args);
    } catch (exception) {
      return Promise.reject(exception);
    }
  }

  async #make(at: TargetInContext, call: ToolCallInfo, args: unknown[]): Promise<OpenedCall> {
    const instance = await instanceIn(at.target, at.contextId);
    const around = await this.#parts.enhancers.around(at);
    return { at, around, call, args, instance };
  }
}

/** Decides with the option `visible` which tools a request sees; only `true` permits it. */
export class ToolVisibility {
  readonly #visible: ToolwrightModuleOptions['visible'];
  readonly #redaction: Redaction;
  readonly #logger = nestLogger();

  constructor({ visible, redact }: Pick<ToolwrightModuleOptions, 'visible' | 'redact'>) {
    this.#visible = visible;
    this.#redaction = createRedaction(redact);
  }

  /** Whether any tool may be hidden. */
  get isLimited(): boolean {
    return this.#visible !== undefined;
  }

  async shows(request: object | undefined, tool: ToolDefinition): Promise<boolean> {
    if (this.#visible === undefined) return true;
    try {
      return (await this.#visible(request as never, tool)) === true;
    } catch (error) {
      const what = 'A tool is hidden because visible threw';
      logFailure(this.#logger, { what, error, at: { tool: tool.name }, redact: this.#redaction });
      return false;
    }
  }

  /** The names of the tools that a request does not see. */
  async hidden(request: object | undefined, tools: ToolRegistry): Promise<readonly string[]> {
    if (this.#visible === undefined) return [];
    const all = tools.tools();
    const shown = await Promise.all(all.map((tool) => this.shows(request, tool)));
    return all.filter((_tool, index) => !shown[index]).map(({ name }) => name);
  }
}

/** The enhancers of a target's calls, in Nest's order: global, class, method. */
interface TargetEnhancers {
  readonly guards: CanActivate[];
  readonly interceptors: NestInterceptor[];
  readonly pipes: PipeTransform[];
}

/**
 * Creates the guards, interceptors, pipes and exception filters of a target with Nest's own creators. If none is
 * request-scoped, they are looked up once, and again after calls such as `useGlobalGuards`.
 */
export class Enhancers {
  readonly #creators: NestEnhancers<TracedFilters>;
  readonly #injectables = new WeakMap<CallTarget, Promise<readonly InstanceWrapper[]>>();
  /** Enhancers that are the same for every call, and the global ones at the time of lookup. */
  readonly #static = new WeakMap<
    CallTarget,
    { readonly enhancers: TargetEnhancers; readonly globals: readonly unknown[] }
  >();

  constructor(modules: ModulesContainer, config: ApplicationConfig) {
    this.#creators = new NestEnhancers(modules, config, TracedFilters);
  }

  /** The cached enhancers of a target, if they are the same for all calls and still valid. */
  staticOf(target: CallTarget): TargetEnhancers | undefined {
    const found = this.#static.get(target);
    if (found === undefined) return undefined;
    // Nest replaces its lists of global enhancers or adds to them.
    const globals = this.#creators.globals().flat();
    const isSame =
      globals.length === found.globals.length &&
      globals.every((enhancer, index) => enhancer === found.globals[index]);
    return isSame ? found.enhancers : undefined;
  }

  /** The enhancers of a call in its injection context. Rejects if injection fails. */
  async around(at: TargetInContext): Promise<TargetEnhancers> {
    const known = this.staticOf(at.target);
    if (known !== undefined) return known;
    const { target, contextId } = at;
    const globals = this.#creators.globals().flat();
    const wrappers = [...this.#creators.globalScoped(), ...(await this.injectablesOf(target))];
    await Promise.all(wrappers.map((wrapper) => this.#creators.load(wrapper, contextId, target.wrapper)));
    const enhancers: TargetEnhancers = {
      guards: this.#creators.guards.create(...placeOf(at)),
      interceptors: this.#creators.interceptors
        .create(...placeOf(at))
        // It is for HTTP handlers, and would slow down every call.
        .filter((interceptor) => !(interceptor instanceof RequestInterceptor))
        .map(tracedInterceptor),
      pipes: this.#creators.pipes.create(...placeOf(at)),
    };
    if (wrappers.every(isStatic)) this.#static.set(target, { enhancers, globals });
    return enhancers;
  }

  /**
   * Adds the enhancer classes of a target to its module. Nest silently skips a class that it did not find at the
   * provider (as for factories and registered tools), and a guard must not be skipped.
   */
  injectablesOf(target: CallTarget): Promise<readonly InstanceWrapper[]> {
    return cached(this.#injectables, target, ({ declared, handler, parameterPipes, module }) => {
      const classes = enhancerClasses([declared.constructor, handler], parameterPipes);
      return Promise.all(classes.map((type) => this.#creators.injectable(module, type)));
    });
  }

  /** Names of the enhancers of these methods and classes, global ones first. */
  namesAround(places: readonly object[]): readonly EnhancerName[] {
    const globals = this.#creators.globals();
    const everywhere = GLOBAL_KINDS.flatMap((kind, index) =>
      (globals[index] ?? []).flatMap((enhancer) => namesOf(enhancer, kind)),
    );
    return [...everywhere, ...enhancersAt(places).flatMap(({ enhancer, kind }) => namesOf(enhancer, kind))];
  }

  /** The pipes of a parameter. */
  pipesOf(pipes: readonly unknown[], { target, contextId }: TargetInContext): PipeTransform[] {
    this.#creators.pipes.setModuleContext(target.module.token);
    return this.#creators.pipes.createConcreteContext(
      [...pipes] as PipeTransform[],
      contextId,
      target.wrapper.id,
    );
  }

  filters(at: TargetInContext): ExternalExceptionsHandler {
    return this.#creators.filters.create(...placeOf(at));
  }
}

/** An enhancer's name and kind for people. */
interface EnhancerName {
  readonly kind: 'guard' | 'interceptor' | 'pipe' | 'filter';
  readonly name: string;
}

/** In the order of Nest's lists of global enhancers. */
const GLOBAL_KINDS = ['guard', 'interceptor', 'pipe', 'guard', 'interceptor', 'pipe', 'filter'] as const;

/** Nest's lists contain classes, instances, and wrappers of both. */
function namesOf(enhancer: unknown, kind: EnhancerName['kind']): readonly EnhancerName[] {
  if (enhancer instanceof RequestInterceptor) return [];
  const { name, metatype } = Object(enhancer) as { readonly name?: unknown; readonly metatype?: unknown };
  if (metatype === RequestInterceptor) return [];
  const own = metatype ?? (typeof enhancer === 'function' ? enhancer : Object(enhancer).constructor);
  const called = typeof own === 'function' ? own.name : name;
  return [{ kind, name: String(called) }];
}

/** Arguments of Nest's creators of enhancers. */
function placeOf({ target, contextId }: TargetInContext) {
  return [target.declared, target.handler, target.module.token, contextId, target.wrapper.id] as const;
}

/** Nest's exception filters, with a record of the filter that threw. Their results are promises. */
class TracedFilters extends ExternalExceptionFilterContext {
  override getFilterInstance(
    ...given: Parameters<ExternalExceptionFilterContext['getFilterInstance']>
  ): ExceptionFilter | null {
    const filter = super.getFilterInstance(...given);
    if (filter === null) return null;
    const answer = async (exception: unknown, host: ArgumentsHost): Promise<unknown> => {
      try {
        return await lastValue(await filter.catch(exception, host));
      } catch (thrown) {
        origins.set(Object(thrown), filter);
        throw thrown;
      }
    };
    // With the filter as prototype, Nest finds the metadata of `@Catch`.
    return Object.create(filter, { catch: { value: answer } });
  }
}

/** The last value of an observable (`undefined` if it is empty), which an abort ends; other values unchanged. */
function lastValue(value: unknown, context?: ToolContext): unknown {
  if (!isObservable(value)) return value;
  if (context === undefined) return lastValueFrom(value, { defaultValue: undefined });
  const stopped = new Observable<never>((subscriber) => {
    const stop = (reason: unknown): void => subscriber.error(reason);
    const { signal } = context;
    return context instanceof CallContext ? context.onStop(stop) : onAbort(signal, () => stop(signal.reason));
  });
  return lastValueFrom(value.pipe(takeUntil(stopped)), { defaultValue: undefined });
}

/** The interceptor is the prototype, so that warnings show its name. */
function tracedInterceptor(interceptor: NestInterceptor): NestInterceptor {
  const trace = (thrown: unknown): never => {
    const error = Object(thrown);
    if (!origins.has(error)) origins.set(error, interceptor);
    throw thrown;
  };
  const intercept = async (execution: ExecutionContext, next: CallHandler): Promise<unknown> => {
    try {
      const values: unknown = await interceptor.intercept(execution, next);
      return isObservable(values) ? values.pipe(catchError(trace)) : values;
    } catch (thrown) {
      return trace(thrown);
    }
  };
  return Object.create(interceptor, { intercept: { value: intercept } });
}

/** The filter, or innermost interceptor, that threw an error. */
const origins = new WeakMap<object, object>();

function enhancerThatThrew(thrown: unknown): object | undefined {
  return origins.get(Object(thrown));
}
