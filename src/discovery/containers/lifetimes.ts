import type { Lifecycle } from 'tsyringe';
import { loadTsyringe } from './load-tsyringe.cjs';

/** How long what a token resolves to lives. */
export type ProviderLifetime = 'singleton' | 'scoped' | 'transient';

/** tsyringe's name for a lifetime. */
export function lifecycleOf(lifetime: ProviderLifetime): Lifecycle {
  const { Lifecycle } = loadTsyringe();
  if (lifetime === 'singleton') return Lifecycle.Singleton;
  return lifetime === 'scoped' ? Lifecycle.ContainerScoped : Lifecycle.Transient;
}

/** The lifetime behind tsyringe's name; an instance per resolution is gone with the call. */
export function lifetimeOf(lifecycle: Lifecycle): ProviderLifetime {
  const { Lifecycle } = loadTsyringe();
  if (lifecycle === Lifecycle.Singleton) return 'singleton';
  return lifecycle === Lifecycle.ContainerScoped ? 'scoped' : 'transient';
}
