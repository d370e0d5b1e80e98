import { readPlainArguments } from '../checking/read-arguments.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { Hydrated } from '../contract/tool.js';
import type { ToolContext } from '../contract/tool-context.js';
import type { ToolResult } from '../contract/tool-result.js';
import { type CheckedFacts, checkedFacts } from './check-arguments.js';
import { type Call, contextOf, type ReceivedCall } from './context.js';
import type { BodyEnd, CallEnvironment, CallOrigin, CallRequest, Invocation } from './invocation.js';
import { CallLog } from './log.js';
import type { CallPlan, DirectTool } from './plan.js';
import { callRecord, isReady, writeBare } from './result.js';
import { type AwaitedWork, awaitWork, settledEnd } from './run-body.js';

/** A direct call that has come to something which takes the steps of all others. */
export interface LeftCall {
  readonly received: ReceivedCall;
  readonly plan: CallPlan;
  /** The arguments, which fit the schema. */
  readonly accepted: JsonObject;
  readonly at: LeftAt;
  /** What is told of them, where the record of the call is wanted. */
  readonly facts?: CheckedFacts;
}

/** Hydration that threw, arguments with faults or still to come, a body that gave no plain data, or that ended otherwise. */
type LeftAt =
  | { readonly how: 'broken'; readonly error: unknown }
  | { readonly how: 'hydrated'; readonly hydrated: Hydrated | Promise<Hydrated> }
  | { readonly how: 'returned'; readonly args: JsonObject; readonly value: unknown; readonly call?: Call }
  | { readonly how: 'ended'; readonly args: JsonObject; readonly end: BodyEnd; readonly call?: Call };

type Answer = ToolResult | Promise<ToolResult>;

/** Answers a call, or leaves it alone (`undefined`) before anything has happened. */
type DirectCaller = (
  environment: CallEnvironment,
  request: CallRequest,
  origin: CallOrigin,
) => Answer | undefined;

/** A call whose arguments nothing has to be said of. */
interface AcceptedCall {
  readonly environment: CallEnvironment;
  readonly request: CallRequest;
  readonly origin: CallOrigin;
  readonly tool: DirectTool;
  readonly accepted: JsonObject;
}

/**
 * The short way of a call that nothing looks at, limits or decides about: accept ▸ run ▸ write, without the record that
 * the steps keep, which costs as much as all of this. `takeOver` takes what comes to more than that.
 */
export function createDirectCaller(takeOver: (left: LeftCall) => Answer): DirectCaller {
  const leave = ({ environment, request, origin, tool, accepted }: AcceptedCall, at: LeftAt): Answer =>
    takeOver({ received: receivedCall(environment, request, origin), plan: tool.plan, accepted, at });
  const write = (call: AcceptedCall, args: JsonObject, value: unknown): Answer =>
    isReady(value)
      ? writeBare(call.tool, value, call.environment)
      : leave(call, { how: 'returned', args, value });
  return (environment, request, origin) => {
    const { signal } = origin.scope;
    const { read, journal } = request;
    if (read !== undefined || journal !== undefined || signal?.aborted) return undefined;
    if (environment.isRecorded || !isAlone(environment)) return undefined;
    const tool = environment.find(request.name)?.direct;
    const accepted = tool && accept(tool, request.arguments);
    if (accepted === undefined || tool === undefined) return undefined;
    const call: AcceptedCall = { environment, request, origin, tool, accepted };
    let args = accepted;
    if (tool.hydrate !== undefined) {
      let hydrated: Hydrated | Promise<Hydrated>;
      try {
        hydrated = tool.hydrate(accepted);
      } catch (error) {
        return leave(call, { how: 'broken', error });
      }
      if (hydrated instanceof Promise || !hydrated.ok || hydrated.transformed !== undefined)
        return leave(call, { how: 'hydrated', hydrated });
      args = hydrated.value as JsonObject;
    }
    let value: unknown;
    try {
      value = tool.execute.call(tool.plan.tool, args, NO_CONTEXT);
    } catch (error) {
      return leave(call, { how: 'ended', args, end: { how: 'threw', error } });
    }
    if (!(value instanceof Promise)) return write(call, args, value);
    // Limits are for bodies that take time: those go on in steps.
    if (signal !== undefined || environment.toolTimeoutMs !== undefined)
      return leave(call, { how: 'returned', args, value });
    return Promise.resolve(value).then(
      (given) => write(call, args, given),
      (error) => leave(call, { how: 'ended', args, end: { how: 'threw', error } }),
    );
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

/** How a call goes on that has taken the short way: in steps, with the record that they keep of it. */
interface WayInSteps {
  readonly takeOver: (left: LeftCall) => Invocation | Promise<Invocation>;
  readonly open: (
    received: ReceivedCall,
    parts: Pick<Call, 'tool' | 'plan' | 'checked' | 'args' | 'facts'>,
  ) => Call;
}

/**
 * The short way of the calls of a run, in an environment where they are alone: also for bodies that take time, unless
 * limits end them, they begin runs that wait, or give what has to be settled first.
 */
export function createRecordedCaller(inSteps: WayInSteps): RecordedCaller {
  const leave = (call: RecordedCall, at: LeftAt) => {
    const { plan, checked: accepted, facts } = call;
    return inSteps.takeOver({ received: receivedAs(call), plan, accepted, at, facts });
  };
  const opened = (call: RecordedCall): Call => {
    const { tool, plan, checked, facts } = call;
    call.opened ??= inSteps.open(receivedAs(call), { tool, plan, checked, args: checked, facts });
    return call.opened;
  };
  const awaited: AwaitedWork<Invocation, RecordedCall> = {
    onEnd: (end, call) =>
      end.how === 'returned' && call.opened === undefined && !call.environment.innerWaits?.().length
        ? settledCall(call, end.value)
        : leave(call, { how: 'ended', args: call.checked, end, call: opened(call) }),
    settle: (value, call) => (isReady(value) ? undefined : settledEnd(opened(call), value)),
    stop: (reason, call) => contextOf(opened(call)).stop(reason),
  };
  return (environment, request, { scope, attempt = 1 }) => {
    if (request.hasBegun || scope.signal?.aborted) return undefined;
    const direct = environment.find(request.name)?.direct;
    if (direct === undefined || direct.hydrate !== undefined) return undefined;
    const since = performance.now();
    const checked = acceptRead(direct, request);
    if (checked === undefined) return undefined;
    const { plan } = direct;
    const facts = checkedFacts(request, plan, ACCEPTED);
    const call: RecordedCall = {
      environment,
      request,
      scope,
      attempt,
      since,
      tool: plan.tool,
      plan,
      log: CallLog.none,
      checked,
      facts,
      direct,
      opened: undefined,
    };
    let value: unknown;
    try {
      value = direct.execute.call(plan.tool, checked, NO_CONTEXT);
    } catch (error) {
      return leave(call, { how: 'ended', args: checked, end: { how: 'threw', error } });
    }
    if (value instanceof Promise) return awaitWork(call, Promise.resolve(value), awaited);
    return isReady(value) ? settledCall(call, value) : leave(call, { how: 'returned', args: checked, value });
  };
}

/** A call of a run on the short way. */
interface RecordedCall
  extends Pick<Call, 'environment' | 'request' | 'scope' | 'attempt' | 'since' | 'tool' | 'plan' | 'log'>,
    Pick<Call, 'checked' | 'facts'> {
  readonly direct: DirectTool;
  /** The same as its steps keep it, once it goes on in them. */
  opened: Call | undefined;
}

function settledCall(call: RecordedCall, value: unknown): Invocation {
  const result = writeBare(call.direct, value, call.environment);
  const record = callRecord(call, { status: result.isError ? 'error' : 'success', result });
  return { status: 'settled', result, record };
}

function receivedAs({ environment, request, scope, attempt, since }: RecordedCall): ReceivedCall {
  return { ...receivedCall(environment, request, { scope, attempt }), since };
}

const ACCEPTED = { isAccepted: true } as const;

function receivedCall(
  environment: CallEnvironment,
  request: CallRequest,
  { scope, attempt = 1 }: CallOrigin,
): ReceivedCall {
  return { request, environment, scope, attempt, log: CallLog.none, trace: undefined, since: 0 };
}

function acceptRead(tool: DirectTool, { read, arguments: sent }: CallRequest): JsonObject | undefined {
  if (read === undefined) return accept(tool, sent);
  return read.ok && read.repairs.length === 0 ? tool.accept(read.value) : undefined;
}

/** Arguments of which nothing has to be said. */
function accept(tool: DirectTool, sent: unknown): JsonObject | undefined {
  const read = readPlainArguments(sent);
  return read && tool.accept(read);
}

/** A tool that ignores the context gets none. */
const NO_CONTEXT = undefined as unknown as ToolContext;
