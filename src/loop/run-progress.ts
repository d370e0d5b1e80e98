import type { LoopRun } from './begin-run.js';
import type { RunProgress } from './loop-state.js';
import { storedRecord } from './stored-call.js';

/** How far a run has come; what is in it is still the run's own. */
export function progressOf({ state, retries, guard, owner, offered, tools, config }: LoopRun): RunProgress {
  const { messages, toolCalls, iterations, usage } = state;
  return {
    ...(owner === undefined ? {} : { owner }),
    // Those that were registered while it went on are its own, too.
    tools: [...new Set([...offered, ...tools.list()])],
    model: config.model,
    messages,
    toolCalls: toolCalls.map(storedRecord),
    iterations,
    usage,
    retries: retries.spent,
    ...(guard === undefined ? {} : { guard: guard.memory }),
  };
}
