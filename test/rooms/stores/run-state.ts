import type { RunState } from 'toolwright';

/** A state as a store gets one: of a run that waits for nothing in particular. */
export function runState(runId: string, revision: number, texts: readonly string[] = []): RunState {
  return {
    version: 1,
    runId,
    revision,
    messages: texts.map((content) => ({ role: 'user', content })),
    open: { content: '', calls: [] },
    pending: [],
    toolCalls: [],
    iterations: revision,
    usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
    retries: { byTool: [], unknown: 0 },
  };
}
