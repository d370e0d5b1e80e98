import type { KnownTools } from '../known-tools.js';

const NAMESPACE = 'functions.';

/** A tool's name without the namespace that some formats put before every function. */
export function plainName(name: string, tools: KnownTools): string {
  if (!name.startsWith(NAMESPACE) || (!tools.any && tools.has(name))) return name;
  return name.slice(NAMESPACE.length);
}
