import { canonicalJson } from '../checking/canonical-json.js';
import type { CallScope } from '../contract/call-scope.js';
import { type InvalidOption, refuseOptions } from '../errors/invalid-options.js';
import { ToolwrightError } from '../errors/toolwright-error.js';

/** Whose a run is, as far as that is known. */
export interface Ownership {
  readonly owner?: unknown;
  /** The owner is certain: it is this process's own, out of a store, or signed. */
  readonly isCertain: boolean;
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
  // `session.user ?? null` would make all strangers one owner.
  const problems: string[] = owner === null ? ['owner is null'] : [];
  try {
    JSON.stringify(owner, (key, member: unknown) => {
      if (!isJson(member)) problems.push(`owner${key === '' ? '' : `.${key}`} is ${wordFor(member)}`);
      return member;
    });
  } catch (cause) {
    problems.push((cause as Error).message);
  }
  const fix = "owner: JSON that says who it is: { user: 'u1' }";
  return problems.map((problem) => ({ where: 'scope', option: 'owner', problem, fix }));
}

function isJson(member: unknown): boolean {
  if (typeof member === 'number') return Number.isFinite(member);
  return ['string', 'boolean', 'object'].includes(typeof member);
}

function wordFor(member: unknown): string {
  return member === undefined || typeof member === 'number' ? String(member) : `a ${typeof member}`;
}

/**
 * Lets a run go on only on behalf of its owner: owners compare as canonical JSON, and a missing one is the same
 * only as a missing one.
 *
 * @throws ToolwrightError `RunNotAllowed` (523).
 */
export function checkOwner(run: Ownership, scope: CallScope): void {
  const owner = ownerOf(scope);
  if (run.owner === undefined && owner === undefined) return;
  if (!run.isCertain) throw notAllowed(UNCERTAIN);
  if (run.owner === undefined) throw notAllowed('The run has no owner, and `scope` names one.');
  if (owner === undefined) throw notAllowed('The run has an owner, and `scope` names none.');
  if (!isSameOwner(run.owner, owner)) throw notAllowed('The run has another owner than `scope`.');
}

/** Whether two owners, as JSON, are one; a missing one is the same only as a missing one. */
export function isSameOwner(one: unknown, other: unknown): boolean {
  if (one === undefined || other === undefined) return one === other;
  return canonicalJson(one) === canonicalJson(other);
}

const UNCERTAIN =
  'Whose the run is cannot be told, because its state is not signed: give `stateSecret` to the run and to its resume, or keep it in a store.';

function notAllowed(reason: string): ToolwrightError {
  return new ToolwrightError('RunNotAllowed', `The run was not resumed. ${reason} Nothing has run.`);
}
