/** What a log calls a guard, a filter or an interceptor: by its class, where it has one. */
export function enhancerName(enhancer: object): string {
  const { name } = enhancer.constructor ?? Object;
  return name === '' || name === 'Object' ? 'without a name' : name;
}
