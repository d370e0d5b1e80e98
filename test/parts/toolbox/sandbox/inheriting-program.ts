import { sandboxShell } from '../../../../src/toolbox/sandbox/index.js';

/** Runs a command in a sandbox in a process that inherited open files, and prints its output. */
const [, , folder = '', command = ''] = process.argv;
const { output, ended } = sandboxShell({ folder }).start({ command, folder: '.' });
await ended;
process.stdout.write(output.text());
