#!/usr/bin/env node
import { oldNode } from '../../core/kernel/node-version.js';
import { writeOut } from './write-out.js';

/** The version of this package; the build replaces it. */
declare const TOOLWRIGHT_VERSION: string;

const problem = oldNode();
const args = process.argv.slice(2);
if (problem !== undefined) {
  console.error(problem);
  process.exitCode = 1;
} else if (args[0] === '--version' || args[0] === '-v') {
  console.log(TOOLWRIGHT_VERSION);
} else {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // The terminal was closed; SIGHUP ends the command.
      if (error.code === 'EIO') return;
      // The reader closed the pipe, as `head` does; the rest of the output is not needed.
      if (error.code !== 'EPIPE') throw error;
      process.exit();
    });
  // Servers and workers write logs; other commands results, which tools and modules must not write into.
  if (!/^(dev|inspect|worker)$/.test(args[0] ?? ''))
    process.stdout.write = process.stderr.write.bind(process.stderr);
  // Imported after the version check: an older Node may be unable to load the commands.
  process.getBuiltinModule('node:module').enableCompileCache();
  const { runCommandLine } = await import('./run-command-line.js');
  // `toolwright dev` disconnects to end the inspector, and does so too if it dies.
  const over = new AbortController();
  process.once('disconnect', () => over.abort());
  process.channel?.unref();
  process.exitCode = await runCommandLine(args, {
    folder: process.cwd(),
    out: writeOut,
    error: (text) => process.stderr.write(text),
    isTerminal: process.stderr.isTTY === true,
    signal: over.signal,
  });
}

/** A database or timer that a loaded module leaves open must not keep the process alive. */
const GRACE_MS = 500;
setTimeout(() => process.exit(), GRACE_MS).unref();
