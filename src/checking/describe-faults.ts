import type { ArgumentFault } from '../contract/argument-fault.js';

/** More are counted, not listed: an answer must stay short, however large what was sent. */
const MAX_FAULTS = 50;
const MAX_LINE = 400;

/**
 * What the model is told about values that do not fit: a first line naming the tool, then
 * one line for each fault, whatever keys the model made up.
 */
export function describeFaults(tool: string, faults: readonly ArgumentFault[]): string {
  const lines = faults
    .slice(0, MAX_FAULTS)
    .map(({ path, message }) => `  - ${oneLine(path === '' ? message : `${path}: ${message}`)}`);
  const more = faults.length > MAX_FAULTS ? [`and ${faults.length - MAX_FAULTS} more`] : [];
  return [`Validation failed for tool '${tool}':`, ...lines, ...more].join('\n');
}

function oneLine(text: string): string {
  const line = text.replace(/\s*[\n\r\u2028\u2029]+\s*/g, ' ');
  return line.length > MAX_LINE ? `${line.slice(0, MAX_LINE).toWellFormed()}…` : line;
}
