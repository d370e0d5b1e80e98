import type { ClassType } from '../../contract/class-type.js';
import type { InstanceResolver } from '../../contract/instance-resolver.js';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import type { PolicyDecision, PolicyRequest, ToolPolicy } from '../../contract/tool-policy.js';
import { boundMethodOf, keepBoundMethod } from '../../discovery/bound-method.js';
import { freezeTool } from '../../discovery/freeze-tool.js';
import { ToolDeclarationError, warnAuthor } from '../../errors/author-fault.js';
import { lineage } from '../../metadata/class-record.js';
import { ToolRegistry } from '../../registry/tool-registry.js';
import type { ToolRegistryOptions } from '../../registry/tool-registry-options.js';
import type { RegisteredTool } from '../../registry/tool-table.js';
import { ApplicationToolTable } from './application-tool-table.js';
import type { CallTarget } from './call-target.js';
import { providerTarget, type ToolHost } from './provider-target.js';
import { registeredTarget } from './registered-tools.js';
import type { ToolCaller } from './tool-caller.js';
import type { FoundHandler, ToolFinder } from './tool-finder.js';
import { withExecute } from './with-execute.js';

/** What the registry of an application is made from. */
export interface ApplicationToolsParts {
  readonly caller: ToolCaller;
  readonly finder: ToolFinder;
  /** Where tools without a class are called. */
  readonly host: () => ToolHost;
  readonly container: InstanceResolver;
  readonly options: ToolRegistryOptions;
  /** Generated descriptions that no longer fit are mistakes, not warnings. */
  readonly isStrict: boolean;
}

/** Of classes in one warning. */
const MOST_NAMES = 5;

/** The registry of an application: every tool in it is called through Nest's pipeline. */
export class ApplicationTools {
  readonly registry: ToolRegistry;
  readonly #parts: ApplicationToolsParts;
  readonly #policy: ToolPolicy | undefined;
  /** What a tool of the registry comes down to. */
  readonly #targets = new WeakMap<ToolDefinition, CallTarget>();
  /** The method that declares a tool, of those that providers have. */
  readonly #declared = new WeakMap<ToolDefinition, string>();
  /** What stands in the registry for a tool that was registered. */
  readonly #adopted = new WeakMap<ToolDefinition, ToolDefinition>();
  /** Classes of tools that `discoverTools` made and that were registered, and their bases. */
  readonly #bound = new WeakSet<ClassType>();
  #isComplete = false;

  constructor(parts: ApplicationToolsParts) {
    this.#parts = parts;
    this.#policy = parts.options.policy;
    this.registry = new ToolRegistry(
      { ...parts.options, policy: (request) => this.#decide(request) },
      new ApplicationToolTable({
        adopt: (tool) => this.#adopt(tool),
        onReplace: (before, now) => this.#warnOfReplaced(before, now),
      }),
    );
  }

  /**
   * Registers what the application's providers declare, and what is given.
   *
   * @throws ToolDeclarationError with every mistake of every provider; then nothing is registered.
   */
  discover(isEverythingMade: boolean, given: readonly RegisteredTool[] = []): void {
    const { finder, isStrict, options } = this.#parts;
    const givenFaults = finder.check(given, 'ToolwrightModule.forRoot');
    const found = finder.find(isEverythingMade);
    const faults = [...givenFaults, ...(isStrict ? found.misfits : []), ...found.faults];
    if (faults.length > 0) throw new ToolDeclarationError(faults);
    for (const warning of [...(isStrict ? [] : found.misfits), ...found.warnings])
      warnAuthor(warning, options.logger);
    this.registry.register(...given, ...found.given, ...found.handlers.map((handler) => this.#bind(handler)));
  }

  /** Registers what has come since, and makes the enhancers of every tool known, so that no call waits for them. */
  async complete(): Promise<void> {
    this.discover(true);
    this.#warnOfUnprovided();
    const targets = this.registry.tools().flatMap((tool) => this.#targets.get(tool) ?? []);
    await Promise.all(targets.map((target) => this.#parts.caller.meet(target)));
  }

  /** Once: modules that are loaded lazily come later. */
  #warnOfUnprovided(): void {
    if (this.#isComplete) return;
    this.#isComplete = true;
    const classes = this.#parts.finder.unprovided().filter((declaring) => !this.#bound.has(declaring));
    const all = [...new Set(classes.map(({ name }) => name))];
    const names = all.slice(0, MOST_NAMES);
    if (names.length === 0) return;
    const others = all.length > names.length ? ` and ${all.length - names.length} more` : '';
    const fault = {
      where: `${names.join(', ')}${others}`,
      problem:
        'loaded and with @Tool methods, but no module provides them, so that the model is not offered their tools',
      fix: `providers: [${names[0]}] in a module, or ToolwrightModule.forFeature`,
    };
    warnAuthor(fault, this.#parts.options.logger);
  }

  /** Whoever registers a tool by hand may not know that a provider has one of that name. */
  #warnOfReplaced(before: ToolDefinition, now: ToolDefinition): void {
    const declared = this.#declared.get(before);
    if (declared === undefined || this.#declared.has(now)) return;
    const fault = {
      where: `register("${now.name}")`,
      problem: `it replaces the tool of ${declared}, a provider of the application`,
      fix: `another name, or registry.unregister("${now.name}") before`,
    };
    warnAuthor(fault, this.#parts.options.logger);
  }

  #bind(found: FoundHandler): ToolDefinition {
    const { options, name, toolset, parameters, output, isOutputInferred, hydrate, injected } = found.planned;
    const target = providerTarget(found, found.host);
    const tool: ToolDefinition = freezeTool(options, {
      name,
      toolset,
      parameters,
      output,
      isOutputInferred,
      hydrate,
      observesSignal: injected.has('signal') || undefined,
      container: this.#parts.container,
      execute: (args, context) => this.#parts.caller.perform(target, { tool, arguments: args, context }),
    });
    this.#targets.set(tool, target);
    this.#declared.set(tool, `${found.planned.class.name}.${String(found.planned.key)}`);
    return keepBoundMethod(tool, found.planned);
  }

  #adopt(tool: ToolDefinition): ToolDefinition {
    if (this.#targets.has(tool)) return tool;
    const known = this.#adopted.get(tool);
    if (known !== undefined) return known;
    const bound = boundMethodOf(tool)?.class;
    for (const one of bound ? lineage(bound) : []) this.#bound.add(one);
    const target = registeredTarget(tool, this.#parts.host());
    const adopted = withExecute(tool, (args, context) =>
      this.#parts.caller.perform(target, { tool: adopted, arguments: args, context }),
    );
    this.#adopted.set(tool, adopted);
    this.#targets.set(adopted, target);
    return adopted;
  }

  /** Guards come before the application's own policy. */
  async #decide(request: PolicyRequest): Promise<PolicyDecision> {
    const target = this.#targets.get(request.tool);
    if (target === undefined) return { allow: false, reason: 'it is not a tool of this application' };
    const reason = await this.#parts.caller.refusal(target, request);
    if (reason !== undefined) return { allow: false, reason };
    return this.#policy ? this.#policy(request) : true;
  }
}
