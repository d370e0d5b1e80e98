import type { ConversationEvent, ToolLoopResult } from 'toolwright';
import type { Assistant } from '../assistant.js';
import { checkRequest } from '../check-request.js';
import type { Output } from './output.js';
import { runJson } from './run-json.js';
import { RunPrinter } from './run-printer.js';

/** The options for answering a request. */
export interface AnswerOptions {
  readonly json: boolean;
  readonly output: Output;
  readonly signal: AbortSignal;
}

/** 130 is 128 + SIGINT: the exit code that shells report for a program ended by Ctrl-C. */
const EXIT_ABORTED = 130;

/** Answers one request on the terminal and returns the exit code. Throws a `UserFault` for an invalid request. */
export async function answerRequest(
  assistant: Assistant,
  request: string,
  { json, output, signal }: AnswerOptions,
): Promise<number> {
  const printer = new RunPrinter(output);
  const onEvent = json ? undefined : (event: ConversationEvent) => printer.print(event);
  const run = await assistant.ask(checkRequest(request), { signal, onEvent });
  if (json) output.print(`${runJson(run)}\n`);
  return report(run, output);
}

function report({ status, error }: ToolLoopResult, output: Output): number {
  if (status === 'completed') return 0;
  output.warn(error?.message ?? `the run ended as ${status}`);
  return status === 'aborted' ? EXIT_ABORTED : 1;
}
