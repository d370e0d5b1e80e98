import type { ArgumentFault } from '../contract/argument-fault.js';

/** More are counted, not listed: an answer must stay short, however large what was sent. */
const MAX_FAULTS = 50;
const MAX_LINE = 400;

/** Stands in a list for each fault that is only counted. */
export const UNTOLD: ArgumentFault = { path: '', message: 'one of more faults than are told' };

/**
 * What the model is told about values that do not fit: a first line naming the tool, then one line for each
 * fault, whatever keys the model made up, and how many there are beyond the first 50.
 */
export function describeFaults(tool: string, faults: readonly ArgumentFault[]): string {
  const { told, more } = faultLines(faults);
  const lines = told.map((line) => `  - ${line}`);
  return [`Validation failed for tool '${tool}':`, ...lines, ...(more === undefined ? [] : [more])].join(
    '\n',
  );
}

/** The same in one line, for messages that have a beginning of their own. */
export function summarizeFaults(faults: readonly ArgumentFault[]): string {
  const { told, more } = faultLines(faults);
  return [...told, ...(more === undefined ? [] : [more])].join('; ');
}

interface FaultLines {
  readonly told: readonly string[];
  readonly more: string | undefined;
}

function faultLines(faults: readonly ArgumentFault[]): FaultLines {
  const told = faults.slice(0, MAX_FAULTS).filter((fault) => fault !== UNTOLD);
  const more = faults.length - told.length;
  return {
    told: told.map(({ path, message }) => oneLine(path === '' ? message : `${path}: ${message}`)),
    more: more === 0 ? undefined : `… and ${more.toLocaleString('en-US')} more`,
  };
}

/** Whether a fault does not fit on its line. */
export function isCutInLine({ path, message }: ArgumentFault): boolean {
  return path.length + message.length + 2 > MAX_LINE;
}

function oneLine(text: string): string {
  // What is cut off need not be looked at: a key may be as long as the model likes.
  const start = text.slice(0, 2 * MAX_LINE);
  const line = start.replace(/\s*[\n\r\u2028\u2029]+\s*/g, ' ');
  return line.length > MAX_LINE ? `${line.slice(0, MAX_LINE).toWellFormed()}…` : line;
}
