import type { ToolwrightModuleOptions } from 'toolwright/nestjs';
import type { AuthedRequest } from './user.js';
import type { Users } from './users.js';

/** The owner of a run. */
type Owner = { readonly user: string };

/**
 * Customers own their runs, and clerks may answer for them. The run continues as the customer's: with the customer's
 * orders and permissions, never with those of the clerk.
 */
export function runRights(users: Users) {
  return {
    owner: ({ user }: AuthedRequest): Owner | undefined => user && { user: user.id },
    mayAnswer: ({ user }: AuthedRequest) => user?.role === 'clerk',
    scopeOf: ({ user }: Owner) => ({ request: { headers: {}, user: users.byId(user) } }),
  } satisfies ToolwrightModuleOptions;
}
