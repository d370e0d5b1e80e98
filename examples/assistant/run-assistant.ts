import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createLogger } from 'toolwright/winston';
import { Assistant } from './assistant.js';
import { chooseModel } from './choose-model.js';
import { type CommandLine, HELP, readCommandLine } from './command-line.js';
import { openDesk } from './open-desk.js';
import { readStandardInput } from './read-standard-input.js';
import type { Surroundings } from './surroundings.js';
import { answerRequest } from './ui/answer-request.js';
import { Output } from './ui/output.js';
import { runPrompt } from './ui/prompt.js';
import { runTour } from './ui/tour.js';
import { UserFault } from './user-fault.js';

/** Runs the command line and returns the exit code. An error is printed as one line. */
export async function runAssistant(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const output = new Output(surroundings);
  try {
    const command = readCommandLine(args, surroundings);
    if (command.action === 'help') output.print(HELP);
    else if (command.action === 'version') output.print(`${version()}\n`);
    else return await run(command, surroundings, output);
    return 0;
  } catch (error) {
    output.warn(error instanceof Error ? error.message : String(error));
    return error instanceof UserFault ? error.exitCode : 1;
  }
}

async function run(command: CommandLine, surroundings: Surroundings, output: Output): Promise<number> {
  const { environment, stdin } = surroundings;
  const isPrompt = command.request === undefined && stdin.isTTY === true;
  const request = command.request ?? (isPrompt ? '' : await readStandardInput(surroundings));
  const { remark, ...model } = await chooseModel(environment);
  using desk = openDesk(command.dataFolder);
  if (remark !== undefined) output.warn(remark);
  const assistant = new Assistant({
    ...model,
    tools: desk.tools,
    // The failure of a call is printed with the call; a log line would repeat it.
    logger: createLogger({ level: command.verbose ? 'debug' : 'silent' }),
    author: environment.USER || 'me',
  });
  const { json } = command;
  if (isPrompt) {
    const historyFile = join(command.dataFolder, 'history');
    return await runPrompt(assistant, { historyFile, json, output, surroundings });
  }
  const options = { json, output, signal: surroundings.abortOnInterrupt() };
  // Empty standard input means that there is no request; an empty argument is a mistake.
  if (command.request === undefined && request.trim() === '') return await runTour(assistant, options);
  return await answerRequest(assistant, request, options);
}

function version(): string {
  const manifest: { readonly version: string } = createRequire(import.meta.url)('toolwright/package.json');
  return manifest.version;
}
