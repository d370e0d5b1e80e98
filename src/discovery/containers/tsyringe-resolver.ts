import type { DependencyContainer, InjectionToken as TsyringeToken } from 'tsyringe';
import type { InjectionToken, InstanceResolver } from '../../contract/instance-resolver.js';
import { providersOf } from './providers-of.js';
import { settleSingletons } from './settle-singletons.js';

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
