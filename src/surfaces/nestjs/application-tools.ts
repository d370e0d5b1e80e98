import type { DiscoveryService, ModuleRef, ModulesContainer } from '@nestjs/core';
import type { PolicyDecision, PolicyRequest, ToolPolicy } from '../../core/contract/call.js';
import type { ClassType } from '../../core/contract/declaration.js';
import type { InjectionToken, InstanceResolver } from '../../core/contract/ports.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { type AuthorFault, ToolDeclarationError, warnAuthor } from '../../core/errors/author-fault.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { lineage, loadedToolClasses, toolMethods } from '../../core/metadata/class-record.js';
import type { ToolEntry } from '../../run/call/plan.js';
import type { TaskQueue } from '../../run/call/task-queue.js';
import {
  REGISTRY_RULES,
  type RegisteredTool,
  readTool,
  SERVED_KINDS,
  ToolRegistry,
  type ToolRegistryOptions,
  WritableToolTable,
} from '../../run/call/tool-registry.js';
import { boundMethodOf, toolOfMethod } from '../../tools/discovery/discover-tools.js';
import { RequestContainer } from './calls.js';
import {
  type CallTarget,
  type PlannedHandler,
  planProvider,
  providerTarget,
  RegisteredTools,
  registeredTarget,
} from './handlers.js';
import { hostOf, type InstanceWrapper, injectedParameters, isMade, type ToolHost } from './nest-internals.js';
import type { ToolwrightModuleOptions } from './options.js';
import { createErrorDescriber, nestLogger, type ToolCaller } from './pipeline.js';

/** A provider's tool, with its provider. */
interface FoundHandler extends PlannedHandler {
  readonly host: ToolHost;
}

/** The tools that were found, and all their faults. */
interface FoundTools {
  readonly handlers: FoundHandler[];
  /** Tools without a class. */
  readonly given: RegisteredTool[];
  readonly faults: AuthorFault[];
  /** Generated descriptions that no longer match their class. */
  readonly misfits: AuthorFault[];
  /** Probable mistakes that do not prevent the tools from working. */
  readonly warnings: AuthorFault[];
}

/** Finds the tools of the application's providers and controllers, each once. */
class ToolFinder {
  readonly #discovery: DiscoveryService;
  readonly #seen = new Set<InstanceWrapper>();
  /** Tool name → where it was declared. */
  readonly #places = new Map<string, string>();
  /** Classes of providers, and their base classes. */
  readonly #classes = new Set<ClassType>();

  constructor(discovery: DiscoveryService) {
    this.#discovery = discovery;
  }

  /**
   * Tools that were not found before. The result of a factory is known only once it exists: `isEverythingMade` states
   * that it does, except for request-scoped providers and lazily loaded modules. Before that, all factories are
   * skipped, so that the order of the tools does not depend on their speed.
   */
  find(isEverythingMade: boolean): FoundTools {
    const found: FoundTools = { handlers: [], given: [], faults: [], misfits: [], warnings: [] };
    for (const wrapper of [...this.#discovery.getProviders(), ...this.#discovery.getControllers()]) {
      const isKnowable = isEverythingMade ? isMade(wrapper) : !(wrapper.isFactory || wrapper.async);
      if (isKnowable && !wrapper.isAlias && !this.#seen.has(wrapper)) this.#read(wrapper, found);
    }
    return found;
  }

  /** Checks tools without a class as the tools of providers are checked. */
  check(given: readonly RegisteredTool[], giver: string): readonly AuthorFault[] {
    return given.flatMap((tool) => {
      const read = readTool(tool);
      return 'faults' in read ? read.faults : this.#claim(read.name, giver);
    });
  }

  /** Loaded classes with tool methods that no provider has. */
  unprovided(): readonly ClassType[] {
    return loadedToolClasses().filter((declaring) => !this.#classes.has(declaring));
  }

  #read(wrapper: InstanceWrapper, found: FoundTools): void {
    this.#seen.add(wrapper);
    const { host: module, instance } = wrapper;
    if (module === undefined) return;
    if (instance instanceof FeatureTools) {
      found.given.push(...instance.tools);
      found.faults.push(...this.check(instance.tools, 'ToolwrightModule.forFeature'));
      return;
    }
    // A mock may have another shape than the class that its provider replaces.
    const toolClass = [ownClass(wrapper), wrapper.token].find(declaresTools);
    if (toolClass === undefined) return;
    for (const ancestor of lineage(toolClass))
      this.#classes.add((ancestor.prototype?.constructor ?? ancestor) as ClassType);
    const { handlers, faults, misfits, warnings } = planProvider(toolClass);
    found.handlers.push(...handlers.map((handler) => ({ ...handler, host: { wrapper, module } })));
    found.misfits.push(...misfits);
    found.warnings.push(...warnings);
    found.faults.push(...faults, ...injectionFaults(toolClass, wrapper));
    for (const { planned } of handlers) {
      const place = `${toolClass.name}.${String(planned.key)} (in ${module.name})`;
      const kind = planned.served === undefined ? '' : `${planned.served.kind} `;
      found.faults.push(...this.#claim(kind + planned.name, place));
    }
  }

  #claim(name: string, place: string): readonly AuthorFault[] {
    const other = this.#places.get(name);
    this.#places.set(name, other ?? place);
    if (other === undefined) return [];
    return [
      {
        where: place,
        problem: `its name "${name}" is also the name of ${other}`,
        fix: '@Tool({ name }) on one of them; a class that several modules need is provided by one and exported',
      },
    ];
  }
}

/** Holds the tools without a class of a module: `forFeature` provides it for the discovery. */
export class FeatureTools {
  readonly tools: readonly RegisteredTool[];

  constructor(tools: readonly RegisteredTool[]) {
    this.tools = tools;
  }
}

/** The class of a provider, or of a factory's result, even behind a proxy. */
function ownClass(wrapper: InstanceWrapper): unknown {
  if (!wrapper.isNotMetatype) return wrapper.metatype;
  const { instance, token }: { readonly instance: unknown; readonly token: unknown } = wrapper;
  if (typeof instance !== 'object' || instance === null) return undefined;
  const prototype: unknown = Object.getPrototypeOf(instance);
  // If a class decorator returns a proxy, the prototype's constructor is the inner class.
  if (typeof token === 'function' && token.prototype === prototype) return token;
  return Object(prototype).constructor;
}

function declaresTools(candidate: unknown): candidate is ClassType {
  return typeof candidate === 'function' && toolMethods(candidate as ClassType).length > 0;
}

/**
 * Faults of a class whose constructor parameters Nest cannot inject. Without a class decorator, the compiler emits no
 * parameter types, and they would be `undefined`.
 */
function injectionFaults(toolClass: ClassType, wrapper: InstanceWrapper): readonly AuthorFault[] {
  if (wrapper.isNotMetatype || wrapper.metatype !== toolClass) return [];
  // Counts parameters without defaults; a class without a constructor inherits its base's.
  const wanted = lineage(toolClass).findLast(declaresConstructor)?.length ?? 0;
  if (injectedParameters(toolClass) >= wanted) return [];
  return [
    {
      where: toolClass.name,
      problem: `its constructor takes ${wanted === 1 ? 'a parameter' : `${wanted} parameters`}, and nothing tells Nest what to inject, so that it would be undefined`,
      causes: [
        'it has no class decorator, for which alone the compiler records the types of a constructor',
        'the build tool emits no decorator metadata (esbuild, tsx)',
      ],
      fix: '@Injectable() before the class; or @Inject(OrderService) before each parameter; a parameter that may be left out needs a default',
    },
  ];
}

function declaresConstructor(target: ClassType): boolean {
  return target.length > 0 || /\bconstructor\s*\(/.test(Function.prototype.toString.call(target));
}

interface ApplicationToolsParts {
  readonly caller: ToolCaller;
  readonly finder: ToolFinder;
  /** The host of tools without a class. */
  readonly host: () => ToolHost;
  readonly container: InstanceResolver;
  readonly options: ToolRegistryOptions;
  /** Treats generated descriptions that no longer match as errors, not warnings. */
  readonly isStrict: boolean;
}

/** The most classes named in a warning. */
const MOST_NAMES = 5;

/** The registry of an application: all its tools are called through Nest's pipeline. */
export class ApplicationTools {
  readonly registry: ToolRegistry;
  readonly #parts: ApplicationToolsParts;
  readonly #policy: ToolPolicy | undefined;
  /** The call target of each registered tool. */
  readonly #targets = new WeakMap<ToolDefinition, CallTarget>();
  /** The method that declares a provider's tool. */
  readonly #declared = new WeakMap<ToolDefinition, string>();
  /** The wrapper in the registry for each tool that was registered. */
  readonly #adopted = new WeakMap<ToolDefinition, ToolDefinition>();
  /** Classes, with their bases, of registered tools that `discoverTools` made. */
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
   * Registers the given tools and those of the application's providers.
   *
   * @throws ToolDeclarationError with all faults of all providers; nothing is registered then.
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

  /** Registers later tools, and prepares the enhancers of all tools, so that no call waits for this. */
  async complete(): Promise<void> {
    this.discover(true);
    this.#warnOfUnprovided();
    const parts = [this.registry, ...SERVED_KINDS.map((kind) => this.registry.part(kind))];
    const targets = parts.flatMap((part) => part.tools()).flatMap((tool) => this.#targets.get(tool) ?? []);
    await Promise.all(targets.map((target) => this.#parts.caller.prepare(target)));
  }

  /** Warns once: lazily loaded modules may provide classes later. */
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

  /** Warns that a tool registered by hand replaces a provider's tool of the same name. */
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
    const { planned, host } = found;
    const target = providerTarget(found, host);
    const tool: ToolDefinition = toolOfMethod(planned, {
      container: this.#parts.container,
      open: (context) => context.resolve(planned.class as InjectionToken<object>),
      execute: (args, context) => this.#parts.caller.perform(target, { tool, arguments: args, context }),
    });
    this.#targets.set(tool, target);
    this.#declared.set(tool, `${planned.class.name}.${String(planned.key)}`);
    return tool;
  }

  #adopt(tool: ToolDefinition): ToolDefinition {
    if (this.#targets.has(tool)) return tool;
    const known = this.#adopted.get(tool);
    if (known !== undefined) return known;
    const bound = boundMethodOf(tool)?.class;
    for (const ancestor of bound ? lineage(bound) : []) this.#bound.add(ancestor);
    const target = registeredTarget(tool, this.#parts.host());
    const adopted = withExecute(tool, (args, context) =>
      this.#parts.caller.perform(target, { tool: adopted, arguments: args, context }),
    );
    this.#adopted.set(tool, adopted);
    this.#targets.set(adopted, target);
    return adopted;
  }

  /** Guards are asked before the application's own policy. */
  #decide(request: PolicyRequest): PolicyDecision | Promise<PolicyDecision> {
    const target = this.#targets.get(request.tool);
    if (target === undefined) return { allow: false, reason: 'it is not a tool of this application' };
    const decide = (reason: string | undefined): PolicyDecision | Promise<PolicyDecision> => {
      if (reason !== undefined) return { allow: false, reason };
      return this.#policy ? this.#policy(request) : true;
    };
    const reason = this.#parts.caller.refusal(target, request);
    return reason instanceof Promise ? reason.then(decide) : decide(reason);
  }
}

/** Injected by Nest. */
interface ApplicationParts {
  readonly options: ToolwrightModuleOptions;
  readonly caller: ToolCaller;
  readonly tasks: TaskQueue;
  readonly discovery: DiscoveryService;
  readonly moduleRef: ModuleRef;
  readonly modules: ModulesContainer;
}

/**
 * Creates the registry with the tools that are known before the providers exist, so that mistakes are reported while
 * the application is created, as with Nest's own.
 */
export function createApplicationTools(parts: ApplicationParts): ApplicationTools {
  const { options, caller, tasks, discovery, moduleRef, modules } = parts;
  const ofRegistry = Object.entries(withoutUndefined(options)).filter(([key]) =>
    Object.hasOwn(REGISTRY_RULES, key),
  );
  const tools = new ApplicationTools({
    caller,
    finder: new ToolFinder(discovery),
    host: () => hostOf(modules, RegisteredTools),
    container: new RequestContainer(moduleRef),
    options: {
      logger: nestLogger(),
      // Nest's own logger prints all levels by default.
      logArguments: false,
      ...Object.fromEntries(ofRegistry),
      describeError: createErrorDescriber(options),
      tasks,
    },
    isStrict: options.strict ?? false,
  });
  tools.discover(false, options.tools);
  return tools;
}

interface ApplicationTable {
  /** Wraps a tool so that its calls pass the pipeline. */
  readonly adopt: (tool: ToolDefinition) => ToolDefinition;
  /** Called when a tool replaces another one. */
  readonly onReplace: (before: ToolDefinition, now: ToolDefinition) => void;
}

/**
 * The table of an application's registry. It wraps every tool when it is added, in whatever way (registered, merged,
 * created for each call). So views and lists contain only wrapped tools.
 */
class ApplicationToolTable extends WritableToolTable {
  readonly #application: ApplicationTable;

  constructor(application: ApplicationTable) {
    super();
    this.#application = application;
  }

  override set(name: string, { open, offered }: ToolEntry): ToolEntry | undefined {
    const { adopt, onReplace } = this.#application;
    const adopted = adopt(offered);
    const replaced = super.set(name, { open: () => adopt(open()), offered: adopted });
    if (replaced !== undefined && replaced.offered !== adopted) onReplace(replaced.offered, adopted);
    return replaced;
  }
}

/** Replaces a tool's own `execute`. */
type Execute = ToolDefinition['execute'];

/**
 * A tool with another `execute`. Custom tools may have private state, so all other properties are read from the
 * original object.
 */
function withExecute(tool: ToolDefinition, execute: Execute): ToolDefinition {
  // The proxy's target is empty: with a frozen target, `execute` could not be replaced.
  return new Proxy({} as ToolDefinition, {
    get(_target, key) {
      if (key === 'execute') return execute;
      // The pipeline always needs a context.
      if (key === 'ignoresContext') return undefined;
      const value: unknown = Reflect.get(tool, key, tool);
      return typeof value === 'function' ? value.bind(tool) : value;
    },
    has: (_target, key) => Reflect.has(tool, key),
    ownKeys: () => Reflect.ownKeys(tool),
    getOwnPropertyDescriptor(_target, key) {
      const own = Reflect.getOwnPropertyDescriptor(tool, key);
      return own && { ...own, configurable: true };
    },
  });
}
