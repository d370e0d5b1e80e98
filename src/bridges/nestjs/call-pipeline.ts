import { type CanActivate, ForbiddenException, HttpException, Logger, type Type } from '@nestjs/common';
import { GuardsConsumer } from '@nestjs/core/guards/index.js';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { InterceptorsConsumer } from '@nestjs/core/interceptors/index.js';
import { PipesConsumer } from '@nestjs/core/pipes/index.js';
import type { HandlerValue, TargetInContext } from './call-target.js';
import { enhancerName } from './enhancer-name.js';
import type { Enhancers, SurroundingEnhancers } from './enhancers.js';
import { exceptionText, withMessages } from './exception-text.js';
import { filteredResult, filteredText } from './filtered-result.js';
import { LogEntry } from './log-entry.js';
import { mappedValue, ReturnedValue } from './mapped-value.js';
import { passesFilters } from './passes-filters.js';
import { lastValue, returnedValue } from './returned-value.js';
import type { ToolCallInfo } from './tool-call.js';
import { FilterFailure } from './watched-filters.js';

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
  /** Filters that were warned of. */
  readonly #unfit = new WeakSet<object>();

  constructor(enhancers: Enhancers) {
    this.#enhancers = enhancers;
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

  /** An `HttpException` is meant to be told; anything else is something that broke, and no business of the model. */
  reasonOf(exception: unknown, { tool, why }: { readonly tool: string; readonly why: string }): string {
    if (exception instanceof HttpException) return exceptionText(exception);
    this.#logger.error(new LogEntry(`The tool '${tool}' was refused: ${why}`, { error: exception }));
    return 'the guards could not decide';
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
      const value = await returnedValue(target.invoke(instance, piped), call.context);
      return interceptors.length === 0 ? value : returned.pass(value);
    };
    try {
      const intercepted = await this.#interceptors.intercept(
        interceptors,
        args,
        target.declared,
        target.handler,
        handle,
        'tool',
      );
      // A method that takes the signal ends by itself, and may have something to say about it.
      const value = await lastValue(intercepted, call.tool.observesSignal ? undefined : call.context);
      return interceptors.length === 0
        ? value
        : mappedValue(value, { returned, tool: call.tool, interceptors });
    } catch (exception) {
      if (passesFilters(exception, call.context)) throw exception;
      const filtered = await this.#filter(opened, exception);
      if (!filtered.isHandled) throw withMessages(filtered.exception);
      return filteredResult(filtered.value, exception);
    }
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
      this.#warnOnce(filter, `${thrown.message} (at the tool '${opened.call.tool.name}')`);
      return { isHandled: false, exception };
    }
  }

  #warnOnce(filter: object, why: string): void {
    const key = filter.constructor === Object ? filter : filter.constructor;
    if (this.#unfit.has(key)) return;
    this.#unfit.add(key);
    this.#logger.warn(
      `The exception filter ${enhancerName(filter)} cannot deal with tool calls: ${why}. ${FILTER_CURE}`,
    );
  }
}

/** A guard that did not let a call pass, and why. */
interface Objection {
  readonly guard: CanActivate;
  readonly exception: unknown;
}

/** What is probably wrong where a guard finds nothing to read from. To let all tools pass must not be the first idea. */
const GUARD_CURE =
  " (a tool call has no response, and no request where the run was given none; a guard that is not about tools begins with: if (context.getType<string>() === 'tool') return true;)";

const FILTER_CURE =
  "A tool call has no response; a filter that needs one begins with: if (host.getType<string>() === 'tool') throw exception;";

type Filtered =
  | { readonly isHandled: true; readonly value: unknown }
  | { readonly isHandled: false; readonly exception: unknown };

function executionContext({ at, args }: OpenedCall): ExecutionContextHost {
  const { declared, handler } = at.target;
  const execution = new ExecutionContextHost(args, declared.constructor as Type, handler);
  execution.setType('tool');
  return execution;
}
