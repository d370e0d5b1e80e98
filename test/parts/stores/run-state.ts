import type { RunState } from 'toolwright';

/** The state of a run or a turn whose pending call expired in 2020. */
export function expiredState(runId: string, turnOf?: string): RunState {
  const waits = { id: 'a', callId: 'call_1', kind: 'approval', tool: 'pay', arguments: {} } as const;
  const pending = ['2030-01-01T00:00:00.000Z', '2020-01-01T00:00:00.500Z'].map((expiresAt) => ({
    ...waits,
    expiresAt,
  }));
  return { ...runState(runId, 1), pending, ...(turnOf === undefined ? {} : { turnOf }) };
}

/** The state of a run without pending calls, as a store receives it. */
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
