import type { DiscoveryService } from '@nestjs/core';
import { STATIC_CONTEXT } from '@nestjs/core/injector/constants.js';
import type { InstanceWrapper } from '@nestjs/core/injector/instance-wrapper.js';
import type { ClassType } from '../../contract/class-type.js';
import type { AuthorFault } from '../../errors/author-fault.js';
import { lineage } from '../../metadata/class-record.js';
import { loadedToolClasses } from '../../metadata/record-tool.js';
import { readTool } from '../../registry/read-tool.js';
import type { RegisteredTool } from '../../registry/tool-table.js';
import { FeatureTools } from './feature-tools.js';
import { injectionFaults } from './injection-faults.js';
import { type PlannedHandler, planProvider } from './plan-provider.js';
import type { ToolHost } from './provider-target.js';
import { toolClassOf } from './tool-class-of.js';

/** A tool of a provider, and the provider. */
export interface FoundHandler extends PlannedHandler {
  readonly host: ToolHost;
}

/** What was found, and everything that is wrong with it. */
export interface FoundTools {
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
    for (const one of lineage(toolClass)) this.#classes.add((one.prototype?.constructor ?? one) as ClassType);
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

/** What is made per request or per call is never there; it is known by its class. */
function isMade(wrapper: InstanceWrapper): boolean {
  if (wrapper.isTransient || !wrapper.isDependencyTreeStatic()) return true;
  return wrapper.getInstanceByContextId(STATIC_CONTEXT).isResolved === true;
}
