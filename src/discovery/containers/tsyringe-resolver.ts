import type { DependencyContainer, InjectionToken as TsyringeToken } from 'tsyringe';
import type { ClassType } from '../../contract/class-type.js';
import type { InjectionToken, InstanceResolver } from '../../contract/instance-resolver.js';
import { inspectDependencies } from './dependency-graph.js';
import { providersOf } from './tsyringe-registry.js';

/** A tsyringe container behind the port. */
export function tsyringeResolver(container: DependencyContainer): InstanceResolver {
  const settled = new Set<unknown>();
  return {
    resolve: <Instance>(token: InjectionToken<Instance>) =>
      container.resolve<Instance>(token as TsyringeToken<Instance>),
    createScope() {
      const child = container.createChildContainer();
      return {
        resolve<Instance>(token: InjectionToken<Instance>) {
          if (!settled.has(token)) settleSingletons(container, token as TsyringeToken<Instance>);
          settled.add(token);
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
 * Creates the singletons that a token depends on in the container that owns them. tsyringe would create
 * them in the child container that asks first: they would keep that call's scoped instances, and be
 * disposed with it.
 */
function settleSingletons(container: DependencyContainer, token: TsyringeToken): void {
  const providers = providersOf(container, token);
  if (providers.some((provider) => provider.kind !== 'opaque' && provider.lifetime === 'singleton')) {
    container.resolve(token);
    return;
  }
  const target = providers.find((provider) => provider.kind === 'class')?.class ?? token;
  if (typeof target !== 'function') return;
  const report = inspectDependencies(container, { class: target as ClassType, lifetime: 'transient' });
  for (const singleton of report.singletons) container.resolve(singleton);
}
