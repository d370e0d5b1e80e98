#!/usr/bin/env node
import { runCommandLine } from './run-command-line.js';

process.exitCode = await runCommandLine(process.argv.slice(2), {
  folder: process.cwd(),
  out: (text) => process.stdout.write(text),
  error: (text) => process.stderr.write(text),
  isTerminal: process.stderr.isTTY === true,
});

/** What a module that was loaded leaves open, a database or a timer, must not keep the process. */
const GRACE_MS = 500;
setTimeout(() => process.exit(), GRACE_MS).unref();
