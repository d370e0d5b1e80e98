/** Any class, abstract ones included: what decorators and containers pass around as a key. */
// biome-ignore lint/suspicious/noExplicitAny: only `any` accepts every constructor signature
export type ClassType<Instance = object> = abstract new (...args: any[]) => Instance;
