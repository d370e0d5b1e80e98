import type { SandboxPlan } from './bubblewrap.js';

/** Where macOS keeps what belongs to people, and what programs leave for each other. */
const PRIVATE = [
  '/Users',
  '/Volumes',
  '/private/tmp',
  '/private/var',
  '/private/etc/ssh',
  '/Library/Keychains',
];
/** Below those, what programs need. */
const NEEDED = ['/private/var/db/timezone', '/private/var/db/dyld', '/private/var/select'];

/** A profile of `sandbox-exec` for a command: of several rules that fit, the last one counts. */
export function seatbeltProfile({ root, readable, closed }: SandboxPlan, temporary: string): string {
  const paths = (rule: string, all: readonly string[]): string =>
    all.length === 0 ? '' : `(${rule} ${all.map((path) => `(subpath ${JSON.stringify(path)})`).join(' ')})`;
  return [
    '(version 1)(allow default)(deny network*)(deny mach-lookup (global-name-regex #"^com\\.apple\\.(SecurityServer|securityd)"))',
    '(deny file-write*)(allow file-write* (literal "/dev/null") (literal "/dev/tty"))',
    paths('deny file-read*', PRIVATE),
    // A path is found by way of its folders.
    '(allow file-read-metadata)',
    paths('allow file-read*', [...NEEDED, ...readable, root, temporary]),
    paths('allow file-write*', [root, temporary]),
    paths(
      'deny file-write*',
      closed.map(({ path }) => path),
    ),
    paths(
      'deny file-read*',
      closed.filter(({ how }) => how === 'unreadable').map(({ path }) => path),
    ),
  ].join('');
}
