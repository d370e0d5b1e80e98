import { type ContextId, ModuleRef } from '@nestjs/core';
import type { ToolContext } from '../../contract/tool-context.js';
import { failedResult } from '../../invocation/failed-result.js';
import type { CallPipeline, OpenedCall } from './call-pipeline.js';
import type { CallTarget } from './call-target.js';
import type { Enhancers } from './enhancers.js';
import type { CallSurroundings, RequestContexts } from './request-contexts.js';
import type { RunningCalls } from './running-calls.js';
import { handlerArguments, type ToolCallInfo } from './tool-call.js';
import type { ToolVisibility } from './tool-visibility.js';

/** What the calls of an application are made with. */
export interface CallerParts {
  readonly enhancers: Enhancers;
  readonly pipeline: CallPipeline;
  readonly requests: RequestContexts;
  readonly running: RunningCalls;
  readonly visibility: ToolVisibility;
}

/** A tool call as the registry hands it over; the arguments are checked. */
export type RequestedCall = Omit<ToolCallInfo, 'request'>;

interface KnownCall {
  readonly surroundings: CallSurroundings;
  readonly opened: Promise<OpenedCall>;
  /** The guards have let it pass. */
  isAdmitted: boolean;
}

/**
 * Makes tool calls in Nest's way: finds the injection context, makes the instance, asks the guards and runs
 * the method with all that stands around it. Guards are asked first by the registry's policy, before anybody
 * is asked for an approval; a call that comes around that policy (a tool taken out of the registry) is asked
 * about here.
 */
export class ToolCaller {
  readonly #parts: CallerParts;
  /** By target too: a tool may hand its context on to another tool, which has guards of its own. */
  readonly #known = new WeakMap<CallTarget, WeakMap<ToolContext, KnownCall>>();

  constructor(parts: CallerParts) {
    this.#parts = parts;
  }

  /** Makes known what stands around the calls of a target. */
  async meet(target: CallTarget): Promise<void> {
    await this.#parts.enhancers.known(target);
  }

  /** Why the call may not run; `undefined` where it may. */
  refusal(target: CallTarget, requested: RequestedCall): Promise<string | undefined> {
    const known = this.#know(target, requested);
    return known.surroundings.run(() => this.#ask(known, requested));
  }

  /** Runs the method. Rejects with what the model is to be told of. */
  perform(target: CallTarget, requested: RequestedCall): Promise<unknown> {
    return this.#parts.running.call(requested, () => {
      const known = this.#know(target, requested);
      // What was allowed was allowed once: the next time with this context, the guards are asked again.
      this.#known.get(target)?.delete(requested.context);
      return known.surroundings.run(() => this.#perform(known, requested));
    });
  }

  async #perform(known: KnownCall, requested: RequestedCall): Promise<unknown> {
    const reason = known.isAdmitted ? undefined : await this.#ask(known, requested);
    if (reason !== undefined)
      return failedResult('ToolRefused', `The tool '${requested.tool.name}' was refused: ${reason}`);
    return this.#parts.pipeline.perform(await known.opened, requested.arguments);
  }

  async #ask(known: KnownCall, { tool }: RequestedCall): Promise<string | undefined> {
    const { pipeline, visibility } = this.#parts;
    const { request, isForAbsent } = known.surroundings;
    try {
      const opened = await known.opened;
      // Without a request nobody can be asked; such a run has what it was offered before, and no more.
      const isVisible = isForAbsent || !visibility.isLimited || (await visibility.shows(request, tool));
      const reason = isVisible ? await pipeline.refusal(opened) : 'it is not available';
      known.isAdmitted = reason === undefined;
      return reason;
    } catch (exception) {
      // A provider or an enhancer could not be made, so that nobody has said yes.
      return pipeline.reasonOf(exception, { tool: tool.name, why: 'what its call needs could not be made' });
    }
  }

  #know(target: CallTarget, requested: RequestedCall): KnownCall {
    let ofTarget = this.#known.get(target);
    if (ofTarget === undefined) {
      ofTarget = new WeakMap();
      this.#known.set(target, ofTarget);
    }
    let known = ofTarget.get(requested.context);
    if (known === undefined) {
      const surroundings = this.#parts.requests.surroundingsOf(requested.context);
      const { request } = surroundings;
      const opened = surroundings.run(() => this.#prepare(target, { ...requested, request }));
      known = { surroundings, opened, isAdmitted: false };
      ofTarget.set(requested.context, known);
    }
    return known;
  }

  async #prepare(target: CallTarget, call: ToolCallInfo): Promise<OpenedCall> {
    const { enhancers, requests } = this.#parts;
    const at = { target, contextId: requests.contextIdOf(call.request, target.wrapper) };
    const instance = await instanceOf(target, at.contextId);
    const around = await enhancers.around(at);
    return { at, around, call, args: handlerArguments(call), instance };
  }
}

/** The instance that serves a call: the one there is, or one made in the call's injection context. */
async function instanceOf({ wrapper, module }: CallTarget, contextId: ContextId): Promise<object> {
  if (wrapper.isDependencyTreeStatic() && !wrapper.isTransient) return wrapper.instance;
  const modules = module.getProviderByKey<ModuleRef>(ModuleRef).instance;
  return modules.resolve<object>(wrapper.token as symbol, contextId, { strict: true });
}
