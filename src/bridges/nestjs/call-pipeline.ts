import { ForbiddenException, HttpException, Logger, type Type } from '@nestjs/common';
import { GuardsConsumer } from '@nestjs/core/guards/index.js';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { InterceptorsConsumer } from '@nestjs/core/interceptors/index.js';
import { PipesConsumer } from '@nestjs/core/pipes/index.js';
import type { HandlerValue, TargetInContext } from './call-target.js';
import type { Enhancers, SurroundingEnhancers } from './enhancers.js';
import { exceptionText, withMessages } from './exception-text.js';
import { filteredResult, filteredText } from './filtered-result.js';
import { passesFilters } from './passes-filters.js';
import { lastValue, returnedValue } from './returned-value.js';
import type { ToolCallInfo } from './tool-call.js';

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

  constructor(enhancers: Enhancers) {
    this.#enhancers = enhancers;
  }

  /** Asks the guards. Why the call is refused; `undefined` where they let it pass. */
  async refusal(opened: OpenedCall): Promise<string | undefined> {
    const { target } = opened.at;
    const { guards } = opened.around;
    try {
      const isAdmitted = await this.#guards.tryActivate(
        guards,
        opened.args,
        target.declared,
        target.handler,
        'tool',
      );
      if (!isAdmitted) throw new ForbiddenException('Forbidden resource');
      return undefined;
    } catch (exception) {
      const filtered = await this.#filter(opened, exception);
      if (filtered.isHandled) return filteredText(filtered.value);
      return this.reasonOf(filtered.exception);
    }
  }

  /** An `HttpException` is meant to be told; anything else is something that broke, and no business of the model. */
  reasonOf(exception: unknown): string {
    if (exception instanceof HttpException) return exceptionText(exception);
    this.#logger.error('A tool call was refused, because what decides about it threw', exception);
    return 'the guards could not decide';
  }

  /** The method with everything around it: what it returns, or what filters made of what was thrown. */
  async perform(opened: OpenedCall, checked: unknown): Promise<unknown> {
    const { at, around, args, call, instance } = opened;
    const { target } = at;
    const handle = async (): Promise<unknown> => {
      const values = target.layOut(checked, call.context, executionContext(opened));
      const piped = await this.#pipe(opened, values);
      return returnedValue(target.invoke(instance, piped), call.context);
    };
    try {
      const returned = await this.#interceptors.intercept(
        around.interceptors,
        args,
        target.declared,
        target.handler,
        handle,
        'tool',
      );
      // A method that takes the signal ends by itself, and may have something to say about it.
      return await lastValue(returned, call.tool.observesSignal ? undefined : call.context);
    } catch (exception) {
      if (passesFilters(exception)) throw exception;
      const filtered = await this.#filter(opened, exception);
      if (!filtered.isHandled) throw withMessages(filtered.exception);
      return filteredResult(filtered.value, exception);
    }
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
      const made: unknown = filters.invokeCustomFilters(exception, executionContext(opened));
      const value = await lastValue(await made);
      return value === undefined || value === null
        ? { isHandled: false, exception }
        : { isHandled: true, value };
    } catch (thrown) {
      // A filter written for HTTP finds no response to write to; that must not hide what happened.
      if (!(thrown instanceof TypeError)) return { isHandled: false, exception: thrown };
      this.#logger.warn(`An exception filter cannot deal with tool calls: ${thrown.message}`);
      return { isHandled: false, exception };
    }
  }
}

type Filtered =
  | { readonly isHandled: true; readonly value: unknown }
  | { readonly isHandled: false; readonly exception: unknown };

function executionContext({ at, args }: OpenedCall): ExecutionContextHost {
  const { declared, handler } = at.target;
  const execution = new ExecutionContextHost(args, declared.constructor as Type, handler);
  execution.setType('tool');
  return execution;
}
