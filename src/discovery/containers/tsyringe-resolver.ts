import type { DependencyContainer, InjectionToken as TsyringeToken } from 'tsyringe';
import type { ClassType } from '../../contract/declaration.js';
import type { InjectionToken, InstanceResolver } from '../../contract/ports.js';
import {
  inspectDependencies,
  isRegistered,
  lifecycleOf,
  type ProvidedClass,
  providersOf,
} from './dependency-graph.js';
import { loadTsyringe } from './load-tsyringe.cjs';

/** A tsyringe container behind the port. */
export function tsyringeResolver(container: DependencyContainer): InstanceResolver {
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
export function settleSingletons(container: DependencyContainer, root: ProvidedClass): void {
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
