/** What an instance is asked for by: a class, or a token that the container knows. */
export type InjectionToken<Instance = unknown> =
  // biome-ignore lint/suspicious/noExplicitAny: only `any` accepts every constructor signature
  (new (...args: any[]) => Instance) | string | symbol;

/** A resolver that lives for one call and is closed when the call has completed. */
export interface ScopedResolver {
  resolve<Instance>(token: InjectionToken<Instance>): Instance;
  dispose(): void | Promise<void>;
}

/**
 * The port to a dependency-injection container. tsyringe containers are taken as they are; for any other,
 * two methods do: `resolve`, and `createScope` where the container knows per-call instances.
 */
export interface InstanceResolver {
  resolve<Instance>(token: InjectionToken<Instance>): Instance;
  createScope?(): ScopedResolver;
}
