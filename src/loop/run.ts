import type { Answer, CallScope } from '../contract/call.js';
import type { SchemaSource, ValueOf } from '../contract/json-schema.js';
import type { Message } from '../contract/llm-provider.js';
import type { RunState } from '../contract/run-state.js';
import { streamRun, type ToolLoopResult, type ToolLoopStream } from './events.js';
import { driveRun } from './kept-run.js';
import {
  checkRun,
  type ResumeConfig,
  type ResumeOptions,
  readResume,
  type ToolLoopConfig,
} from './options.js';
import { resumeWith } from './resume.js';

/**
 * Runs the loop of model and tools until the model answers without calls.
 *
 * It returns and does not reject: what the model, a tool or the provider did wrong is in `status`, `error`
 * and `toolCalls`, and `messages` is a valid history on every path. The input array is not changed.
 *
 * @throws InvalidOptionsError for options that are none, ToolDeclarationError for tools that are none, and `ToolLoopLimitReached` with `onLimit: 'throw'`.
 *
 * @example
 * ```ts
 * const run = await runToolLoop(
 *   { provider, model: 'gpt-5', tools },
 *   [{ role: 'user', content: 'Which orders are open?' }],
 *   { data: { userId: 'u1' } },
 * );
 * console.log(run.status, run.content);
 * ```
 */
export async function runToolLoop<Source extends SchemaSource = SchemaSource>(
  config: ToolLoopConfig & { readonly output?: Source },
  messages: readonly Message[],
  scope: CallScope = {},
): Promise<ToolLoopResult & { readonly output?: ValueOf<Source> }> {
  checkRun({ config, scope, messages });
  const result = await driveRun(config, { messages }, { scope });
  return result as ToolLoopResult & { readonly output?: ValueOf<Source> };
}

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
      drive: (signal, sink) => driveRun({ ...config, signal }, { messages }, { scope, sink }),
    };
  });
}

/**
 * Goes on with a suspended run. Answers come in any order, by the ids of `pending`; as long as
 * some are missing, the run stays suspended and nothing runs. Then the calls that waited are made, those that
 * had run are not made again, and the loop goes on. Tools are looked up anew by name, and the scope is given
 * again, so that another process can do this. A yes may come with other `arguments`: they are checked like a
 * model's before anything runs, and what is wrong with them is `InvalidAnswer`.
 *
 * The run keeps what it had: its model; of the given tools, those that it was offered before; and its owner, whose
 * scope must be given. Whoever answers for the owner is named apart: `{ scope, answeredBy }`.
 *
 * It returns and does not reject for the same things as `runToolLoop`.
 *
 * @throws ToolwrightError `InvalidAnswer` (514) for unknown, repeated and unfitting answers, and `InvalidState`
 *   (515) for a state that was changed, `RunNotAllowed` (523) for a scope of another owner; all of them change
 *   nothing, and the state can be resumed again.
 *
 * @example
 * ```ts
 * const run = await runToolLoop(config, messages, { data: { userId: 'u1' } });
 * if (run.status === 'suspended') {
 *   const answers = (run.pending ?? []).map(({ id }) => ({ id, approved: true }));
 *   const resumed = await resumeToolLoop(config, run.state, answers, { data: { userId: 'u1' } });
 *   console.log(resumed.content);
 * }
 * ```
 */
export async function resumeToolLoop(
  config: ResumeConfig,
  state: RunState | undefined,
  answers: readonly Answer[],
  options: ResumeOptions | CallScope = {},
): Promise<ToolLoopResult> {
  const read = readResume({ config, options });
  const start = await resumeWith(config, state, { ...read, answers });
  return driveRun(config, start, { scope: read.scope ?? {} });
}

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
      drive: async (signal, sink) =>
        driveRun({ ...config, signal }, await start, { scope: read.scope ?? {}, sink }),
    };
  });
}
