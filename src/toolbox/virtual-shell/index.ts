export { type VirtualShellOptions, virtualShell } from './virtual-shell.js';
