import type { JsonObject } from '../contract/json-schema.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { failedResult } from './failed-result.js';
import type { PerformedCall } from './performed-call.js';
import type { Replay } from './replay.js';
import type { Ended } from './run-tool.js';
import { suspended } from './suspend-call.js';
import { type WritingParts, writeEnding } from './write-ending.js';

/** A body that has ended, and what it asked meanwhile. */
export interface EndedRun {
  readonly ended: Ended;
  /** In JSON form. */
  readonly checked: JsonObject;
  readonly replay: Replay | undefined;
}

/**
 * What came of a body: its end, unless it asked a question that has no answer yet. Then the call waits,
 * whatever the body made of it; an abort comes before that.
 */
export function concludeRun(
  parts: WritingParts,
  { ended, checked, replay }: EndedRun,
): PerformedCall | Promise<PerformedCall> {
  if (replay === undefined || parts.environment.scope.signal?.aborted) return writeEnding(parts, ended);
  if (replay.refused !== undefined) return refused(replay.refused);
  return replay.isSuspended ? suspend(parts, { checked, replay }) : writeEnding(parts, ended);
}

function refused(error: ToolwrightError): PerformedCall {
  return { status: 'refused', result: failedResult('NotExecutableHere', error.message) };
}

async function suspend(
  { tool }: WritingParts,
  { checked, replay }: { readonly checked: JsonObject; readonly replay: Replay },
): Promise<PerformedCall> {
  try {
    return suspended(tool.name, await replay.suspension(checked));
  } catch (error) {
    // The method asked something else than before: its author's mistake, and told as any error of a tool.
    if (!ToolwrightError.is(error)) throw error;
    return { status: 'error', result: failedResult('ToolExecutionFailed', error.message, error) };
  }
}
