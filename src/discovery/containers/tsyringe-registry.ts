import type { DependencyContainer, InjectionToken } from 'tsyringe';
import { Lifecycle } from 'tsyringe';
import type { ClassType } from '../../contract/class-type.js';

/** How long what a token resolves to lives. */
export type ProviderLifetime = 'singleton' | 'scoped' | 'transient';

/** What a container does for a token, as far as it concerns injection. */
export type ProviderFacts =
  | { readonly kind: 'class'; readonly class: ClassType; readonly lifetime: ProviderLifetime }
  | { readonly kind: 'token'; readonly token: InjectionToken; readonly lifetime: ProviderLifetime }
  /** A value or a factory: nothing to look into. */
  | { readonly kind: 'opaque' };

/** The part of tsyringe's container that its types keep private: it has no public way to read a provider. */
interface Registration {
  readonly provider: {
    readonly useClass?: ClassType;
    readonly useToken?: InjectionToken;
  };
  readonly options: { readonly lifecycle: Lifecycle };
}
interface Internals {
  readonly parent?: Internals;
  readonly _registry?: { has(token: unknown): boolean; getAll(token: unknown): readonly Registration[] };
}

const LIFETIMES: Readonly<Record<Lifecycle, ProviderLifetime>> = {
  [Lifecycle.Singleton]: 'singleton',
  [Lifecycle.ContainerScoped]: 'scoped',
  [Lifecycle.ResolutionScoped]: 'transient',
  [Lifecycle.Transient]: 'transient',
};

/** The providers registered for a token, in the nearest container that has any. */
export function providersOf(container: DependencyContainer, token: InjectionToken): readonly ProviderFacts[] {
  let current: Internals | undefined = container as unknown as Internals;
  while (current !== undefined) {
    if (current._registry?.has(token)) return current._registry.getAll(token).map(describe);
    current = current.parent;
  }
  return [];
}

function describe({ provider, options }: Registration): ProviderFacts {
  const lifetime = LIFETIMES[options.lifecycle];
  if (provider.useClass !== undefined) return { kind: 'class', class: provider.useClass, lifetime };
  if (provider.useToken !== undefined) return { kind: 'token', token: provider.useToken, lifetime };
  return { kind: 'opaque' };
}
