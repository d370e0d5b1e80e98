import type { CallJournal } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { Reconciliation } from '../../core/contract/tool.js';
import { type SerializedToolResult, ToolResult } from '../../core/contract/tool-result.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { withinLimits } from '../../core/kernel/async.js';
import { copyOfJson, isRecord, plainJson } from '../../core/kernel/json.js';
import { summarizeFaults } from '../../tools/checking/faults.js';
import { blockOf, mayHaveApproved } from './allow.js';
import { logThrown } from './call-log.js';
import { argumentsBefore, type ReadyArguments, readRaw } from './check-arguments.js';
import { invalidTool, readyArguments, takeArguments } from './check-call.js';
import { type Call, contextOf, limitsOf, type ReceivedCall } from './context.js';
import type { Block, CallOutcome, CallRequest } from './invocation.js';
import { blockedResult, suspended } from './run-body.js';
import {
  approvalWait,
  approverField,
  askedAgain,
  changedSince,
  changeOfArguments,
  GONE,
  withoutApproval,
} from './waits.js';

/** The outcome that an answer determines for a call; `undefined` if it must be executed. */
function decisionFor({ refused, result, outcome }: Partial<CallJournal> = {}): Block | undefined {
  if (refused !== undefined) {
    const { reason = 'it was not approved', expired: isExpired = false } = refused;
    return { type: 'refused', reason, isExpired, isAnswer: true };
  }
  if (result !== undefined) return { type: 'returned', value: givenResult(result.value) };
  return outcome?.status === 'done' ? { type: 'returned', value: givenResult(outcome.value) } : undefined;
}

/** A result may be in the form in which `JSON.stringify` writes a `ToolResult`. */
function givenResult(value: unknown): unknown {
  return isSerializedResult(value) ? ToolResult.fromJSON(value) : value;
}

/**
 * The outcome of a call that cannot be executed as it is now. If it may have been executed before, its known or
 * decided outcome wins. If it was approved for an earlier version of its tool, a new approval is requested.
 */
export async function endWithoutCall(call: ReceivedCall, outcome: CallOutcome): Promise<CallOutcome> {
  const known = await knownOutcome(call);
  if (known !== undefined) return known;
  if (outcome.status !== 'rejected') return outcome;
  return askAgain(call, call.tool === undefined ? GONE : summarizeFaults(outcome.faults ?? [])) ?? outcome;
}

/**
 * The outcome of a call that may have been executed before and cannot be executed now; `undefined` if it was not
 * executed.
 */
async function knownOutcome(call: ReceivedCall): Promise<CallOutcome | undefined> {
  const { request, tool } = call;
  const { journal, hasBegun, readOnly } = request;
  let decision = decisionFor(journal);
  if (!hasBegun && decision === undefined) return undefined;
  // They were checked when the call was made.
  const read = request.read ?? readRaw(request.arguments);
  const args = journal?.arguments ?? (read.ok ? read.value : {});
  const made = Object.assign(call, { checked: args, args });
  if (decision === undefined && hasBegun && !readOnly && !tool?.annotations?.readOnly)
    decision =
      tool === undefined ? unknownOutcome(call) : await blockOfBegun(made as Call, { isMakeable: false });
  if (decision !== undefined)
    return blockedResult({ ...made, tool: tool ?? { name: request.name } }, decision);
  call.checked = undefined;
  return undefined;
}

/** Requests a new approval, because the model would only see a failure; `undefined` if the call had no approval. */
function askAgain(call: ReceivedCall, problem: string): CallOutcome | undefined {
  const { request, environment, tool } = call;
  const { name, journal } = request;
  if (!journal?.approved || !environment.canSuspend) return undefined;
  const { edited: _, ...known } = withoutApproval(journal);
  const { edited, answers, once, reasks: before = 0 } = journal;
  if (answers.length + once.length > 0 || (edited !== undefined && !edited.isChecked)) return undefined;
  const args = edited?.original ?? journal.arguments;
  const reasks = before + 1;
  const wait = approvalWait(tool?.approval, {
    args,
    answerWithinMs: environment.answerWithinMs,
    onError: (error) => logThrown(call, 'The description of an approval could not be written', error),
  });
  call.checked = args;
  const waits = [askedAgain(wait, changedSince(name, problem), reasks)];
  return suspended(name, { waits, journal: { ...known, arguments: args, reasks } });
}

/** Step "check" of a repeated call: uses the approver's arguments, if they were edited. */
export async function checkAgain(call: Call): Promise<CallOutcome | undefined> {
  const { request } = call;
  const { journal } = request;
  try {
    const edited = journal?.edited && editedRequest(request, journal, journal.arguments);
    let ready = await readyArguments(call, edited ?? request);
    let change = journal && 'ok' in ready ? changeSince(journal, ready) : undefined;
    if (journal && edited === undefined && change !== undefined) {
      // An approval is valid as long as the tool accepts the approved arguments, even if it would read the model's
      // arguments differently now.
      const asked = await readyArguments(call, editedRequest(request, journal, journal.arguments));
      if ('ok' in asked && asked.ok && changeSince(journal, asked) === undefined) {
        ready = { ...asked, transformed: copyOfJson(journal.arguments) as JsonObject };
        change = undefined;
      }
    }
    if (journal?.approved && change !== undefined) call.change = changedSince(request.name, change);
    if (journal?.edited?.isChecked && change !== undefined) {
      // The tool would now receive other arguments than the approved ones: the call starts over as the model sent it.
      const known = await knownOutcome(call);
      if (known !== undefined) return known;
      const { journal: _, hasBegun: __, ...asSent } = request;
      ready = await readyArguments(call, asSent);
      const again = 'ok' in ready && !ready.ok ? askAgain(call, summarizeFaults(ready.faults)) : undefined;
      if (again !== undefined) return again;
      call.request = asSent;
    }
    const outcome = takeArguments(call, ready);
    if (outcome !== undefined) return outcome.status === 'aborted' ? outcome : endWithoutCall(call, outcome);
    const { journal: kept, ...others } = call.request;
    if (kept?.edited !== undefined) call.request = editedRequest(call.request, kept, call.checked);
    // Decisions about other arguments are dropped, as a schema may have a new default; outcomes are kept.
    else if (kept !== undefined && change !== undefined && !decisionFor(kept)) call.request = others;
    return undefined;
  } catch (cause) {
    return endWithoutCall(call, invalidTool(call, cause));
  }
}

/** How a call would now differ from the approved one, or its fault; `undefined` if it does not differ. */
function changeSince({ arguments: asked }: CallJournal, ready: ReadyArguments): string | undefined {
  return ready.ok ? changeOfArguments(asked, ready.value) : summarizeFaults(ready.faults);
}

/** A call with other arguments than the model's. They are serialized, so that the tool cannot change them. */
function editedRequest(request: CallRequest, journal: CallJournal, args: JsonObject): CallRequest {
  const { read: _, ...others } = request;
  const { original } = journal.edited ?? { original: journal.arguments };
  const text = JSON.stringify(args);
  return {
    ...others,
    arguments: plainJson(args),
    text,
    // The editor of arguments sees the ones that would run.
    isTransformed: true,
    journal: { ...journal, arguments: JSON.parse(text), edited: { original, isChecked: true } },
  };
}

/** Step "allow" of a repeated call: earlier decisions and possible effects come first. */
export async function allowAgain(call: Call): Promise<CallOutcome | undefined> {
  const { journal, hasBegun, asJob } = call.request;
  const { tool, environment } = call;
  const reported = journal?.given?.findLast(({ kind }) => kind === 'outcome');
  // Letting a call run again requires the rights of its approver; otherwise the answer does not count.
  const mayHaveRun =
    journal?.outcome === undefined
      ? hasBegun
      : journal.outcome.status === 'not-done' && !mayHaveApproved(call, reported?.answeredBy);
  const { readOnly, idempotent } = tool.annotations ?? {};
  // A job has the key of its call, so it is not started twice.
  const isJobAgain = asJob !== false && tool.background && environment.jobs !== undefined;
  let block = decisionFor(journal);
  // Before the policies, because a refusal would report that the call was not executed.
  if (block === undefined && mayHaveRun && !(readOnly || idempotent || isJobAgain))
    block = await blockOfBegun(call, { isMakeable: true });
  if (block !== undefined) return blockedResult(call, block);
  block = await blockOf(call);
  if (block === undefined) return undefined;
  return blockedResult(call, mayHaveRun ? await blockOfRepeat(call, block) : block);
}

/**
 * The block of a repeated call that a policy or an approval does not allow: refusing it, or executing it with other
 * arguments, would ignore a possible earlier effect.
 */
async function blockOfRepeat(call: Call, block: Block): Promise<Block> {
  const isForbidden = block.type === 'refused' || (block.type === 'waits' && block.wait.kind === 'approval');
  if (!isForbidden || call.tool.annotations?.readOnly) return block;
  const known = (await blockOfBegun(call, { isMakeable: false })) ?? block;
  if (known.type !== 'waits' || known.wait.kind !== 'outcome') return known;
  const message = `The call of '${call.request.name}' had begun when its process died, and is not allowed to be repeated as it is. It is not known whether it was done.`;
  return { ...known, wait: { ...known.wait, message } };
}

/**
 * What prevents a call that was interrupted by a crash from being executed again; `undefined` if it may be executed.
 */
async function blockOfBegun(
  call: Call,
  { isMakeable }: { readonly isMakeable: boolean },
): Promise<Block | undefined> {
  const known = await reconciled(call);
  if (known.status === 'done') return { type: 'returned', value: known.result };
  if (known.status === 'not-done') return undefined;
  return isMakeable && call.environment.onUnknown === 'rerun' ? undefined : unknownOutcome(call);
}

function unknownOutcome({ request, environment, tool }: ReceivedCall): Block {
  const message = `The process died while '${request.name}' ran. It is not known whether it was done.`;
  if (environment.onUnknown === 'error')
    return {
      type: 'error',
      error: new ToolwrightError(
        'OutcomeUnknown',
        `${message} Check that, or ask, before you call it again.`,
      ),
    };
  const { reruns: index = 0 } = request.journal ?? {};
  return { type: 'waits', wait: { kind: 'outcome', index, message, ...approverField(tool?.approval) } };
}

/** The tool's own finding about an interrupted call. If it fails, the outcome is unknown. */
async function reconciled(call: Call): Promise<Reconciliation> {
  const { tool, request, log } = call;
  if (tool.reconcile === undefined) return { status: 'unknown' };
  const context = contextOf(call);
  const { idempotencyKey } = context;
  const begun = { callId: request.id, idempotencyKey, arguments: argumentsBefore(call) };
  try {
    const known: unknown = await withinLimits(tool.reconcile(begun, context), limitsOf(call));
    if (isRecord(known) && STATUSES.includes(String(known.status))) return known as Reconciliation;
    log.ignored('What a tool said of a call that had begun says nothing', { known });
  } catch (error) {
    logThrown(call, 'A tool could not say what came of a call that had begun', error);
  }
  return { status: 'unknown' };
}

const STATUSES = ['done', 'not-done', 'unknown'];

/** Whether a value has the form in which `JSON.stringify` writes a {@link ToolResult}. */
function isSerializedResult(value: unknown): value is SerializedToolResult {
  if (typeof value !== 'object' || value === null) return false;
  const { for_llm, for_user = '', silent, is_error, async } = value as Partial<Record<string, unknown>>;
  const flags = [silent, is_error, async];
  return (
    typeof for_llm === 'string' &&
    typeof for_user === 'string' &&
    flags.every((flag) => typeof flag === 'boolean')
  );
}
