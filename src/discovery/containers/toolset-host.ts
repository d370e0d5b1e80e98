import type { DependencyContainer, InjectionToken as TsyringeToken } from 'tsyringe';
import type { ClassType, ToolsetScope } from '../../contract/declaration.js';
import type { InjectionToken, InstanceResolver } from '../../contract/ports.js';
import type { ToolContext } from '../../contract/tool-context.js';
import type { AuthorFault } from '../../errors/author-fault.js';
import {
  inspectDependencies,
  isRegistered,
  lifecycleOf,
  type ProvidedClass,
  providersOf,
} from './dependency-graph.js';
import { loadTsyringe } from './load-tsyringe.cjs';

/** A container as `discoverTools` takes it: tsyringe's own, or anything behind the port. */
export type ToolContainer = DependencyContainer | InstanceResolver;

/** Where the instance that serves a call comes from. */
export type InstanceSource =
  | { readonly kind: 'always'; readonly instance: object }
  | { readonly kind: 'per-call'; readonly open: (context: ToolContext) => object };

/** A toolset class and what `@Toolset` says of its lifetime. */
interface HostedToolset {
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
  const isTsyringe =
    'createChildContainer' in container && typeof container.createChildContainer === 'function';
  return isTsyringe
    ? tsyringeHost(container as DependencyContainer)
    : portHost(container as InstanceResolver);
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

/** A tsyringe container behind the port. */
function tsyringeResolver(container: DependencyContainer): InstanceResolver {
  const settled = new Set<unknown>();
  const settle = (token: TsyringeToken): void => {
    if (settled.has(token)) return;
    settled.add(token);
    for (const provider of providersOf(container, token)) {
      if (provider.kind === 'opaque') continue;
      if (provider.lifetime === 'singleton') container.resolve(token);
      else settleSingletons(container, provider);
    }
  };
  return {
    resolve: <Instance>(token: InjectionToken<Instance>) =>
      container.resolve<Instance>(token as TsyringeToken<Instance>),
    createScope() {
      const child = container.createChildContainer();
      return {
        resolve<Instance>(token: InjectionToken<Instance>) {
          settle(token as TsyringeToken);
          return child.resolve<Instance>(token as TsyringeToken<Instance>);
        },
        dispose: async () => {
          await child.dispose();
        },
      };
    },
  };
}

/**
 * Creates the singletons that a class depends on in the container that owns them. tsyringe would create
 * them in the child container that asks first: they would keep that call's scoped instances, and be
 * disposed with it.
 */
function settleSingletons(container: DependencyContainer, root: ProvidedClass): void {
  const { providers } = inspectDependencies(container, root);
  for (const [token, { lifetime }] of providers) if (lifetime === 'singleton') container.resolve(token);
}

/** A token and what stands in for it. */
export type Override = readonly [token: unknown, value: unknown];

/**
 * A child of the global container in which a class gets stand-ins for some of its dependencies. Every
 * class on the way is registered anew: an instance that exists elsewhere would bring the real
 * dependencies along, and a new one would leak the stand-ins.
 */
export function isolatedContainer(toolset: ClassType, overrides: Iterable<Override>): DependencyContainer {
  const child = loadTsyringe().container.createChildContainer();
  for (const [token, value] of overrides) child.registerInstance(token as TsyringeToken, value);
  const { providers } = inspectDependencies(child, { class: toolset, lifetime: 'transient' });
  for (const [token, provider] of providers) register(child, token, provider);
  // Discovered before, the class has an instance of its own elsewhere.
  const [known] = isRegistered(child, toolset) ? providersOf(child, toolset) : [];
  const lifetime = known?.kind === 'class' ? known.lifetime : 'singleton';
  if (known !== undefined) register(child, toolset as new () => object, { class: toolset, lifetime });
  return child;
}

function register(
  child: DependencyContainer,
  token: TsyringeToken,
  { class: target, lifetime }: ProvidedClass,
): void {
  const useClass = target as new () => object;
  child.register(token as TsyringeToken<object>, { useClass }, { lifecycle: lifecycleOf(lifetime) });
}
