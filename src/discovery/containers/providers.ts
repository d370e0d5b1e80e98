import type { DependencyContainer, InjectionToken, Lifecycle } from 'tsyringe';
import type { ClassType } from '../../contract/declaration.js';
import { loadTsyringe } from './load-tsyringe.cjs';

/** What a container does for a token, as far as it concerns injection; aliases are followed. */
type ProviderFacts =
  | { readonly kind: 'class'; readonly class: ClassType; readonly lifetime: ProviderLifetime }
  /** A value or a factory: nothing to look into. */
  | { readonly kind: 'opaque' };

/** The part of tsyringe's container that its types keep private: it has no public way to read a provider. */
interface Registration {
  readonly provider: { readonly useClass?: ClassType; readonly useToken?: InjectionToken };
  readonly options: { readonly lifecycle: Lifecycle };
}
interface Internals {
  readonly parent?: Internals;
  readonly _registry?: { has(token: unknown): boolean; getAll(token: unknown): readonly Registration[] };
}

/** Built-in types that appear in metadata where the real type is lost or cannot be injected by type. */
const LOST_TYPES: readonly unknown[] = [Object, Array, Function, Promise, String, Number, Boolean];

/** Whether metadata lost the type of a parameter, so that no container can know what is meant. */
export function isLostType(token: unknown): boolean {
  return token === undefined || LOST_TYPES.includes(token);
}

/** The providers a container has for a token, a class that was never registered included; none: it is missing. */
export function providersOf(container: DependencyContainer, token: unknown): readonly ProviderFacts[] {
  const registrations = registrationsOf(container as unknown as Internals, token);
  if (registrations.length > 0)
    return registrations.flatMap((registration) => follow(container, registration));
  if (typeof token !== 'function' || isLostType(token)) return [];
  return [{ kind: 'class', class: token as ClassType, lifetime: 'transient' }];
}

/** Whether somebody registered a token, here or in a parent. */
export function isRegistered(container: DependencyContainer, token: unknown): boolean {
  return registrationsOf(container as unknown as Internals, token).length > 0;
}

/** tsyringe looks in the nearest container that has any registration of the token. */
function registrationsOf(container: Internals | undefined, token: unknown): readonly Registration[] {
  if (container === undefined) return [];
  return container._registry?.has(token)
    ? container._registry.getAll(token)
    : registrationsOf(container.parent, token);
}

/** tsyringe refuses cycles of aliases when they are registered, so following them ends. */
function follow(
  container: DependencyContainer,
  { provider, options }: Registration,
): readonly ProviderFacts[] {
  const lifetime = lifetimeOf(options.lifecycle);
  if (provider.useClass !== undefined) return [{ kind: 'class', class: provider.useClass, lifetime }];
  if (provider.useToken === undefined) return [{ kind: 'opaque' }];
  const targets = providersOf(container, provider.useToken);
  // An alias registered as a singleton keeps what it resolved to, however short-lived that is.
  if (lifetime !== 'singleton') return targets;
  return targets.map((target) => (target.kind === 'class' ? { ...target, lifetime } : target));
}

/** How long what a token resolves to lives. */
export type ProviderLifetime = 'singleton' | 'scoped' | 'transient';

/** tsyringe's name for a lifetime. */
export function lifecycleOf(lifetime: ProviderLifetime): Lifecycle {
  const { Lifecycle } = loadTsyringe();
  if (lifetime === 'singleton') return Lifecycle.Singleton;
  return lifetime === 'scoped' ? Lifecycle.ContainerScoped : Lifecycle.Transient;
}

/** The lifetime behind tsyringe's name; an instance per resolution is gone with the call. */
function lifetimeOf(lifecycle: Lifecycle): ProviderLifetime {
  const { Lifecycle } = loadTsyringe();
  if (lifecycle === Lifecycle.Singleton) return 'singleton';
  return lifecycle === Lifecycle.ContainerScoped ? 'scoped' : 'transient';
}
