import type { Assistant } from '../assistant.js';
import { type AnswerOptions, answerRequest } from './answer-request.js';

/** Requests that only read, so that a tour changes nothing. */
const REQUESTS = [
  'What is 12 * (3 + 4), and which of my notes mention invoices?',
  'List the overdue invoices',
  'Find the phone number of the contact Mara',
  'What time is it in Asia/Tokyo?',
] as const;

/** Runs the requests of the tour and returns the first exit code that is not 0. */
export async function runTour(assistant: Assistant, options: AnswerOptions): Promise<number> {
  for (const [index, request] of REQUESTS.entries()) {
    if (!options.json) options.output.say(`${index > 0 ? '\n' : ''}> ${request}`);
    const exitCode = await answerRequest(assistant, request, options);
    if (exitCode !== 0) return exitCode;
  }
  if (!options.json) options.output.say('\nAsk something of your own: npm start -- "…", or --help');
  return 0;
}
