import { createHash } from 'node:crypto';
import type { Tool as McpTool } from '@modelcontextprotocol/client';
import { canonicalJson } from '../../checking/canonical-json.js';

/** A digest of all that a model is told of a tool. The order of keys says nothing. */
export function fingerprintOf(tool: McpTool): string {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  const told = { name, title, description, inputSchema, outputSchema, annotations };
  return createHash('sha256').update(canonicalJson(told)).digest('hex');
}
