import type { CallScope } from '../../core/contract/call.js';
import type { Hooks } from '../../core/contract/hooks.js';
import { checkOptions, invalidOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { isRecord } from '../../core/kernel/json.js';
import { FUNCTION, optionTable, protecting, required } from '../../core/kernel/options.js';
import { createNameFilter, NAME_FILTER, type NameFilter } from '../call/registration.js';

/** What a role may use: names or globs that are allowed, and those that are not all the same. */
export type RoleTools = NameFilter;

/** Options of {@link allowByRole}. */
export interface AllowByRoleOptions {
  /** The role of whoever a call is made for; of several, what one of them may. */
  readonly role: (scope: CallScope) => string | readonly string[] | undefined;
  /** By role. Other roles, and calls without a role, may use nothing. */
  readonly roles: Readonly<Record<string, RoleTools>>;
}

const OPTIONS = optionTable<AllowByRoleOptions>('allowByRole', {
  role: required(protecting({ ...FUNCTION, fix: '({ data }) => data?.role' })),
  roles: required(protecting({ accepts: isRecord, fix: "{ clerk: { allow: ['find_*'] } }" })),
});

/**
 * A hook that gives each role its tools: a model is offered no others, and calls of others are refused, whoever makes
 * them.
 *
 * @throws InvalidOptionsError (521) for wrong options, those of each role included.
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
  refuseOptions(
    Object.entries(roles).flatMap(([name, filter]) =>
      invalidOptions(filter, NAME_FILTER).map((fault) => ({
        ...fault,
        where: `allowByRole, role '${name}'`,
      })),
    ),
  );
  const filters = new Map(Object.entries(roles).map(([name, filter]) => [name, createNameFilter(filter)]));
  const isAllowed = (name: string, scope: CallScope): boolean => {
    const held = role(scope);
    const names = typeof held === 'string' ? [held] : (held ?? []);
    return names.some((known) => filters.get(known)?.(name) === true);
  };
  return {
    name: 'allow-by-role',
    beforeCall: ({ name, scope }) =>
      isAllowed(name, scope) ? undefined : { refuse: 'it is not for this role' },
    beforeRequest: (request, { scope }) => {
      const { tools = [] } = request;
      const allowed = tools.filter(({ function: { name } }) => isAllowed(name, scope));
      return allowed.length === tools.length ? undefined : { request: { ...request, tools: allowed } };
    },
  };
}
