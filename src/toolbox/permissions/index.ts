export type { StandingApproval, StandingYes, YesScope } from './permissions.js';
export {
  type Permission,
  type PermissionMode,
  type PermissionRule,
  Permissions,
  type PermissionsOptions,
  type Reason,
  rulesOfYes,
  type Verdict,
} from './permissions.js';
