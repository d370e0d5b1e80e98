import type { DependencyContainer } from 'tsyringe';
import { inspectDependencies, type ProvidedClass } from './dependency-graph.js';

/**
 * Creates the singletons that a class depends on in the container that owns them. tsyringe would create
 * them in the child container that asks first: they would keep that call's scoped instances, and be
 * disposed with it.
 */
export function settleSingletons(container: DependencyContainer, root: ProvidedClass): void {
  const { providers } = inspectDependencies(container, root);
  for (const [token, { lifetime }] of providers) if (lifetime === 'singleton') container.resolve(token);
}
