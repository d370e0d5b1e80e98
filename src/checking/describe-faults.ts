import type { ArgumentFault } from '../contract/argument-fault.js';

/**
 * What the model is told about arguments that do not fit (design §4): a first line naming the tool, then
 * one line for each fault, whatever keys the model made up.
 */
export function describeFaults(tool: string, faults: readonly ArgumentFault[]): string {
  const lines = faults.map(
    ({ path, message }) => `  - ${oneLine(path === '' ? message : `${path}: ${message}`)}`,
  );
  return [`Validation failed for tool '${tool}':`, ...lines].join('\n');
}

function oneLine(text: string): string {
  return text.replace(/\s*[\n\r\u2028\u2029]+\s*/g, ' ');
}
