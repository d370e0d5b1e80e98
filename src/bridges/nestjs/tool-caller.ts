import { type ContextId, ModuleRef } from '@nestjs/core';
import type { ToolContext } from '../../contract/tool-context.js';
import { failedResult } from '../../invocation/failed-result.js';
import type { CallPipeline, OpenedCall } from './call-pipeline.js';
import type { CallTarget } from './call-target.js';
import type { Enhancers } from './enhancers.js';
import type { RequestContexts } from './request-contexts.js';
import type { RunningCalls } from './running-calls.js';
import { handlerArguments, type ToolCallInfo } from './tool-call.js';

/** What the calls of an application are made with. */
export interface CallerParts {
  readonly enhancers: Enhancers;
  readonly pipeline: CallPipeline;
  readonly requests: RequestContexts;
  readonly running: RunningCalls;
}

/** A tool call as the registry hands it over; the arguments are checked. */
export type RequestedCall = Omit<ToolCallInfo, 'request'>;

interface KnownCall {
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
    return this.#ask(this.#know(target, requested), requested);
  }

  /** Runs the method. Rejects with what the model is to be told of. */
  perform(target: CallTarget, requested: RequestedCall): Promise<unknown> {
    const { context, tool } = requested;
    return this.#parts.running.call(requested, async () => {
      const known = this.#know(target, requested);
      // What was allowed was allowed once: the next time with this context, the guards are asked again.
      this.#known.get(target)?.delete(context);
      const reason = known.isAdmitted ? undefined : await this.#ask(known, requested);
      if (reason !== undefined)
        return failedResult('ToolRefused', `The tool '${tool.name}' was refused: ${reason}`);
      return this.#parts.pipeline.perform(await known.opened, requested.arguments);
    });
  }

  async #ask(known: KnownCall, { tool: { name: tool } }: RequestedCall): Promise<string | undefined> {
    const { pipeline } = this.#parts;
    try {
      const reason = await pipeline.refusal(await known.opened);
      known.isAdmitted = reason === undefined;
      return reason;
    } catch (exception) {
      // A provider or an enhancer could not be made, so that nobody has said yes.
      return pipeline.reasonOf(exception, { tool, why: 'what its call needs could not be made' });
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
      known = { opened: this.#prepare(target, requested), isAdmitted: false };
      ofTarget.set(requested.context, known);
    }
    return known;
  }

  async #prepare(target: CallTarget, requested: RequestedCall): Promise<OpenedCall> {
    const { enhancers, requests } = this.#parts;
    const request = requests.requestOf(requested.context);
    const at = { target, contextId: requests.contextIdOf(request, target.wrapper) };
    const instance = await instanceOf(target, at.contextId);
    const around = await enhancers.around(at);
    const call = { ...requested, request };
    return { at, around, call, args: handlerArguments(call), instance };
  }
}

/** The instance that serves a call: the one there is, or one made in the call's injection context. */
async function instanceOf({ wrapper, module }: CallTarget, contextId: ContextId): Promise<object> {
  if (wrapper.isDependencyTreeStatic() && !wrapper.isTransient) return wrapper.instance;
  const modules = module.getProviderByKey<ModuleRef>(ModuleRef).instance;
  return modules.resolve<object>(wrapper.token as symbol, contextId, { strict: true });
}
