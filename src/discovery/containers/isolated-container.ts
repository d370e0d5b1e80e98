import type { DependencyContainer, InjectionToken } from 'tsyringe';
import type { ClassType } from '../../contract/class-type.js';
import { inspectDependencies, type ProvidedClass } from './dependency-graph.js';
import { lifecycleOf } from './lifetimes.js';
import { loadTsyringe } from './load-tsyringe.cjs';
import { isRegistered, providersOf } from './providers-of.js';

/** A token and what stands in for it. */
export type Override = readonly [token: unknown, value: unknown];

/**
 * A child of the global container in which a class gets stand-ins for some of its dependencies. Every
 * class on the way is registered anew: an instance that exists elsewhere would bring the real
 * dependencies along, and a new one would leak the stand-ins.
 */
export function isolatedContainer(toolset: ClassType, overrides: Iterable<Override>): DependencyContainer {
  const child = loadTsyringe().container.createChildContainer();
  for (const [token, value] of overrides) child.registerInstance(token as InjectionToken, value);
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
  token: InjectionToken,
  { class: target, lifetime }: ProvidedClass,
): void {
  const useClass = target as new () => object;
  child.register(token as InjectionToken<object>, { useClass }, { lifecycle: lifecycleOf(lifetime) });
}
