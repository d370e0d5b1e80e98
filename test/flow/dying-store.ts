const NEVER = new Promise<never>(() => {});

/** Called before every method of a store. */
type IsAlive = (method: string, args: readonly unknown[]) => boolean;

/** A store as one process sees it: after its death no call arrives, and no call returns. */
export function seenBy<Target extends object>(target: Target, isAlive: IsAlive): Target {
  return new Proxy(target, {
    get: (_, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value === 'object' && value !== null) return seenBy(value, isAlive);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => (isAlive(String(name), args) ? value.apply(target, args) : NEVER);
    },
  });
}
