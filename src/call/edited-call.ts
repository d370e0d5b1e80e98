import { summarizeFaults } from '../checking/faults.js';
import type { CallJournal, CallRecord, StandingYes } from '../contract/call.js';
import type { JsonObject } from '../contract/json-schema.js';
import { withinLimits } from '../kernel/async.js';
import { errorMessage } from '../kernel/error-message.js';
import { canonicalJson, plainJson } from '../kernel/json.js';
import { checkArguments, type ReadyArguments } from './check-arguments.js';
import type { CallEnvironment, CallRequest } from './invocation.js';
import { planOf } from './plan.js';

/** A call as it is checked: with the arguments of whoever approved it, where those are not the model's. */
export function asEdited(request: CallRequest): CallRequest {
  const { journal } = request;
  return journal?.edited === undefined ? request : editedRequest(request, journal, journal.arguments);
}

/** A call with other arguments than the model's: written out, so that what the tool does to them changes nothing. */
export function editedRequest(request: CallRequest, journal: CallJournal, args: JsonObject): CallRequest {
  const { read: _, ...others } = request;
  const { original } = journal.edited ?? { original: journal.arguments };
  const text = JSON.stringify(args);
  return {
    ...others,
    arguments: plainJson(args),
    text,
    // Whoever edits them sees what would run.
    isTransformed: true,
    journal: { ...journal, arguments: JSON.parse(text), edited: { original, isChecked: true } },
  };
}

/** Whether edited arguments that were checked before are still what the tool would get. */
export function countsFor(journal: CallJournal, ready: ReadyArguments): boolean {
  return ready.ok && canonicalJson(ready.value) === canonicalJson(journal.arguments);
}

/** The record of a call with what it tells of its approval; whatever the tool has done to its arguments since. */
export function withApproval(
  record: CallRecord,
  {
    request: { journal },
    standing = journal?.standing,
  }: { readonly request: CallRequest; readonly standing?: StandingYes | undefined },
): CallRecord {
  const stood = standing === undefined ? record : { ...record, standing };
  if (journal?.edited === undefined) return stood;
  const { original } = journal.edited;
  const given = journal.given?.findLast(({ kind }) => kind === 'approval');
  const by = given === undefined ? {} : { editedBy: given.answeredBy };
  return { ...stood, arguments: journal.arguments, edited: { original, ...by } };
}

/** Arguments as their tool would get them, in JSON form, or what is wrong with them. */
export type CheckedArguments =
  | { readonly ok: true; readonly arguments: JsonObject; readonly removed: readonly string[] }
  /** All faults in one sentence without its full stop. */
  | { readonly ok: false; readonly problem: string };

/** The steps find, read and check of a call, and no other. */
export async function checkOnly(
  { find, coerce, toolTimeoutMs }: CallEnvironment,
  request: CallRequest,
): Promise<CheckedArguments> {
  try {
    const found = find(request.name);
    if (found === undefined) return { ok: false, problem: `there is no tool '${request.name}'` };
    const tool = found.open();
    const checking = checkArguments(tool, planOf(found, tool, coerce), request);
    const timeoutMs = tool.timeoutMs ?? toolTimeoutMs ?? CHECK_MS;
    const ready = await withinLimits(checking, { signal: undefined, timeoutMs });
    if (!ready.ok) return { ok: false, problem: summarizeFaults(ready.faults) };
    return { ok: true, arguments: ready.value, removed: ready.removed };
  } catch (error) {
    return { ok: false, problem: errorMessage(error) };
  }
}

/** For rules of classes that never answer. */
const CHECK_MS = 120_000;
