import type { ToolDefinition } from '../contract/tool-definition.js';
import { CallLog } from './call-log.js';
import { planOf } from './call-plan.js';
import { checkArguments, type ReadyArguments } from './check-arguments.js';
import { errorMessage } from './error-message.js';
import { failedResult } from './failed-result.js';
import type { CallEnvironment, CallRequest, Invocation } from './invocation.js';
import { type PerformedCall, performCall } from './perform-call.js';
import { refusalOf } from './refusal-of.js';
import { SettledCall } from './settled-call.js';

/**
 * The staircase every call takes, whoever makes it: find ▸ read ▸ check ▸ allow ▸ run ▸ write (design §1).
 * Each step can end the call with a result; nothing is thrown. Synchronous as long as the tool is: a
 * promise for each step would cost more than the steps.
 */
export function callTool(call: CallRequest, environment: CallEnvironment): Invocation | Promise<Invocation> {
  const stairs: Stairs = beginStairs(call, environment);
  return orBroken(stairs, () => {
    const tool = environment.find(call.name);
    if (tool === undefined) {
      stairs.log.notFound();
      const message = `tool not found: ${call.name}`;
      return end(stairs, { status: 'rejected', result: failedResult('ToolNotFound', message) });
    }
    const plan = planOf(tool, environment);
    const ready = checkArguments(tool, plan, call.arguments);
    return ready instanceof Promise
      ? ready.then((later) => orBroken(stairs, () => proceed(stairs, { tool, plan, ready: later })))
      : proceed(stairs, { tool, plan, ready });
  });
}

/** What every step needs to end the call. */
interface Stairs {
  readonly call: CallRequest;
  readonly environment: CallEnvironment;
  readonly log: CallLog;
  readonly since: number;
}

function beginStairs(call: CallRequest, environment: CallEnvironment): Stairs {
  const { logger, isTimed } = environment;
  return {
    call,
    environment,
    log: logger === undefined ? CallLog.none : new CallLog(logger, call),
    since: logger !== undefined || isTimed ? performance.now() : 0,
  };
}

interface CheckedCall {
  readonly tool: ToolDefinition;
  readonly plan: ReturnType<typeof planOf>;
  readonly ready: ReadyArguments;
}

/** From the check on: allow ▸ run ▸ write. */
function proceed(stairs: Stairs, { tool, plan, ready }: CheckedCall): Invocation | Promise<Invocation> {
  const { call, environment, log, since } = stairs;
  if (!ready.ok) {
    log.rejected(ready.message, performance.now() - since);
    return end(stairs, { status: 'rejected', result: failedResult('InvalidArguments', ready.message) });
  }
  const refusal = refusalOf(tool);
  if (refusal !== undefined) {
    log.refused(refusal);
    return end(stairs, { status: 'refused', result: failedResult('NotExecutableHere', refusal), ready });
  }
  if (log.isRead) {
    log.removed(ready.removed);
    log.started(ready.checked);
  }
  const finish = ({ status, result }: PerformedCall) => end(stairs, { status, result, ready });
  const performed = performCall({
    tool,
    plan,
    call,
    environment,
    checked: ready.checked,
    args: ready.hydrated,
    log,
    since,
  });
  return performed instanceof Promise ? performed.then(finish) : finish(performed);
}

interface CallEnd extends PerformedCall {
  readonly ready?: ReadyArguments;
}

function end({ call, environment, since }: Stairs, { status, result, ready }: CallEnd): Invocation {
  const durationMs = since === 0 ? 0 : performance.now() - since;
  return new SettledCall({ call, environment, status, result, durationMs, ready });
}

/** Only a tool's declaration can throw here: a schema that is none, a factory, a constructor, a getter. */
function orBroken(
  stairs: Stairs,
  step: () => Invocation | Promise<Invocation>,
): Invocation | Promise<Invocation> {
  const broken = (cause: unknown): Invocation => {
    const message = `The tool '${stairs.call.name}' cannot be called: ${errorMessage(cause)}`;
    const result = failedResult('InvalidToolSignature', message, cause);
    stairs.log.ended(result, performance.now() - stairs.since);
    return end(stairs, { status: 'error', result });
  };
  try {
    const outcome = step();
    return outcome instanceof Promise ? outcome.catch(broken) : outcome;
  } catch (cause) {
    return broken(cause);
  }
}
