import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createLogger } from 'toolwright/winston';
import { Assistant } from './assistant.js';
import { chooseModel } from './choose-model.js';
import { type CommandLine, HELP, readCommandLine } from './command-line.js';
import { openDesk } from './open-desk.js';
import { readStandardInput } from './read-standard-input.js';
import { answerRequest } from './ui/answer-request.js';
import { output } from './ui/output.js';
import { runPrompt } from './ui/prompt.js';
import { runTour } from './ui/tour.js';
import { UserFault } from './user-fault.js';

/** Does what the command line says; gives the exit code. */
async function main(args: readonly string[]): Promise<number> {
  const command = readCommandLine(args, process.env);
  if (command.action === 'help') process.stdout.write(HELP);
  else if (command.action === 'version') process.stdout.write(`${version()}\n`);
  else return run(command);
  return 0;
}

async function run(command: CommandLine): Promise<number> {
  const isPrompt = command.request === undefined && process.stdin.isTTY === true;
  const request = command.request ?? (isPrompt ? '' : await readStandardInput());
  const { remark, ...model } = await chooseModel(process.env);
  using desk = openDesk(command.dataFolder);
  if (remark !== undefined) output.warn(remark);
  const assistant = new Assistant({
    ...model,
    tools: desk.tools,
    // What goes wrong with a call is shown with the call, and needs no second line in a log.
    logger: createLogger({ level: command.verbose ? 'debug' : 'silent' }),
    author: process.env.USER || 'me',
  });
  const { json } = command;
  if (isPrompt) return await runPrompt(assistant, { historyFile: join(command.dataFolder, 'history'), json });
  const options = { json, signal: abortOnInterrupt() };
  // Nothing piped in is no request; an empty argument is a mistake.
  if (command.request === undefined && request.trim() === '') return await runTour(assistant, options);
  return await answerRequest(assistant, request, options);
}

/** The first Ctrl-C ends the run in good order; a second one ends the program. */
function abortOnInterrupt(): AbortSignal {
  const controller = new AbortController();
  process.once('SIGINT', () => controller.abort());
  return controller.signal;
}

function version(): string {
  const manifest: { readonly version: string } = createRequire(import.meta.url)('toolwright/package.json');
  return manifest.version;
}

// `… | head -1` closes the pipe early, which is nobody's mistake.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  output.warn(`cannot write the output: ${error.message}`);
  process.exit(1);
});

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  output.warn(error instanceof Error ? error.message : String(error));
  process.exitCode = error instanceof UserFault ? error.exitCode : 1;
}
