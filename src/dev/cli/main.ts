#!/usr/bin/env node
import { oldNode } from '../../core/kernel/node-version.js';

// The reader closed the pipe, as `head` does; the rest of the output is not needed.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });

const problem = oldNode();
if (problem === undefined) {
  // Imported after the version check: an older Node may be unable to load the commands.
  const { enableCompileCache } = await import('node:module');
  enableCompileCache();
  const { runCommandLine } = await import('./run-command-line.js');
  // `toolwright dev` disconnects to end the inspector, and does so too if it dies.
  const over = new AbortController();
  process.once('disconnect', () => over.abort());
  process.channel?.unref();
  process.exitCode = await runCommandLine(process.argv.slice(2), {
    folder: process.cwd(),
    out: (text) => process.stdout.write(text),
    error: (text) => process.stderr.write(text),
    isTerminal: process.stderr.isTTY === true,
    signal: over.signal,
  });
} else {
  process.stderr.write(`${problem}\n`);
  process.exitCode = 1;
}

/** A database or timer that a loaded module leaves open must not keep the process alive. */
const GRACE_MS = 500;
setTimeout(() => process.exit(), GRACE_MS).unref();
