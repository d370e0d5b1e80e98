import type { JSONRPCMessage, Tool as McpTool, Transport } from '@modelcontextprotocol/client';
import { isSpecType } from '@modelcontextprotocol/server';

const TOLERANT = new WeakSet<Transport>();

/**
 * Takes what is no tool out of the lists that a connection brings, before the SDK sees them: for one malformed
 * tool it refuses a whole page of 2026-07-28. Nothing else that arrives is touched.
 */
export function passOverMalformed(transport: Transport): void {
  if (TOLERANT.has(transport)) return;
  TOLERANT.add(transport);
  const { onmessage } = transport;
  transport.onmessage = (message, extra) => onmessage?.(withoutMalformed(message), extra);
}

function withoutMalformed<Message extends JSONRPCMessage>(message: Message): Message {
  if (!('result' in message) || !Array.isArray(message.result.tools)) return message;
  return { ...message, result: { ...message.result, tools: message.result.tools.filter(isTool) } };
}

function isTool(tool: unknown): tool is McpTool {
  return isReadable(tool) && tool.name !== '';
}

/** Whether the SDK takes something for a tool; what is nested too deep for its stack is none. */
export function isReadable(tool: unknown): tool is McpTool {
  try {
    return isSpecType.Tool(tool);
  } catch {
    return false;
  }
}
