import type { DependencyContainer } from 'tsyringe';
import type { ClassType, ToolsetScope } from '../../contract/declaration.js';
import type { InstanceResolver } from '../../contract/ports.js';
import type { ToolContext } from '../../contract/tool-context.js';
import type { AuthorFault } from '../../errors/author-fault.js';
import { inspectDependencies, isRegistered, lifecycleOf, providersOf } from './dependency-graph.js';
import { loadTsyringe } from './load-tsyringe.cjs';
import { settleSingletons, tsyringeResolver } from './tsyringe-resolver.js';

/** A container as `discoverTools` takes it: tsyringe's own, or anything behind the port. */
export type ToolContainer = DependencyContainer | InstanceResolver;

/** Where the instance that serves a call comes from. */
export type InstanceSource =
  | { readonly kind: 'always'; readonly instance: object }
  | { readonly kind: 'per-call'; readonly open: (context: ToolContext) => object };

/** A toolset class and what `@Toolset` says of its lifetime. */
export interface HostedToolset {
  readonly class: ClassType;
  readonly scope?: ToolsetScope;
}

/** What discovery needs of a container, whichever it is. */
export interface ToolsetHost {
  readonly resolver: InstanceResolver;
  /** Whether somebody registered the class, or marked it for injection. */
  knows(target: ClassType): boolean;
  /** What would fail or go wrong when a toolset is injected; nothing is created yet. */
  inspect(toolset: HostedToolset): readonly AuthorFault[];
  /** Registers and creates what lives as long as the container. Throws what a constructor throws. */
  open(toolset: HostedToolset): InstanceSource;
}

/** The host for a container; default: tsyringe's global one. */
export function toolsetHost(container: ToolContainer = loadTsyringe().container): ToolsetHost {
  return isTsyringe(container) ? tsyringeHost(container) : portHost(container);
}

function isTsyringe(container: ToolContainer): container is DependencyContainer {
  return 'createChildContainer' in container && typeof container.createChildContainer === 'function';
}

function portHost(resolver: InstanceResolver): ToolsetHost {
  return {
    resolver,
    knows: () => false,
    inspect: () => [],
    open: ({ class: toolset, scope = 'singleton' }) =>
      scope === 'singleton' ? always(resolver.resolve(toolset as Token)) : perCall(toolset),
  };
}

function tsyringeHost(container: DependencyContainer): ToolsetHost {
  return {
    resolver: tsyringeResolver(container),
    knows: (target) => isRegistered(container, target),
    inspect(toolset) {
      const lifetime = lifetimeOf(container, toolset);
      if (lifetime === 'opaque') return [];
      const { faults } = inspectDependencies(container, { class: toolset.class, lifetime });
      return faults.map((fault) => ({ where: toolset.class.name, ...fault }));
    },
    open(toolset) {
      const lifetime = lifetimeOf(container, toolset);
      const token = toolset.class as Token;
      if (lifetime === 'opaque') return always(container.resolve(token));
      if (!isRegistered(container, token)) {
        container.register(token, { useClass: token }, { lifecycle: lifecycleOf(lifetime) });
      }
      if (lifetime !== 'singleton') return perCall(toolset.class);
      settleSingletons(container, { class: toolset.class, lifetime });
      return always(container.resolve(token));
    },
  };
}

/** `@Toolset`'s word, otherwise the container's, otherwise one instance for all calls. */
function lifetimeOf(
  container: DependencyContainer,
  { class: toolset, scope }: HostedToolset,
): ToolsetScope | 'opaque' {
  if (!isRegistered(container, toolset)) return scope ?? 'singleton';
  const [provider] = providersOf(container, toolset);
  return provider?.kind === 'class' ? (scope ?? provider.lifetime) : 'opaque';
}

function perCall(toolset: ClassType): InstanceSource {
  const token = toolset as Token;
  return { kind: 'per-call', open: (context) => context.resolve(token) };
}

function always(instance: object): InstanceSource {
  return { kind: 'always', instance };
}

/** Containers' types want a constructor that can be called; a toolset is one. */
type Token = new () => object;
