import type { CallScope } from '../contract/call-scope.js';
import type { Message } from '../contract/message.js';
import { checkRun } from './check-config.js';
import { driveLoop } from './drive-loop.js';
import type { ToolLoopConfig } from './loop-config.js';
import type { ToolLoopResult } from './loop-result.js';

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
export async function runToolLoop(
  config: ToolLoopConfig,
  messages: readonly Message[],
  scope: CallScope = {},
): Promise<ToolLoopResult> {
  checkRun({ config, scope, messages });
  return driveLoop(config, { messages }, { scope });
}
