import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import type { Assistant } from '../assistant.js';
import type { Surroundings } from '../surroundings.js';
import { UserFault } from '../user-fault.js';
import { type AnswerOptions, answerRequest } from './answer-request.js';
import type { Output } from './output.js';

const HISTORY_SIZE = 500;
const GOODBYE = new Set(['exit', 'quit']);

/** The options of the prompt. */
export interface PromptOptions {
  /** File with the history of requests, one per line. */
  readonly historyFile: string;
  readonly json: boolean;
  readonly output: Output;
  readonly surroundings: Pick<Surroundings, 'stdin' | 'stdout'>;
}

/** Answers requests until Ctrl-D or `exit`. Ctrl-C ends the current run, or the prompt if there is none. */
export async function runPrompt(
  assistant: Assistant,
  { historyFile, json, output, surroundings }: PromptOptions,
): Promise<number> {
  const terminal = createInterface({
    input: surroundings.stdin,
    output: surroundings.stdout,
    prompt: '> ',
    historySize: HISTORY_SIZE,
    history: readHistory(historyFile),
    removeHistoryDuplicates: true,
  });
  let running: AbortController | undefined;
  terminal.on('SIGINT', () => (running === undefined ? terminal.close() : running.abort()));
  let open = true;
  terminal.on('close', () => {
    open = false;
  });
  terminal.prompt();
  for await (const line of terminal) {
    const request = line.trim();
    if (GOODBYE.has(request)) break;
    if (request !== '') {
      running = new AbortController();
      remember(historyFile, request);
      await answerLine(assistant, request, { json, output, signal: running.signal });
      running = undefined;
    }
    // Ctrl-D during a request closes the terminal, and a closed terminal throws here.
    if (open) terminal.prompt();
  }
  terminal.close();
  output.say('');
  return 0;
}

/** Prints the error of a failed request and continues with the prompt. */
async function answerLine(assistant: Assistant, request: string, options: AnswerOptions): Promise<void> {
  try {
    await answerRequest(assistant, request, options);
  } catch (error) {
    if (!(error instanceof UserFault)) throw error;
    options.output.warn(error.message);
  }
}

/** Newest first, as readline expects it. */
function readHistory(file: string): string[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8').split('\n').filter(Boolean).slice(-HISTORY_SIZE).reverse();
}

function remember(file: string, request: string): void {
  // Readable only by its owner, because people type secrets.
  appendFileSync(file, `${request}\n`, { mode: 0o600 });
}
