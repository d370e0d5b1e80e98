import type { ServerContext } from '@modelcontextprotocol/server';
import type { ProgressUpdate } from '../../contract/tool-context.js';

/** Passes a tool's news on to a client; `stop` when the call is answered, for nothing may follow that. */
export interface ProgressReporter {
  report(update: ProgressUpdate): void;
  stop(): void;
}

interface Step {
  readonly progress?: number;
  readonly total?: number;
  readonly message?: string;
}

/**
 * Sends `notifications/progress`, where the client asked for it. What a tool reports may be a number, a text,
 * `{ progress, total?, message? }`, or any value; what is no number is counted. MCP wants progress to rise, so
 * that a number that does not is passed over.
 */
export function reportProgress({ mcpReq }: ServerContext): ProgressReporter {
  const progressToken = mcpReq._meta?.progressToken;
  let last: number | undefined;
  let isOpen = progressToken !== undefined;
  return {
    report(update) {
      const { progress = (last ?? 0) + 1, ...step } = readStep(update);
      if (!isOpen || (last !== undefined && progress <= last)) return;
      last = progress;
      mcpReq
        .notify({ method: 'notifications/progress', params: { progressToken, progress, ...step } })
        // The client is gone; whether anybody still wants the call is not decided here.
        .catch(() => {});
    },
    stop() {
      isOpen = false;
    },
  };
}

function readStep(update: ProgressUpdate): Step {
  if (typeof update === 'number' && Number.isFinite(update)) return { progress: update };
  if (typeof update === 'string') return { message: update };
  if (typeof update !== 'object' || update === null) return {};
  const { progress, total, message, content } = update as Readonly<Record<string, unknown>>;
  const words = typeof message === 'string' ? message : textOf(content);
  return {
    ...(Number.isFinite(progress) ? { progress: progress as number } : {}),
    ...(Number.isFinite(total) ? { total: total as number } : {}),
    ...(words === undefined || words === '' ? {} : { message: words }),
  };
}

/** Updates of agent tools carry content. */
function textOf(content: unknown): string | undefined {
  if (!Array.isArray(content)) return undefined;
  return content.flatMap((part) => (typeof part?.content === 'string' ? [part.content] : [])).join('\n');
}
