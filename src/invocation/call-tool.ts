import type { CallRecord, CallStatus } from '../contract/call-record.js';
import { errorResult, type ToolResult } from '../contract/tool-result.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { CallLog } from './call-log.js';
import { checkArguments, type ReadyArguments } from './check-arguments.js';
import { errorMessage } from './error-message.js';
import type { CallEnvironment, CallRequest, Invocation } from './invocation.js';
import { performCall } from './perform-call.js';
import { refusalOf } from './refusal-of.js';

/**
 * The staircase every call takes, whoever makes it: find ▸ read ▸ check ▸ allow ▸ run ▸ write (design §1).
 * Each step can end the call with a result; nothing is thrown.
 */
export async function callTool(call: CallRequest, environment: CallEnvironment): Promise<Invocation> {
  const since = performance.now();
  const log = new CallLog(environment.logger, call);
  const end = (status: CallStatus, result: ToolResult, ready?: ReadyArguments): Invocation => ({
    status: status === 'started' ? 'started' : 'settled',
    result,
    record: record({ call, environment, status, result, since, ready }),
  });

  try {
    const tool = environment.find(call.name);
    if (tool === undefined) {
      log.notFound();
      return end('rejected', notFound(call.name));
    }
    const checking = checkArguments(tool, call.arguments);
    const ready = checking instanceof Promise ? await checking : checking;
    if (!ready.ok) {
      log.rejected(ready.message, performance.now() - since);
      return end('rejected', rejected(ready.message));
    }
    log.removed(ready.removed);
    const refusal = refusalOf(tool);
    if (refusal !== undefined) {
      log.refused(refusal);
      return end('refused', refused(refusal), ready);
    }
    log.started(ready.checked);
    const performed = await performCall({ tool, call, environment, args: ready.hydrated, log, since });
    return end(performed.status, performed.result, ready);
  } catch (error) {
    // Only the tool's declaration can get here: a schema that is none, or a factory that throws.
    const result = brokenTool(call.name, error);
    log.ended(result, performance.now() - since);
    return end('error', result);
  }
}

interface RecordParts {
  readonly call: CallRequest;
  readonly environment: CallEnvironment;
  readonly status: CallStatus;
  readonly result: ToolResult;
  readonly since: number;
  readonly ready?: ReadyArguments;
}

const NONE: readonly string[] = [];

function record({ call, environment, status, result, since, ready }: RecordParts): CallRecord {
  const usable = ready?.ok ? ready : undefined;
  return {
    id: call.id,
    name: call.name,
    rawArguments: call.arguments,
    arguments: usable?.checked,
    repairs: usable?.repairs ?? NONE,
    removed: usable?.removed ?? NONE,
    attempts: environment.attempt ?? 1,
    durationMs: performance.now() - since,
    status,
    result,
  };
}

function notFound(name: string): ToolResult {
  const message = `tool not found: ${name}`;
  return errorResult(message).withError(new ToolwrightError('ToolNotFound', message));
}

function rejected(message: string): ToolResult {
  return errorResult(message).withError(new ToolwrightError('InvalidArguments', message));
}

function refused(message: string): ToolResult {
  return errorResult(message).withError(new ToolwrightError('NotExecutableHere', message));
}

function brokenTool(tool: string, cause: unknown): ToolResult {
  const message = `The tool '${tool}' cannot be called: ${errorMessage(cause)}`;
  return errorResult(message).withError(new ToolwrightError('InvalidToolSignature', message, { cause }));
}
