import type { CallScope } from '../../core/contract/call.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { InvalidOptionsError } from '../../core/errors/author-fault.js';

/** The OAuth scopes that a tool requires and the caller lacks. */
export function missingScopes(
  { scopes: required = [] }: Pick<ToolDefinition, 'scopes'>,
  granted: CallScope['scopes'] = [],
): readonly string[] {
  return required.filter((scope) => !granted.includes(scope));
}

/**
 * Refuses tools with `scopes` at start-up if no call can have scopes: all their calls would fail.
 *
 * @throws InvalidOptionsError (521) naming the tools.
 */
export function refuseUnknownScopes(
  tools: readonly ToolDefinition[],
  { scope, where }: { readonly scope: Pick<CallScope, 'scopes'>; readonly where: string },
): void {
  const scoped = scope.scopes === undefined ? tools.filter(({ scopes }) => scopes?.length) : [];
  if (scoped.length === 0) return;
  const names = scoped.map(({ name }) => `'${name}'`).join(', ');
  const problem = `the scope has no \`scopes\`, which ${names} require`;
  const fix = 'scopes: the list of the caller’s OAuth scopes';
  throw new InvalidOptionsError([{ where, option: 'scopes', problem, fix }]);
}
