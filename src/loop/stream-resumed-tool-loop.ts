import type { CallScope } from '../contract/call-scope.js';
import type { RunState } from '../contract/run-state.js';
import type { Answer } from '../contract/suspension.js';
import { driveLoop } from './drive-loop.js';
import { type ResumeConfig, type ResumeOptions, readResume } from './resume-options.js';
import { resumeWith } from './resume-tool-loop.js';
import { streamRun, type ToolLoopStream } from './stream-run.js';

/**
 * Goes on with a suspended run as `resumeToolLoop` does, and yields what happens as `streamToolLoop` does.
 * Calls that waited start again; those that had run are not told of a second time.
 *
 * Wrong answers and changed states reject the first read and `result`, with the same errors as there.
 *
 * @example
 * ```ts
 * for await (const event of streamResumedToolLoop(config, state, [{ id: 'approval_…', approved: true }])) {
 *   if (event.type === 'text-delta') process.stdout.write(event.text);
 * }
 * ```
 */
export function streamResumedToolLoop(
  config: ResumeConfig,
  state: RunState | undefined,
  answers: readonly Answer[],
  options: ResumeOptions | CallScope = {},
): ToolLoopStream {
  return streamRun(() => {
    const read = readResume({ config, options });
    const start = resumeWith(config, state, { ...read, answers });
    return {
      signal: config.signal,
      drive: (signal, sink) => driveLoop({ ...config, signal }, start, { scope: read.scope ?? {}, sink }),
    };
  });
}
