import type { CallScope } from '../../core/contract/call.js';
import type { Hooks } from '../../core/contract/hooks.js';
import {
  checkOptions,
  type InvalidOption,
  invalidOptions,
  refuseOptions,
} from '../../core/errors/author-fault.js';
import { isRecord } from '../../core/kernel/json.js';
import { FUNCTION, optionTable, protecting, required } from '../../core/kernel/options.js';
import { createNameFilter, NAME_FILTER, type NameFilter } from '../call/tool-registry.js';

/** The tools of a role: allowed and denied names or globs. */
export type RoleTools = NameFilter;

/** Options of {@link allowByRole}. */
export interface AllowByRoleOptions {
  /** Returns the role of the caller. With several roles, each adds its tools. */
  readonly role: (scope: CallScope) => string | readonly string[] | undefined;
  /** The tools by role. Other roles, and calls without a role, may use no tools. */
  readonly roles: Readonly<Record<string, RoleTools>>;
}

const OPTIONS = optionTable<AllowByRoleOptions>('allowByRole', {
  role: required(protecting({ ...FUNCTION, fix: '({ data }) => data?.role' })),
  roles: required(protecting({ accepts: isRecord, fix: "{ clerk: { allow: ['find_*'] } }" })),
});

/**
 * A hook that gives each role its tools: models are offered only these, and calls of other tools are refused, from
 * any caller.
 *
 * @throws InvalidOptionsError (521) for invalid options, including those of each role.
 *
 * @example
 * ```ts
 * const tools = new ToolRegistry({
 *   hooks: [
 *     allowByRole({
 *       role: ({ owner }) => (owner === undefined ? undefined : 'clerk'),
 *       roles: { clerk: { allow: ['find_*'] }, manager: { deny: ['delete_*'] } },
 *     }),
 *   ],
 * });
 * ```
 */
export function allowByRole(options: AllowByRoleOptions): Hooks {
  checkOptions(options, OPTIONS);
  const { role, roles } = options;
  const faults: InvalidOption[] = [];
  for (const [name, filter] of Object.entries(roles))
    for (const fault of invalidOptions(filter, NAME_FILTER))
      faults.push({ ...fault, where: `allowByRole, role '${name}'` });
  refuseOptions(faults);
  const filters = new Map(Object.entries(roles).map(([name, filter]) => [name, createNameFilter(filter)]));
  const isAllowed = (name: string, scope: CallScope): boolean => {
    const held = role(scope);
    const names = typeof held === 'string' ? [held] : (held ?? []);
    return names.some((known) => filters.get(known)?.(name) === true);
  };
  return {
    name: 'allow-by-role',
    beforeCall: ({ name, scope }) =>
      isAllowed(name, scope) ? undefined : { refuse: 'this role may not call it' },
    beforeRequest: (request, { scope }) => {
      const { tools = [] } = request;
      const allowed = tools.filter(({ function: { name } }) => isAllowed(name, scope));
      return allowed.length === tools.length ? undefined : { request: { ...request, tools: allowed } };
    },
  };
}
