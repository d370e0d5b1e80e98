import { type ListToolsResult, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import type { ToolRegistry } from '../../registry/tool-registry.js';
import { describeTool } from './describe-tool.js';

const MARK = 'after:';

/**
 * One page of the tools, in the order of their registration. The cursor names the last tool of the page
 * before, so that tools that come or go meanwhile move no other tool off the pages.
 */
export function listTools(tools: ToolRegistry, pageSize: number, cursor?: string): ListToolsResult {
  // A tool that the client's side executes has no body here, and MCP no way to hand its calls back.
  const all = tools.tools().filter(({ execution }) => execution !== 'client');
  const start = cursor === undefined ? 0 : positionAfter(cursor, all);
  const page = all.slice(start, start + pageSize);
  const last = page.at(-1);
  const isComplete = last === undefined || start + pageSize >= all.length;
  return {
    tools: page.map(describeTool),
    ...(isComplete ? {} : { nextCursor: Buffer.from(MARK + last.name).toString('base64url') }),
  };
}

function positionAfter(cursor: string, tools: readonly ToolDefinition[]): number {
  const text = Buffer.from(cursor, 'base64url').toString();
  const last = text.startsWith(MARK) ? text.slice(MARK.length) : undefined;
  const position = tools.findIndex(({ name }) => name === last);
  if (position >= 0) return position + 1;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Unknown cursor: ask for the first page again');
}
