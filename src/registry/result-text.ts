import type { CallRecord } from '../contract/call-record.js';
import type { ToolResult } from '../contract/tool-result.js';
import { errorMessage } from '../invocation/error-message.js';

/** What the model gets of a result: `forLLM`, or the error's text where that is empty. */
export function resultText({ forLLM, error }: ToolResult): string {
  return forLLM !== '' || error === undefined || error === null ? forLLM : errorMessage(error);
}

const MAX_IGNORED = 10;
const MAX_KEY = 64;

/**
 * The last line of a tool message where keys of the arguments were taken away: a model that is not told takes
 * `list({ status: 'paid' })` for a list of what is paid. Nothing where there were none.
 */
export function ignoredText({ name, removed }: Pick<CallRecord, 'name' | 'removed'>): string | undefined {
  const [first, ...others] = removed;
  if (first === undefined) return undefined;
  if (others.length === 0) return `Ignored: ${shown(first)} is not an argument of ${name}.`;
  const keys = removed.slice(0, MAX_IGNORED).map(shown).join(', ');
  const more = removed.length > MAX_IGNORED ? ` and ${removed.length - MAX_IGNORED} more` : '';
  return `Ignored: ${keys}${more} are not arguments of ${name}.`;
}

/** The text that answers a call: its result's, and what was ignored. */
export function answerText(record: Pick<CallRecord, 'name' | 'removed' | 'result'>): string {
  const text = resultText(record.result);
  const ignored = ignoredText(record);
  return ignored === undefined ? text : `${text}\n\n${ignored}`;
}

/** On one line, whatever a model takes for a key. */
function shown(key: string): string {
  const line = key.slice(0, 2 * MAX_KEY).replace(/\s+/g, ' ');
  return line.length > MAX_KEY ? `${line.slice(0, MAX_KEY).toWellFormed()}…` : line;
}
