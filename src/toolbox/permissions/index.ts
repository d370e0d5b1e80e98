export type { Permission, PermissionRule } from './permission-rule.js';
export {
  type PermissionMode,
  Permissions,
  type PermissionsOptions,
  type Reason,
  type Verdict,
} from './permissions.js';
export type { StandingYes, YesScope } from './standing-yes.js';
export { rulesOfYes } from './touches-of.js';
