import { type CallScope, isNobody } from '../../core/contract/call.js';
import { type InvalidOption, InvalidOptionsError, refuseOptions } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { canonicalJson, isPlainObject } from '../../core/kernel/json.js';
import { refuseUnknownScopes } from '../call/required-scopes.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import { approverOf } from '../call/waits.js';

/** Whose a run is, as far as that is known. */
interface Ownership {
  readonly owner?: unknown;
  /** The owner is certain: it is this process's own, out of a store, or signed. */
  readonly isCertain: boolean;
  /** Its state has a signature that is not right: an owner may have been taken out of it. */
  readonly isForged?: boolean;
}

/**
 * The owner that a scope names, as JSON.
 *
 * @throws InvalidOptionsError (521) for what JSON would show as something else: an id that is `undefined` or
 *   `NaN` would make strangers the same owner.
 */
export function ownerOf(scope: CallScope): unknown {
  refuseOptions(ownerFaults(scope));
  return scope.owner === undefined ? undefined : JSON.parse(JSON.stringify(scope.owner));
}

/** What is wrong with the owner that a scope names. */
export function ownerFaults(scope: CallScope | undefined): readonly InvalidOption[] {
  const owner = scope?.owner;
  if (owner === undefined) return [];
  const odd = oddMembers(owner, 'owner', []);
  // An id that was not found, as in `session.user ?? null`, would make all strangers one owner.
  const isAnybody = odd.length === 0 && isNobody(owner);
  const problems = isAnybody ? [`owner is ${JSON.stringify(owner)}, which is nobody`] : odd;
  const fix = "owner: JSON that says who it is: { user: 'u1' }";
  return problems.map((problem) => ({ where: 'scope', option: 'owner', problem, fix }));
}

/** Members that JSON would show as something else, or as nothing: a promise and a `Map` are both `{}` to it. */
function oddMembers(member: unknown, path: string, around: readonly unknown[]): readonly string[] {
  if (around.includes(member)) return [`${path} contains itself`];
  if (typeof member !== 'object' || member === null) {
    const isScalar = member === null || typeof member === 'string' || typeof member === 'boolean';
    if (isScalar || Number.isFinite(member)) return [];
    const word = member === undefined || typeof member === 'number' ? String(member) : `a ${typeof member}`;
    return [`${path} is ${word}`];
  }
  const inner = [...around, member];
  if ('toJSON' in member && typeof member.toJSON === 'function')
    return oddMembers(member.toJSON(), path, inner);
  const parts = Object.entries(member);
  if (parts.length === 0 && !Array.isArray(member) && !isPlainObject(member)) {
    const word = `an instance of ${member.constructor?.name || 'a class'}`;
    return [`${path} is ${word}, of which JSON shows nothing`];
  }
  return parts.flatMap(([key, part]) => oddMembers(part, `${path}.${key}`, inner));
}

/**
 * Lets a run go on only on behalf of its owner: owners compare as canonical JSON, and a missing one is the same
 * only as a missing one.
 *
 * @throws ToolwrightError `RunNotAllowed` (523).
 */
export function checkOwner(run: Ownership, scope: CallScope): void {
  const owner = scope.owner === undefined ? undefined : ownerOf(scope);
  if (run.isForged) throw notAllowed(UNCERTAIN);
  if (run.owner === undefined && owner === undefined) return;
  if (!run.isCertain) throw notAllowed(UNCERTAIN);
  if (run.owner === undefined) throw notAllowed('The run has no owner, and `scope` names one.');
  if (owner === undefined) throw notAllowed('The run has an owner, and `scope` names none.');
  if (!isSameOwner(run.owner, owner)) throw notAllowed('The run has another owner than `scope`.');
}

/**
 * The owner of a run. A new run without an owner is refused if tools say who may approve them, because its owner could
 * not be told from others; a new run without scopes is refused if tools need some.
 *
 * @throws InvalidOptionsError (521) naming the tools.
 */
export function ownerOfRun(scope: CallScope, beginsWith: ToolRegistry | undefined): unknown {
  if (beginsWith !== undefined) refuseUnknownScopes(beginsWith.tools(), { scope, where: 'the scope' });
  if (scope.owner !== undefined) return ownerOf(scope);
  const chosen = beginsWith?.tools().filter(({ approval }) => approverOf(approval) !== undefined) ?? [];
  if (chosen.length === 0) return undefined;
  const names = chosen.map(({ name }) => `'${name}'`).join(', ');
  const problem = `owner is missing, and approval.approver of ${names} depends on it`;
  const fix = "owner: { user: 'u1' }, on whose behalf the run takes place";
  throw new InvalidOptionsError([{ where: 'the scope', option: 'owner', problem, fix }]);
}

/** Whether two owners, as JSON, are one; a missing one is the same only as a missing one. */
export function isSameOwner(one: unknown, other: unknown): boolean {
  if (one === undefined || other === undefined) return one === other;
  return canonicalJson(one) === canonicalJson(other);
}

const UNCERTAIN =
  'Whose the run is cannot be told, because its state is not signed, or not by this process: give `stateSecret` to the run and to its resume, or keep it in a store.';

function notAllowed(reason: string): ToolwrightError {
  return new ToolwrightError('RunNotAllowed', `The run was not resumed. ${reason} Nothing has run.`);
}
