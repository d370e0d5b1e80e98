import type { CallScope } from '../contract/call-scope.js';
import type { Message } from '../contract/message.js';
import { checkRun } from './check-config.js';
import { driveLoop } from './drive-loop.js';
import type { ToolLoopConfig } from './loop-config.js';
import { streamRun, type ToolLoopStream } from './stream-run.js';

/**
 * Runs the loop and yields what happens as it happens: text as the model writes it, calls with their
 * progress and their ends. A slow reader slows the run; leaving the iteration aborts it, and `result` is
 * then the aborted run with a valid history. The run begins with the iteration, or when `result` is asked
 * for; without an iteration nothing waits for a reader.
 *
 * @example
 * ```ts
 * const run = streamToolLoop({ provider, model: 'gpt-5', tools }, messages);
 * for await (const event of run) {
 *   if (event.type === 'text-delta') process.stdout.write(event.text);
 * }
 * const { status, usage } = await run.result;
 * ```
 */
export function streamToolLoop(
  config: ToolLoopConfig,
  messages: readonly Message[],
  scope: CallScope = {},
): ToolLoopStream {
  return streamRun(() => {
    checkRun({ config, scope, messages });
    return {
      signal: config.signal,
      drive: (signal, sink) => driveLoop({ ...config, signal }, { messages }, { scope, sink }),
    };
  });
}
