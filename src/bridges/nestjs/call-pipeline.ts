import { type CanActivate, ForbiddenException, Logger, type Type } from '@nestjs/common';
import { GuardsConsumer } from '@nestjs/core/guards/index.js';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { InterceptorsConsumer } from '@nestjs/core/interceptors/index.js';
import { PipesConsumer } from '@nestjs/core/pipes/index.js';
import type { DescribeError } from '../../invocation/invocation.js';
import { loggedFields } from '../../invocation/log-field.js';
import type { Redaction } from '../../invocation/redact.js';
import type { HandlerValue, TargetInContext } from './call-target.js';
import { enhancerName } from './enhancer-name.js';
import type { Enhancers, SurroundingEnhancers } from './enhancers.js';
import { failedAround, filteredResult, filteredText } from './filtered-result.js';
import { LogEntry } from './log-entry.js';
import { mappedValue, ReturnedValue } from './mapped-value.js';
import { passesFilters } from './passes-filters.js';
import { publicText } from './public-text.js';
import { lastValue, returnedValue } from './returned-value.js';
import type { ToolCallInfo } from './tool-call.js';
import { FilterFailure } from './watched-filters.js';
import { interceptorOf } from './watched-interceptors.js';

/** A call whose injection context and instance are there. */
export interface OpenedCall {
  readonly at: TargetInContext;
  readonly around: SurroundingEnhancers;
  readonly call: ToolCallInfo;
  /** What the enhancers find in the `ExecutionContext`. */
  readonly args: unknown[];
  readonly instance: object;
}

/**
 * Guards, interceptors, pipes and exception filters around a call, by Nest's own consumers and in the order of
 * a request. What they refuse is a reason or a result, never an exception.
 */
export class CallPipeline {
  readonly #enhancers: Enhancers;
  readonly #guards = new GuardsConsumer();
  readonly #interceptors = new InterceptorsConsumer();
  readonly #pipes = new PipesConsumer();
  readonly #logger = new Logger('Toolwright');
  /** Filters and interceptors that were warned of. */
  readonly #unfit = new WeakSet<object>();
  readonly #describeError: DescribeError;
  readonly #redaction: Redaction;

  constructor(enhancers: Enhancers, describeError: DescribeError, redaction: Redaction) {
    this.#enhancers = enhancers;
    this.#describeError = describeError;
    this.#redaction = redaction;
  }

  /** Asks the guards. Why the call is refused; `undefined` where they let it pass. */
  async refusal(opened: OpenedCall): Promise<string | undefined> {
    const objection = await this.#objection(opened);
    if (objection === undefined) return undefined;
    const filtered = await this.#filter(opened, objection.exception);
    if (filtered.isHandled) return filteredText(filtered.value);
    const { exception } = filtered;
    const why =
      exception === objection.exception
        ? `the guard ${enhancerName(objection.guard)} threw${exception instanceof TypeError ? GUARD_CURE : ''}`
        : 'an exception filter threw';
    return this.reasonOf(exception, { tool: opened.call.tool.name, why });
  }

  /** Some exceptions are meant to be told; anything else is something that broke, and goes to the log. */
  reasonOf(exception: unknown, { tool, why }: { readonly tool: string; readonly why: string }): string {
    const meant = publicText(exception);
    if (meant !== undefined) return meant;
    const told = this.#describeError(exception, tool);
    const fields = loggedFields({ told, error: exception }, this.#redaction);
    this.#logger.error(new LogEntry(`The tool '${tool}' was refused: ${why}`, fields));
    return told;
  }

  /** The method with everything around it: what it returns, or what filters made of what was thrown. */
  async perform(opened: OpenedCall, checked: unknown): Promise<unknown> {
    const { at, around, args, call, instance } = opened;
    const { interceptors } = around;
    const { target } = at;
    const returned = new ReturnedValue();
    const handle = async (): Promise<unknown> => {
      const values = target.layOut(checked, call.context, executionContext(opened));
      const piped = await this.#pipe(opened, values);
      returned.begin();
      return returnedValue(target.invoke(instance, piped), call.context);
    };
    try {
      if (interceptors.length === 0) return await lastOf(await handle(), call);
      const intercepted = await this.#interceptors.intercept(
        interceptors,
        args,
        target.declared,
        target.handler,
        () => returned.follow(handle),
        'tool',
      );
      return mappedValue(await lastOf(intercepted, call), { returned, tool: call.tool, interceptors });
    } catch (exception) {
      if (passesFilters(exception, call.context)) throw exception;
      return this.#failure(opened, { exception, returned });
    }
  }

  /** What is told of an exception that is neither a question nor the end of the call; throws what nobody worded. */
  async #failure(opened: OpenedCall, { exception, returned }: Failure): Promise<unknown> {
    const { call, around } = opened;
    const { name } = call.tool;
    const isAround = around.interceptors.length > 0 && !returned.hasThrown(exception);
    if (isAround && exception instanceof TypeError) {
      const interceptor = interceptorOf(exception);
      if (interceptor !== undefined)
        this.#warnOnce(interceptor, { ...UNFIT_INTERCEPTOR, tool: name, exception });
      // That an interceptor finds no response must not hide why the method failed.
      if (returned.progress === 'threw')
        return this.#failure(opened, { exception: returned.thrown, returned });
    }
    const filtered = await this.#filter(opened, exception);
    const worded = filtered.isHandled ? filteredResult(filtered.value, exception) : undefined;
    const { progress } = returned;
    const isLost = isAround && (progress === 'returned' || progress === 'begun');
    if (worded !== undefined && !(isLost && worded.isError)) return worded;
    const thrown = filtered.isHandled ? exception : filtered.exception;
    if (!isLost) throw thrown;
    const text = worded?.forLLM ?? this.#describeError(thrown, name);
    return failedAround({ tool: name, progress, text, exception });
  }

  /** One by one, as Nest's own consumer asks them, but so that the one which objects is known. */
  async #objection(opened: OpenedCall): Promise<Objection | undefined> {
    const { guards } = opened.around;
    if (guards.length === 0) return undefined;
    const execution = executionContext(opened);
    for (const guard of guards) {
      try {
        const said = guard.canActivate(execution);
        const isAdmitted = typeof said === 'boolean' ? said : await this.#guards.pickResult(said);
        if (!isAdmitted) return { guard, exception: new ForbiddenException('Forbidden resource') };
      } catch (exception) {
        return { guard, exception };
      }
    }
    return undefined;
  }

  async #pipe({ at, around }: OpenedCall, values: readonly HandlerValue[]): Promise<readonly unknown[]> {
    return Promise.all(
      values.map(({ value, metadata, pipes: own = [] }) => {
        if (metadata === undefined || around.pipes.length + own.length === 0) return value;
        return this.#pipes.applyPipes(value, metadata, [
          ...around.pipes,
          ...this.#enhancers.pipesOf(own, at),
        ]);
      }),
    );
  }

  async #filter(opened: OpenedCall, exception: unknown): Promise<Filtered> {
    try {
      const filters = this.#enhancers.filters(opened.at);
      const value: unknown = await filters.invokeCustomFilters(exception, executionContext(opened));
      return value === undefined || value === null
        ? { isHandled: false, exception }
        : { isHandled: true, value };
    } catch (failure) {
      if (!(failure instanceof FilterFailure)) return { isHandled: false, exception: failure };
      const { filter, thrown } = failure;
      // A filter written for HTTP finds no response to write to; that must not hide what happened.
      if (!(thrown instanceof TypeError)) return { isHandled: false, exception: thrown };
      this.#warnOnce(filter, { ...UNFIT_FILTER, tool: opened.call.tool.name, exception: thrown });
      return { isHandled: false, exception };
    }
  }

  #warnOnce(enhancer: object, { kind, cure, tool, exception }: Unfit): void {
    const key = enhancer.constructor === Object ? enhancer : enhancer.constructor;
    if (this.#unfit.has(key)) return;
    this.#unfit.add(key);
    const why = `${exception.message} (at the tool '${tool}')`;
    this.#logger.warn(`The ${kind} ${enhancerName(enhancer)} cannot deal with tool calls: ${why}. ${cure}`);
  }
}

/** The last value of what a call returned. A method that takes the signal ends by itself, and may have something to say about it. */
function lastOf(value: unknown, { tool, context }: ToolCallInfo): Promise<unknown> {
  return lastValue(value, tool.observesSignal ? undefined : context);
}

/** Something that was thrown, and how far the method had come. */
interface Failure {
  readonly exception: unknown;
  readonly returned: ReturnedValue;
}

/** A guard that did not let a call pass, and why. */
interface Objection {
  readonly guard: CanActivate;
  readonly exception: unknown;
}

/** What is probably wrong where a guard finds nothing to read from. To let all tools pass must not be the first idea. */
const GUARD_CURE =
  " (a tool call has no response, and no request where the run was given none; a guard that is not about tools begins with: if (context.getType<string>() === 'tool') return true;)";

/** An enhancer that was written for HTTP and finds no response to write to. */
interface Unfit {
  readonly kind: string;
  readonly cure: string;
  readonly tool: string;
  readonly exception: Error;
}

const UNFIT_FILTER = {
  kind: 'exception filter',
  cure: "A tool call has no response; a filter that needs one begins with: if (host.getType<string>() === 'tool') throw exception;",
};

const UNFIT_INTERCEPTOR = {
  kind: 'interceptor',
  cure: "A tool call has no response, and no request where the run was given none; an interceptor that needs one begins with: if (context.getType<string>() === 'tool') return next.handle();",
};

type Filtered =
  | { readonly isHandled: true; readonly value: unknown }
  | { readonly isHandled: false; readonly exception: unknown };

function executionContext({ at, args }: OpenedCall): ExecutionContextHost {
  const { declared, handler } = at.target;
  const execution = new ExecutionContextHost(args, declared.constructor as Type, handler);
  execution.setType('tool');
  return execution;
}
