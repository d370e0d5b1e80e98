import type { CallJournal } from '../contract/call.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { Reconciliation } from '../contract/tool.js';
import { isSerializedResult, ToolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { withinLimits } from '../kernel/async.js';
import { isRecord } from '../kernel/json.js';
import { argumentsBefore, readRaw } from './check-arguments.js';
import { type Call, contextOf, limitsOf, type ReceivedCall } from './context.js';
import type { CallRequest, Obstacle } from './invocation.js';

/** Whether a call may have been made before: a failure to make it again would tell of something done that it was not. */
export function mayBeDone({ hasBegun, journal }: CallRequest): boolean {
  return hasBegun === true || (journal !== undefined && wordOn(journal) !== undefined);
}

/** How a call ends of which somebody has said so; `undefined` where it is to be made. */
export function wordOn({ refused, result, outcome }: CallJournal): Obstacle | undefined {
  if (refused !== undefined) {
    const { reason = 'it was not approved', expired: isExpired = false } = refused;
    return { how: 'refused', reason, isExpired, isAnswer: true };
  }
  if (result !== undefined) return { how: 'returned', value: givenResult(result.value) };
  return outcome?.status === 'done' ? { how: 'returned', value: givenResult(outcome.value) } : undefined;
}

/** Whoever gives a result may word it as `JSON.stringify` writes a `ToolResult`. */
function givenResult(value: unknown): unknown {
  return isSerializedResult(value) ? ToolResult.fromJSON(value) : value;
}

/**
 * The same of a call whose tool does not take its arguments here. What somebody has said of it counts, and a call that had
 * begun is asked about.
 */
export async function wordOnUnmade(call: Call): Promise<Obstacle | undefined> {
  const { request, tool } = call;
  const word = request.journal && wordOn(request.journal);
  if (word !== undefined || !request.hasBegun || request.readOnly || tool.annotations?.readOnly) return word;
  return obstacleOf(call, { isMakeable: false });
}

/** The same of a call whose tool is gone. */
export function wordOnGone(received: ReceivedCall): Obstacle | undefined {
  const { journal, hasBegun, readOnly } = received.request;
  const word = journal && wordOn(journal);
  return word ?? (hasBegun && !readOnly ? unknownOutcome(received) : undefined);
}

/**
 * What keeps a call from being made again that had begun when its process died: its result where the tool knows it,
 * or that nobody knows. `undefined` where it may be made.
 */
export async function obstacleOfBegun(call: Call): Promise<Obstacle | undefined> {
  const { tool, environment, request } = call;
  const { readOnly, idempotent } = tool.annotations ?? {};
  // A job has the key of its call: one that was started is not started again.
  const isJobAgain = request.asJob !== false && tool.background && environment.jobs !== undefined;
  if (readOnly || idempotent || isJobAgain) return undefined;
  return obstacleOf(call, { isMakeable: true });
}

/**
 * The same of a call that could be made again, but for a policy or an approval: to refuse it, or to make it with other
 * arguments, would ignore what it may have done.
 */
export async function obstacleOfRepeat(call: Call, obstacle: Obstacle): Promise<Obstacle> {
  const isForbidden =
    obstacle.how === 'refused' || (obstacle.how === 'waits' && obstacle.wait.kind === 'approval');
  if (!isForbidden || call.tool.annotations?.readOnly) return obstacle;
  const known = (await obstacleOf(call, { isMakeable: false })) ?? obstacle;
  if (known.how !== 'waits' || known.wait.kind !== 'outcome') return known;
  const message = `The call of '${call.request.name}' had begun when its process died, and is not allowed to be repeated as it is. It is not known whether it was done.`;
  return { ...known, wait: { ...known.wait, message } };
}

async function obstacleOf(
  call: Call,
  { isMakeable }: { readonly isMakeable: boolean },
): Promise<Obstacle | undefined> {
  const known = await reconciled(call);
  if (known.status === 'done') return { how: 'returned', value: known.result };
  if (known.status === 'not-done') return undefined;
  return isMakeable && call.environment.onUnknown === 'rerun' ? undefined : unknownOutcome(call);
}

function unknownOutcome({ request, environment }: ReceivedCall): Obstacle {
  const message = `The process died while '${request.name}' ran. It is not known whether it was done.`;
  if (environment.onUnknown === 'error')
    return {
      how: 'threw',
      error: new ToolwrightError(
        'OutcomeUnknown',
        `${message} Check that, or ask, before you call it again.`,
      ),
    };
  return { how: 'waits', wait: { kind: 'outcome', index: request.journal?.reruns ?? 0, message } };
}

/** What the tool itself says of a call that had begun. One that cannot say it knows nothing. */
async function reconciled(call: Call): Promise<Reconciliation> {
  const { tool, request, log } = call;
  if (tool.reconcile === undefined) return { status: 'unknown' };
  const context = contextOf(call);
  const { idempotencyKey } = context;
  const begun = { callId: request.id, idempotencyKey, arguments: argumentsBefore(call) };
  try {
    const known: unknown = await withinLimits(tool.reconcile(begun, context), limitsOf(call));
    if (isReconciliation(known)) return known;
    log.ignored('What a tool said of a call that had begun says nothing', { known });
  } catch (error) {
    log.ignored('A tool could not say what came of a call that had begun', { error });
  }
  return { status: 'unknown' };
}

function isReconciliation(known: unknown): known is Reconciliation {
  return isRecord(known) && ['done', 'not-done', 'unknown'].includes(String(known.status));
}

/** The arguments of a call that was made before: they were checked then. */
export function argumentsOfBegun({ journal, read, arguments: sent }: CallRequest): JsonObject {
  if (journal !== undefined) return journal.arguments;
  const known = read ?? readRaw(sent);
  return known.ok ? known.value : {};
}
