import { type CallJournal, isNobody, type PendingKind, type Wait } from '../../core/contract/call.js';
import type {
  Approval,
  ApprovalDecision,
  ApprovalNeed,
  Approver,
  ApproverRequest,
} from '../../core/contract/declaration.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { Remember } from '../../core/contract/standing-approvals.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import { checkArguments } from '../../core/errors/author-fault.js';
import { canonicalJson, copyOfJson, isRecord, plainJson, withoutUndefined } from '../../core/kernel/json.js';
import {
  ANY_VALUE,
  BOOLEAN,
  mistakenNames,
  type OptionRule,
  oneOf,
  optionTable,
  TEXT,
} from '../../core/kernel/options.js';
import { createResultChecker } from '../../tools/checking/checker.js';
import { summarizeFaults } from '../../tools/checking/faults.js';

/** Whether an approval is needed, as the author declared it. */
export function approvalNeed(approval: Approval | undefined): ApprovalNeed {
  return typeof approval === 'object' ? (approval.when ?? true) : (approval ?? false);
}

/** The restriction of who may approve calls of a tool; `undefined` if every user who may answer can approve. */
export function approverOf(approval: Approval | undefined): Exclude<Approver, 'may-answer'> | undefined {
  const approver = typeof approval === 'object' ? approval.approver : undefined;
  return approver === 'may-answer' ? undefined : approver;
}

/** The same as a field of a question. */
export function approverField(approval: Approval | undefined): Pick<Wait, 'approver'> {
  const approver = approverOf(approval);
  if (approver === undefined) return {};
  return { approver: typeof approver === 'function' ? 'function' : approver };
}

/** Whether an answer requires the rights of an approver: it lets its call run, or stands for its result. */
export function needsApprover(answer: object): boolean {
  return ('approved' in answer && answer.approved === true) || 'outcome' in answer;
}

/**
 * Whether a user may approve. Fails closed: a function must return exactly `true`, and in a run without an owner, no
 * user can be distinguished from the owner.
 */
export function mayApprove(
  approver: Exclude<Approver, 'may-answer'> | undefined,
  { answeredBy, owner, call }: ApproverRequest,
  onError: (error: unknown) => void,
): boolean {
  if (approver === undefined) return true;
  if (owner === undefined) return false;
  // Without `answeredBy`, the owner answers.
  const by = isNobody(answeredBy) ? owner : answeredBy;
  if (approver === 'not-the-owner')
    return formOf(by) === formOf(owner) && canonicalJson(by) !== canonicalJson(owner);
  try {
    const decision: unknown = approver(copyOfJson({ answeredBy: by, owner, call }) as ApproverRequest);
    // A promise is not a decision; its rejection must not end the process.
    if (decision instanceof Promise) decision.catch(() => {});
    return decision === true;
  } catch (error) {
    onError(error);
    return false;
  }
}

/**
 * The form of a user's identity, such as `{ user: string }`. Only identities of the same form can be compared:
 * `'alice'` and `{ user: 'alice', role: 'clerk' }` may be the same person.
 */
export function formOf(person: unknown): string {
  if (Array.isArray(person)) return `[${person.map(formOf).join(', ')}]`;
  if (!isRecord(person)) return person === null ? 'null' : typeof person;
  const fields = Object.keys(person).filter((name) => person[name] !== undefined);
  return `{ ${fields
    .sort()
    .map((name) => `${name}: ${formOf(person[name])}`)
    .join(', ')} }`;
}

/** The deadline of an answer; waits beyond the last date have none. */
export function expiryIn(milliseconds = Infinity): Pick<Wait, 'expiresAt'> {
  const at = new Date(Date.now() + milliseconds);
  return Number.isNaN(at.getTime()) ? {} : { expiresAt: at.toISOString() };
}

/** Why a call whose tool is missing cannot be approved. */
export const GONE = 'it was renamed or removed, or is no longer offered';

/** The message for a call whose tool has changed since the approval was requested. */
export function changedSince(tool: string, problem: string): string {
  return `The tool '${tool}' has changed since the approval of this call was requested: ${problem}.`;
}

/** How the arguments that would run differ from the approved ones; `undefined` if they do not. */
export function changeOfArguments(asked: JsonObject, now: JsonObject): string | undefined {
  const names = Object.keys({ ...asked, ...now });
  const changes = names.flatMap((name) => {
    if (!Object.hasOwn(now, name)) return `without '${name}'`;
    if (!Object.hasOwn(asked, name)) return `with '${name}' added`;
    return canonicalJson(asked[name]) === canonicalJson(now[name]) ? [] : `with another '${name}'`;
  });
  return changes.length === 0 ? undefined : `it would now run ${changes.join(', ')}`;
}

/** A question with a note about the change. The note is not in its message, which contains the reason of a policy. */
export function askedAgain(wait: Wait, change: string, index: number): Wait {
  const { description } = wait;
  if (description?.startsWith(change)) return { ...wait, index };
  return { ...wait, index, description: description === undefined ? change : `${change}\n${description}` };
}

/** The journal of a call whose approval is no longer valid, for the new question. */
export function withoutApproval(journal: CallJournal): CallJournal {
  const { approved: _1, remember: _2, standing: _3, given, ...known } = journal;
  const others = given?.filter(({ kind }) => kind !== 'approval') ?? [];
  return others.length === 0 ? known : { ...known, given: others };
}

/** The text for the approver, and the possible decisions. */
export function approvalWait(
  approval: Approval | undefined,
  {
    args,
    answerWithinMs,
    onError,
  }: {
    readonly args: JsonObject;
    readonly answerWithinMs?: number | undefined;
    readonly onError: (error: unknown) => void;
  },
): Wait {
  const own = typeof approval === 'object' ? approval : {};
  const { title, description: given, risk, decisions, remember, expiresInMs = answerWithinMs } = own;
  const { scopes = [], maxMs } = remember ?? {};
  const mayRemember = scopes.length === 0 ? undefined : withoutUndefined({ scopes, maxMs });
  let description = typeof given === 'string' ? given : undefined;
  try {
    if (typeof given === 'function') description = String(given(args));
  } catch (error) {
    onError(error);
  }
  const shown = { title, description, risk, decisions, mayRemember, ...approverField(approval) };
  return { kind: 'approval', index: 0, ...withoutUndefined(shown), ...expiryIn(expiresInMs) };
}

/** Whether the deadline for an answer has passed. */
export function isExpired({ expiresAt }: Pick<Wait, 'expiresAt'>, now = Date.now()): boolean {
  return expiresAt !== undefined && Date.parse(expiresAt) <= now;
}

/** An answer without the id of its wait. */
export type WaitAnswer =
  | { readonly result: unknown }
  | {
      readonly approved: boolean;
      readonly reason?: string;
      readonly arguments?: JsonObject;
      readonly remember?: Remember;
    }
  | { readonly value: unknown }
  | { readonly outcome: 'done'; readonly result?: unknown }
  | { readonly outcome: 'not-done' };

/** The journal with the answer, or why the answer does not match; `problem` is a sentence without its full stop. */
export type AnsweredWait =
  | { readonly ok: true; readonly journal: CallJournal }
  | { readonly ok: false; readonly problem: string };

/** A suspended call and its answered wait. */
export interface WaitInCall {
  readonly wait: Wait;
  readonly journal: CallJournal;
}

const EXPECTED: Readonly<Record<PendingKind, Readonly<Record<'noun' | 'field' | 'form', string>>>> = {
  client: { noun: 'a call of the client', field: 'result', form: '{ id, result }' },
  approval: {
    noun: 'an approval',
    field: 'approved',
    form: '{ id, approved: true }, { id, approved: true, arguments } or { id, approved: false, reason }',
  },
  question: { noun: 'a question', field: 'value', form: '{ id, value }' },
  outcome: {
    noun: 'an outcome',
    field: 'outcome',
    form: "{ id, outcome: 'done', result } or { id, outcome: 'not-done' }",
  },
};

const CALL: OptionRule = {
  accepts: (value) =>
    isRecord(value) &&
    isRecord(value.wait) &&
    Object.hasOwn(EXPECTED, String(value.wait.kind)) &&
    isRecord(value.journal),
  fix: '{ wait, journal } of a suspension: suspension.waits[0], suspension.journal',
};

/** An answer may also contain the fields of the pending call. */
const ANSWER = optionTable<
  Readonly<
    Record<'id' | 'result' | 'approved' | 'reason' | 'value' | 'outcome' | 'arguments' | 'remember', unknown>
  >
>(
  'an answer',
  {
    id: TEXT,
    result: { ...ANY_VALUE, fix: 'the result of the call' },
    approved: BOOLEAN,
    reason: TEXT,
    value: { ...ANY_VALUE, fix: 'the answer to the question' },
    outcome: oneOf('done', 'not-done'),
    arguments: { ...ANY_VALUE, fix: 'the edited arguments' },
    remember: { ...ANY_VALUE, fix: "{ scope: 'conversation' }" },
  },
  { answeredBy: '{ answeredBy } next to `scope`, in the last argument of the resume function' },
);

/**
 * Writes an answer into the journal of its call, which is then executed again. A refusal answers any wait. The given
 * journal does not change. Edited arguments are checked when the call is executed again; to check them earlier, use
 * `registry.check`.
 *
 * @example
 * ```ts
 * const first = await registry.invoke(call, scope);
 * if (first.status === 'suspended') {
 *   const { waits: [wait], journal } = first.suspension;
 *   const answered = wait && answerWait({ wait, journal }, { approved: true });
 *   if (answered?.ok) await registry.invoke({ ...call, journal: answered.journal }, scope);
 * }
 * ```
 */
export function answerWait(call: WaitInCall, answer: WaitAnswer): AnsweredWait {
  checkArguments({ of: 'answerWait', given: { call }, rules: { call: CALL } });
  const { wait, journal } = call;
  const { kind } = wait;
  const { noun, field, form } = EXPECTED[kind];
  if (!isRecord(answer)) return unfit(`the answer must be ${form}`);
  const [slip] = mistakenNames(answer, ANSWER);
  if (slip !== undefined) return unfit(`${slip.problem}; write ${slip.fix}`);
  if (isExpired(wait)) return unfit(`the time for an answer ended at ${wait.expiresAt}`);
  const given: Readonly<Record<string, unknown>> = answer;
  const { remember } = given;
  const isEdited = isEdit(given, journal);
  // Checked before conversion to JSON, because another value may look like an approval as JSON.
  if (Object.hasOwn(given, 'approved')) {
    const { approved, reason } = given;
    if (typeof approved !== 'boolean') return unfit('`approved` is neither true nor false');
    if (!approved && isEdited) return unfit(NO_EDIT);
    if (!approved && 'remember' in given) return unfit(NOT_REMEMBERED);
    const decision: ApprovalDecision = approved ? (isEdited ? 'edit' : 'approve') : 'refuse';
    const { decisions } = wait;
    if (kind === 'approval' && decisions !== undefined && !decisions.includes(decision))
      return unfit(`its tool allows only ${decisions.join(' or ')}, not ${decision}`);
    if (!approved) {
      if (reason !== undefined && typeof reason !== 'string') return unfit('`reason` is not a string');
      const refused = withoutUndefined({ reason });
      if (kind === 'outcome') return answered({ ...journal, refused, outcome: { status: 'unknown' } });
      if (wait.onRefusal === undefined) return answered({ ...journal, refused });
      const { index, message = '' } = wait;
      return answered({ ...journal, answers: [...journal.answers, { index, message, refused }] });
    }
  }
  if (!Object.hasOwn(given, field)) {
    const { schema } = wait;
    const isAgreed = kind === 'question' && given.approved === true && !isEdited && remember === undefined;
    const accepts = isAgreed && schema !== undefined && createResultChecker(schema);
    // A question with nothing to fill in, such as an approval of an MCP server, only asks for agreement.
    const value = accepts && [{}, true].find((agreement) => accepts(agreement).length === 0);
    return value ? answerWait(call, { value }) : unfit(`the answer to ${noun} must be ${form}`);
  }
  const problem = remember === undefined ? undefined : unrememberable(wait, remember);
  if (problem !== undefined) return unfit(problem);
  if (kind === 'approval') return approve({ wait, journal }, given);
  if (isEdited) return unfit(NO_EDIT);
  if (kind === 'outcome') return withOutcome(journal, given);
  const known = asJson(given[field]);
  if (known === undefined) return unfit(`\`${field}\` cannot be written as JSON`);
  if (kind === 'client') return answered({ ...journal, result: known });
  const { index, message = '', schema } = wait;
  const { value } = known;
  if (value === undefined) return unfit('`value` is missing');
  const faults = schema === undefined ? [] : createResultChecker(schema)(value);
  if (faults.length > 0) return unfit(`its value does not fit: ${summarizeFaults(faults)}`);
  return answered({ ...journal, answers: [...journal.answers, { index, message, value }] });
}

function answered(journal: CallJournal): AnsweredWait {
  return { ok: true, journal };
}

function unfit(problem: string): AnsweredWait {
  return { ok: false, problem };
}

/**
 * The value in JSON form, so that the method receives the same value with or without storage. Errors are refused,
 * because JSON would turn them into successes.
 */
function asJson(given: unknown): { readonly value: unknown } | undefined {
  if (given === undefined) return { value: undefined };
  if (given instanceof Error) return undefined;
  const value = plainJson(ToolResult.is(given) ? { ...given, error: undefined } : given);
  return value === undefined ? undefined : { value };
}

/** Why an approval cannot be remembered for later calls; the tool limits what may be remembered. */
function unrememberable({ kind, mayRemember }: Wait, remember: unknown): string | undefined {
  if (kind !== 'approval') return NOT_REMEMBERED;
  const { scope, expires } = Object(remember) as { readonly scope?: unknown; readonly expires?: unknown };
  const scopes: readonly unknown[] = mayRemember?.scopes ?? [];
  if (scopes.length === 0) return 'its tool allows no approval to be remembered for later calls';
  if (!scopes.includes(scope))
    return `its tool allows \`remember.scope\` to be ${scopes.join(' or ')}, not ${JSON.stringify(scope)}`;
  if (expires === undefined) return undefined;
  const at = typeof expires === 'string' ? Date.parse(expires) : Number.NaN;
  if (!(at > Date.now())) return '`remember.expires` is not a future time (ISO 8601)';
  const { maxMs = Infinity } = mayRemember ?? {};
  return at - Date.now() > maxMs
    ? `its tool allows an approval to be remembered for at most ${maxMs} ms`
    : undefined;
}

const NOT_REMEMBERED = 'only an approval can be remembered';
const NO_EDIT = 'only an approval can change the arguments';

/** An answer may repeat the pending arguments; equal arguments are not an edit. */
function isEdit({ arguments: given }: Readonly<Record<string, unknown>>, { arguments: asked }: CallJournal) {
  return given !== undefined && canonicalJson(plainJson(given)) !== canonicalJson(asked);
}

function approve({ wait, journal }: WaitInCall, answer: Readonly<Record<string, unknown>>): AnsweredWait {
  const { scope, expires } = Object(answer.remember) as Remember;
  const kept = withoutUndefined({ scope, expires, by: wait.mayRemember?.by });
  const remember = answer.remember === undefined ? {} : { remember: kept };
  if (!isEdit(answer, journal)) return answered({ ...journal, approved: true, ...remember });
  const args: unknown = plainJson(answer.arguments);
  if (!isRecord(args)) return unfit('`arguments` is not a JSON object');
  // Answers and `once` work belong to other arguments, so they are dropped for edited ones.
  const edited = { arguments: args, approved: true, edited: { original: journal.arguments } } as const;
  return answered({ ...journal, ...edited, answers: [], once: [], ...remember });
}

/** The reported outcome has the same form as a client's result: JSON, or a `ToolResult` as JSON. */
function withOutcome(
  journal: CallJournal,
  { outcome, result }: Readonly<Record<string, unknown>>,
): AnsweredWait {
  if (outcome === 'not-done') return answered({ ...journal, outcome: { status: outcome } });
  if (outcome !== 'done') return unfit(`\`outcome\` is neither 'done' nor 'not-done'`);
  const given = asJson(result);
  if (given === undefined) return unfit('`result` cannot be written as JSON');
  return answered({ ...journal, outcome: { status: outcome, ...given } });
}
