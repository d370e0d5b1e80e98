import { cached } from './cached.js';

/** A connection through which some tools of a registry are called, such as an MCP server. */
interface ToolConnection {
  readonly name: string;
  readonly state: 'connected' | 'disconnected' | 'sign_in';
  /** Why the last attempt to connect failed. */
  readonly problem?: string;
  /** The names of its tools. */
  readonly tools: readonly string[];
}

/** By registry, so that the inspector shows them however they were made. */
const CONNECTIONS = new WeakMap<object, Set<() => ToolConnection>>();

/** Returns a function that removes the connection. */
export function addConnection(registry: object, connection: () => ToolConnection): () => void {
  const known = cached(CONNECTIONS, registry, () => new Set());
  known.add(connection);
  return () => known.delete(connection);
}

export function connectionsOf(registry: object): readonly ToolConnection[] {
  return Array.from(CONNECTIONS.get(registry) ?? [], (connection) => connection());
}
