export { type CommandPlace, commandAccess, commandTouches } from './command-access.js';
export {
  type CommandEnd,
  type CommandRequest,
  CommandShell,
  type FolderView,
  type OutputView,
  type RunningCommand,
} from './command-shell.js';
export { LocalShell, type LocalShellOptions } from './local-shell.js';
export { type ShellLimits, ShellTools, shellTools } from './shell-tools.js';
