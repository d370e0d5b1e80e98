import { readPlainArguments } from '../checking/read-arguments.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { Hydrated } from '../contract/tool.js';
import type { ToolContext } from '../contract/tool-context.js';
import type { ToolResult } from '../contract/tool-result.js';
import { keptArguments } from './check-arguments.js';
import type { ReceivedCall } from './context.js';
import type { CallEnvironment, CallOrigin, CallRequest, Invocation } from './invocation.js';
import { CallLog } from './log.js';
import type { CallPlan } from './plan.js';
import { callRecord, writeBare } from './result.js';
import { isReady } from './run-body.js';

/** A direct call that has come to something which takes the steps of all others. */
export interface LeftCall {
  readonly received: ReceivedCall;
  readonly plan: CallPlan;
  /** The arguments, which fit the schema. */
  readonly accepted: JsonObject;
  readonly at: LeftAt;
  /** As they were sent, where the record of the call is wanted. */
  readonly sent?: unknown;
}

/** Hydration that threw, arguments with faults or still to come, a body that gave no plain data, or one that threw. */
type LeftAt =
  | { readonly how: 'broken'; readonly error: unknown }
  | { readonly how: 'hydrated'; readonly hydrated: Hydrated | Promise<Hydrated> }
  | { readonly how: 'returned'; readonly args: JsonObject; readonly value: unknown }
  | { readonly how: 'threw'; readonly args: JsonObject; readonly error: unknown };

type Answer = ToolResult | Promise<ToolResult>;

/** Answers a call, or leaves it alone (`undefined`) before anything has happened. */
type DirectCaller = (
  environment: CallEnvironment,
  request: CallRequest,
  origin: CallOrigin,
) => Answer | undefined;

/**
 * The short way of a call that nothing looks at, limits or decides about: accept ▸ run ▸ write, without the record that
 * the steps keep, which costs as much as all of this. `takeOver` takes what comes to more than that.
 */
export function createDirectCaller(takeOver: (left: LeftCall) => Answer): DirectCaller {
  return (environment, request, origin) => {
    const { isRecorded, toolTimeoutMs } = environment;
    const { read, journal } = request;
    if (isRecorded || toolTimeoutMs !== undefined || origin.scope.signal !== undefined) return undefined;
    if (read !== undefined || journal !== undefined || !isAlone(environment)) return undefined;
    const plan = environment.find(request.name)?.direct;
    const accepted = plan && accept(plan, request.arguments);
    if (accepted === undefined || plan === undefined) return undefined;
    const { tool } = plan;
    const leave = (at: LeftAt) =>
      takeOver({ received: receivedCall(environment, request, origin), plan, accepted, at });
    let args = accepted;
    let value: unknown;
    if (tool.hydrate !== undefined) {
      let hydrated: Hydrated | Promise<Hydrated>;
      try {
        hydrated = tool.hydrate(accepted);
      } catch (error) {
        return leave({ how: 'broken', error });
      }
      if (hydrated instanceof Promise || !hydrated.ok) return leave({ how: 'hydrated', hydrated });
      args = hydrated.value as JsonObject;
    }
    try {
      value = tool.execute(args, NO_CONTEXT);
    } catch (error) {
      return leave({ how: 'threw', args, error });
    }
    const write = (given: unknown): Answer =>
      isReady(given) ? writeBare(tool, given, environment) : leave({ how: 'returned', args, value: given });
    if (!(value instanceof Promise)) return write(value);
    return Promise.resolve(value).then(write, (error) => leave({ how: 'threw', args, error }));
  };
}

/** Whether nothing surrounds the calls of an environment: nobody hears of them, decides about them or outlives them. */
export function isAlone(environment: CallEnvironment): boolean {
  return (
    environment.logger === undefined &&
    (environment.telemetry === undefined || !environment.telemetry.isOn) &&
    environment.policies === undefined &&
    environment.hooks === undefined &&
    environment.onAsyncResult === undefined &&
    environment.jobs === undefined &&
    environment.onStep === undefined
  );
}

/** Makes a call that was not made before and whose record is wanted, or leaves it alone before anything has happened. */
type RecordedCaller = (
  environment: CallEnvironment,
  request: CallRequest,
  origin: CallOrigin,
) => Invocation | Promise<Invocation> | undefined;

/**
 * The short way of the calls of a run, in an environment where they are alone. Limits and inner runs are for bodies that
 * take time: those go on in steps.
 */
export function createRecordedCaller(
  takeOver: (left: LeftCall) => Invocation | Promise<Invocation>,
): RecordedCaller {
  return (environment, request, origin) => {
    const { scope, attempt = 1 } = origin;
    if (request.hasBegun || scope.signal?.aborted) return undefined;
    const plan = environment.find(request.name)?.direct;
    if (plan === undefined || plan.tool.hydrate !== undefined) return undefined;
    const since = performance.now();
    const checked = acceptRead(plan, request);
    if (checked === undefined) return undefined;
    const sent = keptArguments(request, plan, true);
    const leave = (at: LeftAt) =>
      takeOver({
        received: { ...receivedCall(environment, request, origin), since },
        ...{ plan, accepted: checked, at, sent },
      });
    let value: unknown;
    try {
      value = plan.tool.execute(checked, NO_CONTEXT);
    } catch (error) {
      return leave({ how: 'threw', args: checked, error });
    }
    if (value instanceof Promise || !isReady(value)) return leave({ how: 'returned', args: checked, value });
    const result = writeBare(plan.tool, value, environment);
    const call = { request, attempt, since, sent, checked, repairs: NONE, removed: NONE };
    const record = callRecord(call, { status: result.isError ? 'error' : 'success', result });
    return { status: 'settled', result, record };
  };
}

const NONE: readonly string[] = [];

function receivedCall(
  environment: CallEnvironment,
  request: CallRequest,
  { scope, attempt = 1 }: CallOrigin,
): ReceivedCall {
  return { request, environment, scope, attempt, log: CallLog.none, trace: undefined, since: 0 };
}

function acceptRead(plan: CallPlan, { read, arguments: sent }: CallRequest): JsonObject | undefined {
  if (read === undefined) return accept(plan, sent);
  return read.ok && read.repairs.length === 0 ? plan.check.accept(read.value) : undefined;
}

/** Arguments of which nothing has to be said. */
function accept({ check }: CallPlan, sent: unknown): JsonObject | undefined {
  const read = readPlainArguments(sent);
  return read && check.accept(read);
}

/** A tool that ignores the context gets none. */
const NO_CONTEXT = undefined as unknown as ToolContext;
