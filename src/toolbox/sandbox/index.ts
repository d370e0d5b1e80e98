export { type SandboxShellOptions, sandboxShell } from './sandbox-shell.js';
