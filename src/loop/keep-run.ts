import type { RunStore } from '../contract/run-store.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from '../invocation/error-message.js';
import type { ToolLoopResult } from './loop-result.js';

/** Keeps a suspended run in the store. A store that fails ends the run; its state is still in the result. */
export async function keepRun(
  result: ToolLoopResult,
  store: Pick<RunStore, 'save'> | undefined,
): Promise<ToolLoopResult> {
  if (store === undefined || result.state === undefined) return result;
  try {
    await store.save(result.state);
    return result;
  } catch (cause) {
    const message = `The suspended run could not be kept: ${errorMessage(cause)}`;
    return { ...result, status: 'failed', error: new ToolwrightError('RunStoreFailed', message, { cause }) };
  }
}
