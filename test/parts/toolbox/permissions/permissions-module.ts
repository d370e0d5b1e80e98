export { Permissions } from '../../../../src/toolbox/permissions/index.js';
