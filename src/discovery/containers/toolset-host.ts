import { type DependencyContainer, container as globalContainer, Lifecycle } from 'tsyringe';
import type { ClassType } from '../../contract/class-type.js';
import type { InstanceResolver } from '../../contract/instance-resolver.js';
import type { ToolContext } from '../../contract/tool-context.js';
import type { ToolsetScope } from '../../contract/toolset-options.js';
import type { AuthorFault } from '../../errors/author-fault.js';
import { inspectDependencies } from './dependency-graph.js';
import { providersOf } from './tsyringe-registry.js';
import { tsyringeResolver } from './tsyringe-resolver.js';

/** A container as `discoverTools` takes it: tsyringe's own, or anything behind the port. */
export type ToolContainer = DependencyContainer | InstanceResolver;

/** Gives the instance that serves a call. */
export type InstanceSource = (context: ToolContext) => object;

/** What discovery needs of a container, whichever it is. */
export interface ToolsetHost {
  readonly resolver: InstanceResolver;
  /** What would fail or go wrong when a toolset is injected; nothing is created yet. */
  inspect(toolset: ClassType, scope: ToolsetScope | undefined): readonly AuthorFault[];
  /** Registers and creates what lives as long as the container. Throws what a constructor throws. */
  open(toolset: ClassType, scope: ToolsetScope | undefined): InstanceSource;
}

/** The host for a container; default: tsyringe's global one. */
export function toolsetHost(container: ToolContainer = globalContainer): ToolsetHost {
  return isTsyringe(container) ? tsyringeHost(container) : portHost(container);
}

function isTsyringe(container: ToolContainer): container is DependencyContainer {
  return 'createChildContainer' in container && typeof container.createChildContainer === 'function';
}

const perCall =
  (toolset: ClassType): InstanceSource =>
  (context) =>
    context.resolve(toolset);

function always(instance: object): InstanceSource {
  return () => instance;
}

function portHost(resolver: InstanceResolver): ToolsetHost {
  return {
    resolver,
    inspect: () => [],
    open: (toolset, scope = 'singleton') =>
      scope === 'singleton' ? always(resolver.resolve(toolset) as object) : perCall(toolset),
  };
}

function tsyringeHost(container: DependencyContainer): ToolsetHost {
  return {
    resolver: tsyringeResolver(container),
    inspect(toolset, scope) {
      const provider = providersOf(container, tokenOf(toolset))[0];
      if (provider?.kind === 'opaque') return [];
      const root = { class: toolset, lifetime: scope ?? provider?.lifetime ?? 'singleton' };
      const { faults } = inspectDependencies(container, root);
      return faults.map((fault) => ({ where: toolset.name, ...fault }));
    },
    open(toolset, scope) {
      const provider = providersOf(container, tokenOf(toolset))[0];
      if (provider?.kind === 'opaque') return always(container.resolve(tokenOf(toolset)));
      const lifetime = scope ?? provider?.lifetime ?? 'singleton';
      if (provider === undefined) register(container, toolset, lifetime);
      if (lifetime !== 'singleton') return perCall(toolset);
      const { singletons } = inspectDependencies(container, { class: toolset, lifetime });
      for (const token of singletons) container.resolve(token);
      return always(container.resolve(tokenOf(toolset)));
    },
  };
}

const LIFECYCLES: Readonly<Record<ToolsetScope, Lifecycle>> = {
  singleton: Lifecycle.Singleton,
  scoped: Lifecycle.ContainerScoped,
  transient: Lifecycle.Transient,
};

function register(container: DependencyContainer, toolset: ClassType, scope: ToolsetScope): void {
  container.register(tokenOf(toolset), { useClass: tokenOf(toolset) }, { lifecycle: LIFECYCLES[scope] });
}

/** tsyringe's types want a constructor that can be called. */
function tokenOf(toolset: ClassType): new () => object {
  return toolset as new () => object;
}
