import type { ToolLoopResult } from 'toolwright';
import type { Assistant } from '../assistant.js';
import { checkRequest } from '../check-request.js';
import { output } from './output.js';
import { printRun, printUpdate } from './print-run.js';
import { runJson } from './run-json.js';

/** How a request is answered. */
export interface AnswerOptions {
  readonly json: boolean;
  readonly signal: AbortSignal;
}

/** 130 is 128 + SIGINT: what shells report of a program that Ctrl-C ended. */
const EXIT_ABORTED = 130;

/** Answers one request on the terminal; gives the exit code. Throws a `UserFault` where the request is none. */
export async function answerRequest(
  assistant: Assistant,
  request: string,
  { json, signal }: AnswerOptions,
): Promise<number> {
  const onUpdate = json ? () => {} : printUpdate;
  const run = await assistant.ask(checkRequest(request), { signal, onUpdate });
  if (json) process.stdout.write(`${runJson(run)}\n`);
  else printRun(run);
  return report(run);
}

function report({ status, error }: ToolLoopResult): number {
  if (status === 'completed') return 0;
  output.warn(error?.message ?? `the run ended as ${status}`);
  return status === 'aborted' ? EXIT_ABORTED : 1;
}
