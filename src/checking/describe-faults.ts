import type { ArgumentFault } from '../contract/argument-fault.js';

/**
 * What the model is told about arguments that do not fit (design §4): a first line naming the tool, then
 * one line for each fault.
 */
export function describeFaults(tool: string, faults: readonly ArgumentFault[]): string {
  const lines = faults.map(({ path, message }) => `  - ${path === '' ? message : `${path}: ${message}`}`);
  return [`Validation failed for tool '${tool}':`, ...lines].join('\n');
}
