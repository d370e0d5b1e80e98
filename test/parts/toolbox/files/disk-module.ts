export { DiskFileSystem } from '../../../../src/toolbox/files/disk-file-system.js';
