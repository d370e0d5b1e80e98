import { createHash } from 'node:crypto';
import type { Tool as McpTool } from '@modelcontextprotocol/client';

/** A digest of all that a model is told of a tool. The order of keys says nothing. */
export function fingerprintOf(tool: McpTool): string {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  const told = { name, title, description, inputSchema, outputSchema, annotations };
  return createHash('sha256')
    .update(JSON.stringify(sorted(told)))
    .digest('hex');
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  // Pairs, as keys that look like numbers would be put in front; below a key, so that no list looks the same.
  return { pairs: entries.map(([key, member]) => [key, sorted(member)]) };
}
