import type { DiscoveryService } from '@nestjs/core';
import { type RegisteredTool, readTool } from '../call/registration.js';
import type { ClassType } from '../contract/declaration.js';
import type { AuthorFault } from '../errors/author-fault.js';
import { lineage, loadedToolClasses, toolMethods } from '../metadata/class-record.js';
import { type PlannedHandler, planProvider } from './handlers.js';
import { type InstanceWrapper, injectedParameters, isMade, type ToolHost } from './nest-internals.js';

/** A tool of a provider, and the provider. */
export interface FoundHandler extends PlannedHandler {
  readonly host: ToolHost;
}

/** What was found, and everything that is wrong with it. */
interface FoundTools {
  readonly handlers: readonly FoundHandler[];
  /** Tools without a class. */
  readonly given: readonly RegisteredTool[];
  readonly faults: readonly AuthorFault[];
  /** Generated descriptions that no longer fit their class. */
  readonly misfits: readonly AuthorFault[];
  /** What works and is probably not meant. */
  readonly warnings: readonly AuthorFault[];
}

/** Finds the tools of an application's providers and controllers, each once. */
export class ToolFinder {
  readonly #discovery: DiscoveryService;
  readonly #seen = new Set<InstanceWrapper>();
  /** Tool name → where it was declared. */
  readonly #places = new Map<string, string>();
  /** Classes of providers, and their bases. */
  readonly #classes = new Set<ClassType>();

  constructor(discovery: DiscoveryService) {
    this.#discovery = discovery;
  }

  /**
   * What has not been found before. What a factory makes can be known only when it is there: `isEverythingMade`
   * says that it is, except for what is made per request and for a module that is being loaded lazily. Before that,
   * factories are left aside even where they were quick, so that the order of the tools does not depend on it.
   */
  find(isEverythingMade: boolean): FoundTools {
    const found = this.#candidates(isEverythingMade).map((wrapper) => this.#read(wrapper));
    return {
      handlers: found.flatMap(({ handlers }) => handlers),
      given: found.flatMap(({ given }) => given),
      faults: found.flatMap(({ faults }) => faults),
      misfits: found.flatMap(({ misfits }) => misfits),
      warnings: found.flatMap(({ warnings }) => warnings),
    };
  }

  /** Tools without a class; their faults and names are looked at as those of the providers are. */
  check(given: readonly RegisteredTool[], giver: string): readonly AuthorFault[] {
    return given.flatMap((tool) => {
      const read = readTool(tool);
      return 'faults' in read ? read.faults : this.#claim(read.name, giver);
    });
  }

  /** Loaded classes whose methods are tools, and which no provider is an instance of. */
  unprovided(): readonly ClassType[] {
    return loadedToolClasses().filter((declaring) => !this.#classes.has(declaring));
  }

  #candidates(isEverythingMade: boolean): readonly InstanceWrapper[] {
    const wrappers = [...this.#discovery.getProviders(), ...this.#discovery.getControllers()];
    return wrappers.filter((wrapper) => {
      const isKnowable = isEverythingMade ? isMade(wrapper) : !(wrapper.isFactory || wrapper.async);
      return isKnowable && !wrapper.isAlias && !this.#seen.has(wrapper);
    });
  }

  #read(wrapper: InstanceWrapper): FoundTools {
    this.#seen.add(wrapper);
    const { host: module, instance } = wrapper;
    const none: FoundTools = { handlers: [], given: [], faults: [], misfits: [], warnings: [] };
    if (module === undefined) return none;
    if (instance instanceof FeatureTools) {
      const { tools } = instance;
      return { ...none, given: tools, faults: this.check(tools, 'ToolwrightModule.forFeature') };
    }
    const toolClass = toolClassOf(wrapper);
    if (toolClass === undefined) return none;
    for (const ancestor of lineage(toolClass))
      this.#classes.add((ancestor.prototype?.constructor ?? ancestor) as ClassType);
    const { handlers, faults, misfits, warnings } = planProvider(toolClass);
    const provider = module.name;
    return {
      ...none,
      misfits,
      warnings,
      handlers: handlers.map((handler) => ({ ...handler, host: { wrapper, module } })),
      faults: [
        ...faults,
        ...injectionFaults(toolClass, wrapper),
        ...handlers.flatMap(({ planned: { key, name } }) =>
          this.#claim(name, `${toolClass.name}.${String(key)} (in ${provider})`),
        ),
      ],
    };
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

/** The tools that a module brings without a class: what `forFeature` provides for the discovery to find. */
export class FeatureTools {
  readonly tools: readonly RegisteredTool[];

  constructor(tools: readonly RegisteredTool[]) {
    this.tools = tools;
  }
}

/**
 * The class that declares the tools of a provider: its own class, the class of what a factory made (seen
 * through proxies), or the class that it is provided as, where a stand-in of another shape serves it.
 */
function toolClassOf(wrapper: InstanceWrapper): ClassType | undefined {
  return [ownClass(wrapper), wrapper.token].find(declaresTools);
}

function ownClass(wrapper: InstanceWrapper): unknown {
  if (!wrapper.isNotMetatype) return wrapper.metatype;
  const { instance, token }: { readonly instance: unknown; readonly token: unknown } = wrapper;
  if (typeof instance !== 'object' || instance === null) return undefined;
  const prototype: unknown = Object.getPrototypeOf(instance);
  // The prototype names the class within, where a class decorator has put a proxy around it.
  if (typeof token === 'function' && token.prototype === prototype) return token;
  return typeof prototype === 'object' && prototype !== null ? prototype.constructor : undefined;
}

function declaresTools(candidate: unknown): candidate is ClassType {
  return typeof candidate === 'function' && toolMethods(candidate as ClassType).length > 0;
}

/**
 * A class that Nest makes and whose constructor wants what Nest does not know: without a class decorator the compiler
 * says nothing of its parameters, and they would be `undefined`.
 */
function injectionFaults(toolClass: ClassType, wrapper: InstanceWrapper): readonly AuthorFault[] {
  if (wrapper.isNotMetatype || wrapper.metatype !== toolClass) return [];
  const wanted = parameterCount(toolClass);
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

/** Parameters without defaults of the constructor that is run: a class without one of its own runs its base's. */
function parameterCount(toolClass: ClassType): number {
  const own = [...lineage(toolClass)].reverse().find(declaresConstructor);
  return own?.length ?? 0;
}

function declaresConstructor(target: ClassType): boolean {
  return target.length > 0 || /\bconstructor\s*\(/.test(Function.prototype.toString.call(target));
}
