import type { ServerContext } from '@modelcontextprotocol/server';
import type { CallScope } from '../../contract/call-scope.js';
import type { McpCaller } from './mcp-caller.js';
import type { ProgressReporter } from './report-progress.js';

/** Where a call comes from. */
export interface ScopeParts {
  readonly caller: McpCaller;
  readonly context: ServerContext;
  readonly progress: ProgressReporter;
  readonly signal: AbortSignal;
}

const LEVELS = { debug: 'debug', info: 'info', warn: 'warning', error: 'error' } as const;

/** The scope of a call: what the application says of its caller, and the client's ears. */
export function openScope(own: CallScope, parts: ScopeParts): CallScope {
  const { caller, context, progress } = parts;
  const { mcpReq, sessionId } = context;
  const { signal, onUpdate, onLog } = own;
  return {
    channel: 'mcp',
    ...(sessionId === undefined ? {} : { conversationId: sessionId }),
    ...own,
    data: { ...own.data, mcp: caller },
    signal: signal ? AbortSignal.any([signal, parts.signal]) : parts.signal,
    onUpdate(update, call) {
      progress.report(update);
      return onUpdate?.(update, call);
    },
    onLog(entry, call) {
      const { level, message, fields } = entry;
      mcpReq
        .log(LEVELS[level], fields ? { message, ...fields } : message, call.tool)
        // The client is gone, or a field is no JSON.
        .catch(() => {});
      return onLog?.(entry, call);
    },
  };
}
