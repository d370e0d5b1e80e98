import type { JsonObject } from '../contract/json-schema.js';
import type { Suspension } from '../contract/suspension.js';
import type { ToolwrightError } from '../errors/toolwright-error.js';
import { argumentsBefore } from './arguments-before.js';
import type { CallContext } from './call-context.js';
import { failedResult } from './failed-result.js';
import type { PerformedCall } from './performed-call.js';
import type { PermittedCall } from './permitted-call.js';
import type { Replay } from './replay.js';
import { awaitWork, type Ended } from './run-tool.js';
import { suspended } from './suspend-call.js';
import { writeEnding } from './write-ending.js';

/** The call that is concluded. */
export type ConcludedCall = Pick<PermittedCall, 'tool' | 'plan' | 'call' | 'environment' | 'log'>;

/** A body that has ended. */
export interface EndedRun {
  readonly ended: Ended;
  /** In JSON form. */
  readonly checked: JsonObject;
  readonly context: CallContext;
}

/**
 * What came of a body: its end, unless it asked a question that has no answer yet. Then the call waits,
 * whatever the body made of it; an abort comes before that.
 */
export function concludeRun(
  call: ConcludedCall,
  { ended, checked, context }: EndedRun,
): PerformedCall | Promise<PerformedCall> {
  const { replay } = context;
  if (replay === undefined || call.environment.scope.signal?.aborted) return writeEnding(call, ended);
  if (replay.refused !== undefined) return refused(replay.refused);
  return replay.isSuspended ? suspend(call, { checked, context, replay }) : writeEnding(call, ended);
}

function refused(error: ToolwrightError): PerformedCall {
  return { status: 'refused', result: failedResult('NotExecutableHere', error.message) };
}

/** The work that is waited for may hang like any body: the same limits hold. */
function suspend(
  concluded: ConcludedCall,
  { checked, context, replay }: Omit<EndedRun, 'ended'> & { readonly replay: Replay },
): Promise<PerformedCall> {
  const onEnd = (ended: Ended): PerformedCall =>
    ended.how === 'returned'
      ? suspended(concluded.tool.name, ended.value as Suspension)
      : writeEnding(concluded, ended);
  const suspension = replay.suspension(argumentsBefore(concluded, checked));
  return awaitWork<PerformedCall>({ ...concluded, args: {}, context, onEnd }, suspension);
}
