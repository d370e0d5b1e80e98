import type { ResultChecker } from '../checking/create-result-checker.js';
import { describeFaults } from '../checking/describe-faults.js';
import type { ArgumentFault } from '../contract/argument-fault.js';
import { RetryToolCall } from '../contract/retry-tool-call.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import type { ToolResult } from '../contract/tool-result.js';
import { cutResult } from './cut-result.js';
import { failedResult } from './failed-result.js';
import type { PerformedCall } from './performed-call.js';
import type { PermittedCall } from './permitted-call.js';
import { ResultForm } from './result-form.js';
import type { Ended } from './run-tool.js';
import { isWorded, writeFailure, writeResult } from './write-result.js';

/** What the writing of a result depends on. */
export type WritingParts = Pick<PermittedCall, 'tool' | 'plan' | 'environment' | 'log'>;

/** How a tool's body ended, as the result and status of its call: the last step of the staircase. */
export function writeEnding(permitted: WritingParts, ended: Ended): PerformedCall {
  const performed =
    ended.how === 'returned' ? writeReturned(permitted, ended.value) : writeUnreturned(permitted, ended);
  const limit = permitted.tool.maxResultChars ?? permitted.environment.maxResultChars ?? MAX_RESULT_CHARS;
  if (performed.result.forLLM.length <= limit) return performed;
  return { ...performed, result: cutResult(performed.result, limit) };
}

/** Characters of a result that the model sees, where nothing else is said: some 25,000 tokens. */
const MAX_RESULT_CHARS = 100_000;

type Unreturned = Exclude<Ended, { readonly how: 'returned' }>;

function writeUnreturned({ tool, environment }: WritingParts, ended: Unreturned): PerformedCall {
  switch (ended.how) {
    case 'threw': {
      if (asksForRetry(ended.error)) {
        const { message } = ended.error;
        const hint = String(message).trim() === '' ? withoutHint(tool.name) : message;
        return { status: 'rejected', result: failedResult('InvalidArguments', hint, ended.error) };
      }
      const status = environment.scope.signal?.aborted ? 'aborted' : 'error';
      return { status, result: writeFailure(tool.name, ended.error, environment.describeError) };
    }
    case 'timed_out':
      return {
        status: 'timed_out',
        result: failedResult(
          'ToolTimedOut',
          `The tool '${tool.name}' timed out after ${ended.timeoutMs} ms.`,
        ),
      };
    case 'refused':
      // Whoever decides may have waited until there was nothing left to decide.
      if (environment.scope.signal?.aborted) return { status: 'aborted', result: abortedResult(tool.name) };
      return {
        status: 'refused',
        result: failedResult('ToolRefused', `The tool '${tool.name}' was refused: ${ended.reason}`),
      };
    case 'aborted':
      return { status: 'aborted', result: abortedResult(tool.name) };
  }
}

function withoutHint(tool: string): string {
  return `The tool '${tool}' cannot use this call, and did not say why. Call it again with other arguments.`;
}

/** The answer to a call that an abort of the run left open. */
export function abortedResult(tool: string): ToolResult {
  return failedResult('RunAborted', `The run was aborted before the tool '${tool}' had finished.`);
}

function writeReturned(parts: WritingParts, value: unknown): PerformedCall {
  const { tool, plan, environment } = parts;
  const written = writeResult(tool, value, environment.describeError);
  if (written.isError) return { status: 'error', result: written };
  const success: PerformedCall = { status: 'success', result: written };
  // Most tools declare no output.
  return plan.checkResult === undefined ? success : (misfit(parts, value, written) ?? success);
}

/** What is told instead of a result that does not fit the output that its tool declares. */
function misfit(parts: WritingParts, value: unknown, written: ToolResult): PerformedCall | undefined {
  const { tool, plan, log } = parts;
  // Nobody hears of a misfit that is only a warning, where nothing is logged.
  if (plan.checkResult === undefined || written.async || (tool.isOutputInferred && !log.isRead))
    return undefined;
  const faults = resultFaults({ tool, check: plan.checkResult }, value, written);
  if (faults.length === 0) return undefined;
  if (tool.isOutputInferred) {
    warnOfMisfits(parts, faults);
    return undefined;
  }
  const told = describeFaults(tool.name, faults).split('\n').slice(1);
  const message = `The tool ran, but its result does not fit the output that '${tool.name}' declares:`;
  return { status: 'error', result: failedResult('InvalidResult', [message, ...told].join('\n')) };
}

/** Of so many places of one tool: a list has as many as it has items. */
const MAX_TOLD = 50;

/** Types say what was meant; what was returned is there all the same. Told once for each place. */
function warnOfMisfits({ plan, log }: WritingParts, faults: readonly ArgumentFault[]): void {
  const { toldMisfits } = plan;
  for (const { path, message } of faults) {
    const place = path.replace(/(^|\.)\d+(?=\.|$)/g, '$1*');
    if (toldMisfits.has(place) || toldMisfits.size >= MAX_TOLD) continue;
    toldMisfits.add(place);
    log.ignored('A result does not fit the output that was read from its types', {
      path: place,
      fault: message,
    });
  }
}

/**
 * What a declared output schema has to say: of the value itself, or of a worded result's details; where it
 * has none, of its text, as it is or as JSON. (Awaited background work comes as text.)
 */
function resultFaults(
  { tool, check }: { readonly tool: ToolDefinition; readonly check: ResultChecker },
  value: unknown,
  { forLLM, details }: ToolResult,
): readonly ArgumentFault[] {
  if (value instanceof ResultForm) return check(value.json);
  if (!isWorded(value, tool)) return check(value);
  if (details !== undefined) return check(details);
  const faults = check(forLLM);
  const parsed = faults.length === 0 ? undefined : parse(forLLM);
  return parsed === undefined ? faults : check(parsed.value);
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** Looking at what was thrown runs its author's code: a proxy's traps. */
function asksForRetry(thrown: unknown): thrown is RetryToolCall {
  try {
    return RetryToolCall.is(thrown);
  } catch {
    return false;
  }
}
