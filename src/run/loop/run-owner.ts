import { type CallScope, OWNER } from '../../core/contract/call.js';
import { checkArguments, InvalidOptionsError } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { canonicalJson } from '../../core/kernel/json.js';
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
 * @throws InvalidOptionsError (521) for an owner that breaks the rule.
 */
export function ownerOf({ owner }: CallScope): unknown {
  if (owner === undefined) return undefined;
  checkArguments({ of: 'scope', given: { owner }, rules: { owner: OWNER } });
  return JSON.parse(JSON.stringify(owner));
}

/**
 * Lets a run continue only for its owner. Owners are compared as canonical JSON; a missing owner equals only a
 * missing owner.
 *
 * @throws ToolwrightError `RunNotAllowed` (523).
 */
export function checkOwner(run: Ownership, scope: CallScope): void {
  const owner = ownerOf(scope);
  if (run.isForged) throw notAllowed(UNCERTAIN);
  if (run.owner === undefined && owner === undefined) return;
  if (!run.isCertain) throw notAllowed(UNCERTAIN);
  if (run.owner === undefined) throw notAllowed('The run has no owner, but `scope` has one.');
  if (owner === undefined) throw notAllowed('The run has an owner, but `scope` has none.');
  if (!isSameOwner(run.owner, owner))
    throw notAllowed('The owner of the run differs from the owner in `scope`.');
}

/**
 * The owner of a run. A new run without an owner is refused if its tools restrict who may approve them, because its
 * owner could not be distinguished from other users. A new run without scopes is refused if tools require some.
 *
 * @throws InvalidOptionsError (521) naming the tools.
 */
export function ownerOfRun(scope: CallScope, beginsWith: ToolRegistry | undefined): unknown {
  const tools = beginsWith?.tools() ?? [];
  refuseUnknownScopes(tools, { scope, where: 'the scope' });
  if (scope.owner !== undefined) return ownerOf(scope);
  const chosen = tools.filter(({ approval }) => approverOf(approval) !== undefined);
  if (chosen.length === 0) return undefined;
  const names = chosen.map(({ name }) => `'${name}'`).join(', ');
  const problem = `owner is missing, and approval.approver of ${names} depends on it`;
  const fix = "owner: { user: 'u1' }, the user for whom the run is made";
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
