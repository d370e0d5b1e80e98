import { type CallScope, isNobody } from '../../core/contract/call.js';
import { type InvalidOption, InvalidOptionsError, refuseOptions } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { canonicalJson, isPlainObject } from '../../core/kernel/json.js';
import { refuseUnknownScopes } from '../call/required-scopes.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import { approverOf } from '../call/waits.js';

/** The owner of a run, as far as it is known. */
interface Ownership {
  readonly owner?: unknown;
  /** The owner is certain: it comes from this process or a store, or is signed. */
  readonly isCertain: boolean;
  /** Its state has an invalid signature: an owner may have been removed from it. */
  readonly isForged?: boolean;
}

/**
 * The owner in a scope, as JSON.
 *
 * @throws InvalidOptionsError (521) for values that JSON would change: an id that is `undefined` or `NaN` would make
 * different users the same owner.
 */
export function ownerOf(scope: CallScope): unknown {
  refuseOptions(ownerFaults(scope));
  return scope.owner === undefined ? undefined : JSON.parse(JSON.stringify(scope.owner));
}

/** The faults of the owner in a scope. */
export function ownerFaults(scope: CallScope | undefined): readonly InvalidOption[] {
  const owner = scope?.owner;
  if (owner === undefined) return [];
  const odd = oddMembers(owner, 'owner', []);
  // An id that was not found, as in `session.user ?? null`, would make all users without an id one owner.
  const isAnybody = odd.length === 0 && isNobody(owner);
  const problems = isAnybody ? [`owner is ${JSON.stringify(owner)}, which is nobody`] : odd;
  const fix = "owner: JSON that says who it is: { user: 'u1' }";
  return problems.map((problem) => ({ where: 'scope', option: 'owner', problem, fix }));
}

/** Members that JSON would change or omit, such as a promise or a `Map`, which both become `{}`. */
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
 * Lets a run continue only for its owner. Owners are compared as canonical JSON; a missing owner equals only a
 * missing owner.
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
 * The owner of a run. A new run without an owner is refused if its tools restrict who may approve them, because its
 * owner could not be distinguished from other users. A new run without scopes is refused if tools require some.
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

/** Whether two owners, as JSON, are equal; a missing owner equals only a missing owner. */
export function isSameOwner(one: unknown, other: unknown): boolean {
  if (one === undefined || other === undefined) return one === other;
  return canonicalJson(one) === canonicalJson(other);
}

const UNCERTAIN =
  'The owner of the run is unknown: its state is not signed, or not by this process. Set `stateSecret` for the run and its resume, or store the run.';

function notAllowed(reason: string): ToolwrightError {
  return new ToolwrightError('RunNotAllowed', `The run was not resumed. ${reason} Nothing has run.`);
}
