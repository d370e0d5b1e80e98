import { runAssistant } from './run-assistant.js';

// `… | head -1` closes the pipe early, which is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  process.stderr.write(`assistant: cannot write the output: ${error.message}\n`);
  process.exit(1);
});

process.exitCode = await runAssistant(process.argv.slice(2), {
  environment: process.env,
  folder: process.cwd(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  abortOnInterrupt,
});

/** The first Ctrl-C ends the run in an orderly way; the second ends the program. */
function abortOnInterrupt(): AbortSignal {
  const controller = new AbortController();
  process.once('SIGINT', () => controller.abort());
  return controller.signal;
}
