import { Logger } from '@nestjs/common';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import { loggedFields } from '../../run/call/log.js';
import { createRedaction, type Redaction } from '../../run/call/redact.js';
import { failedResult } from '../../run/call/result-text.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { type RunningCalls, ToolCallInfo } from './calls.js';
import type { Enhancers } from './enhancers.js';
import type { CallTarget, TargetInContext } from './handlers.js';
import { instanceIn, isStatic } from './nest-internals.js';
import type { ToolwrightModuleOptions } from './options.js';
import { type Awaitable, type CallPipeline, LogEntry, type OpenedCall } from './pipeline.js';
import type { CallOrigin, RequestContexts } from './requests.js';

interface CallerParts {
  readonly enhancers: Enhancers;
  readonly pipeline: CallPipeline;
  readonly requests: RequestContexts;
  readonly running: RunningCalls;
  readonly visibility: ToolVisibility;
}

/** A tool call from the registry, with validated arguments. */
type RequestedCall = Omit<ToolCallInfo, 'request'>;

interface PreparedCall {
  readonly origin: CallOrigin;
  readonly opened: OpenedCall | Promise<OpenedCall>;
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
    const prepared = this.#callOf(target, requested);
    return prepared.origin.run(() => this.#ask(prepared, requested));
  }

  /** Runs the method. Throws or rejects with the error for the model. */
  perform(target: CallTarget, requested: RequestedCall): unknown {
    return this.#parts.running.call(requested, () => {
      const prepared = this.#callOf(target, requested);
      // Permission holds once: a second call with this context asks the guards again.
      this.#prepared.get(requested.context)?.delete(target);
      return prepared.origin.run(() => {
        const { opened } = prepared;
        const reason = prepared.isAdmitted ? undefined : this.#ask(prepared, requested);
        if (reason === undefined && !(opened instanceof Promise))
          return this.#parts.pipeline.perform(opened, requested.arguments);
        return this.#performLater(prepared, requested, reason);
      });
    });
  }

  async #performLater(
    { opened }: PreparedCall,
    { tool, arguments: checked }: RequestedCall,
    asked: Awaitable<string | undefined>,
  ): Promise<unknown> {
    const reason = await asked;
    if (reason !== undefined)
      return failedResult('ToolRefused', `The tool '${tool.name}' was refused: ${reason}`);
    return this.#parts.pipeline.perform(await opened, checked);
  }

  #ask(prepared: PreparedCall, { tool }: RequestedCall): Awaitable<string | undefined> {
    const { opened } = prepared;
    const isAtOnce = !(opened instanceof Promise) && !this.#parts.visibility.isLimited;
    const reason = isAtOnce ? this.#parts.pipeline.refusal(opened) : this.#askLater(prepared, tool);
    const admit = (answer: string | undefined): string | undefined => {
      prepared.isAdmitted = answer === undefined;
      return answer;
    };
    return reason instanceof Promise ? reason.then(admit) : admit(reason);
  }

  async #askLater({ origin, opened }: PreparedCall, tool: ToolDefinition): Promise<string | undefined> {
    const { pipeline, visibility } = this.#parts;
    const { request, isForAbsent } = origin;
    try {
      const ready = await opened;
      // Without a request, visibility cannot be checked; such a run has only the tools that it was offered before.
      const isVisible = isForAbsent || !visibility.isLimited || (await visibility.shows(request, tool));
      return isVisible ? await pipeline.refusal(ready) : 'it is not available';
    } catch (exception) {
      // A provider or an enhancer could not be created, so there is no permission.
      return pipeline.reasonOf(exception, { tool: tool.name, why: 'what its call needs could not be made' });
    }
  }

  #callOf(target: CallTarget, requested: RequestedCall): PreparedCall {
    const { tool, arguments: checked, context } = requested;
    const ofContext = this.#prepared.get(context) ?? new Map<CallTarget, PreparedCall>();
    this.#prepared.set(context, ofContext);
    const known = ofContext.get(target);
    if (known !== undefined) return known;
    const origin = this.#parts.requests.originOf(context);
    const call = { tool, arguments: checked, context, request: origin.request };
    const opened = origin.run(() => this.#prepare(target, call));
    const prepared = { origin, opened, isAdmitted: false };
    ofContext.set(target, prepared);
    return prepared;
  }

  /** Synchronous if the provider and all enhancers are singletons. */
  #prepare(target: CallTarget, call: ToolCallInfo): OpenedCall | Promise<OpenedCall> {
    const { enhancers, requests } = this.#parts;
    try {
      const at = { target, contextId: requests.contextIdOf(call.request, target.wrapper) };
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
  readonly #logger = new Logger('Toolwright');

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
      const fields = loggedFields({ error }, this.#redaction);
      this.#logger.error(new LogEntry(`The tool '${tool.name}' is hidden: visible threw`, fields));
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
