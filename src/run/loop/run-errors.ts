import type { StoredEnd } from '../../core/contract/run-checkpoint.js';
import { type InvalidOption, InvalidOptionsError } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { errorMessage } from '../../core/kernel/error-message.js';

export type ConfigFault = Pick<InvalidOption, 'option' | 'problem' | 'fix'>;

/** The error of a config that cannot be used as it is. */
export function wrongConfig(fault: ConfigFault): InvalidOptionsError {
  return new InvalidOptionsError([{ where: 'the loop’s config', ...fault }]);
}

/** The error for a run that its store could not save; `what` failed. */
export function storeFailed(what: string, cause: unknown): ToolwrightError {
  return new ToolwrightError('RunStoreFailed', `${what}: ${errorMessage(cause)}`, { cause });
}

export function noSuchRun(runId: string): ToolwrightError {
  return new ToolwrightError('RunNotFound', `The store has no run '${runId}'.`);
}

/** An error for readers in other processes. */
export type StoredError = NonNullable<StoredEnd['error']>;

export function errorJson(error: unknown): StoredError {
  const { name = 'Error', code } = Object(error) as { readonly name?: unknown; readonly code?: unknown };
  return { name: String(name), message: errorMessage(error), ...(typeof code === 'number' ? { code } : {}) };
}
