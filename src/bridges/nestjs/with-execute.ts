import type { ToolDefinition } from '../../contract/tool-definition.js';

/** What serves a call instead of the tool's own `execute`. */
export type Execute = ToolDefinition['execute'];

/**
 * A tool like the given one, except that `execute` is another. Tools written by hand may hold state that only
 * their own methods can reach, so all but `execute` stays with the object itself.
 */
export function withExecute(tool: ToolDefinition, execute: Execute): ToolDefinition {
  // The target is empty, because a frozen one could not answer differently for `execute`.
  return new Proxy({} as ToolDefinition, {
    get(_target, key) {
      if (key === 'execute') return execute;
      // Whether a context is needed is no longer the tool's own business.
      if (key === 'ignoresContext') return undefined;
      const value: unknown = Reflect.get(tool, key, tool);
      return typeof value === 'function' ? value.bind(tool) : value;
    },
    has: (_target, key) => Reflect.has(tool, key),
    ownKeys: () => Reflect.ownKeys(tool),
    getOwnPropertyDescriptor(_target, key) {
      const own = Reflect.getOwnPropertyDescriptor(tool, key);
      return own && { ...own, configurable: true };
    },
  });
}
