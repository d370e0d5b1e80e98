import type { RunCheckpoint, RunEntry } from 'toolwright';
import { runState } from './run-state.js';

/** A running run, as a store receives it. */
export function runCheckpoint(runId: string, texts: readonly string[] = [], revision = 0): RunCheckpoint {
  const { open: _open, pending: _pending, ...progress } = runState(runId, revision, texts);
  return { ...progress, status: 'running' };
}

/** A step with one call, identified by its text. */
export function stepEntry(text: string): RunEntry {
  const call = { status: 'begun', id: 'call_1', name: 'work', arguments: { text } } as const;
  return {
    type: 'step',
    messages: [{ role: 'user', content: text }],
    iterations: 1,
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
    open: { content: text, calls: [call] },
  };
}

/** The end of a run. */
export function endEntry(content: string): RunEntry {
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
  return { type: 'end', messages: [], status: 'completed', content, iterations: 1, usage };
}
