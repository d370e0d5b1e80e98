export { type Permission, type PermissionRule, rulesOfYes } from './permission-rule.js';
export {
  type PermissionMode,
  Permissions,
  type PermissionsOptions,
  type Reason,
  type Verdict,
} from './permissions.js';
export type { StandingApproval, StandingYes, YesScope } from './standing-approval.js';
