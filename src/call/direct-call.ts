import { readPlainArguments } from '../checking/read-arguments.js';
import type { CallScope } from '../contract/call.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { Hydrated, ToolDefinition } from '../contract/tool.js';
import type { ToolContext } from '../contract/tool-context.js';
import type { ToolResult } from '../contract/tool-result.js';
import { type CheckedFacts, checkedFacts } from './check-arguments.js';
import { type Call, contextOf, type ReceivedCall } from './context.js';
import type { BodyEnd, CallEnvironment, CallOrigin, CallRequest, Invocation } from './invocation.js';
import { CallLog } from './log.js';
import type { CallPlan, DirectTool } from './plan.js';
import { callRecord, isReady, writeBare } from './result.js';
import { type AwaitedWork, awaitWork, settledEnd, type WorkingCall } from './run-body.js';

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
      if (hydrated instanceof Promise || !hydrated.ok) return leave(call, { how: 'hydrated', hydrated });
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
  return (environment, request, origin) => {
    if (request.hasBegun || origin.scope.signal?.aborted) return undefined;
    const direct = environment.find(request.name)?.direct;
    if (direct === undefined || direct.hydrate !== undefined) return undefined;
    const since = performance.now();
    const checked = acceptRead(direct, request);
    if (checked === undefined) return undefined;
    const call = new RecordedCall({ environment, request, origin, direct, since, checked, inSteps });
    let value: unknown;
    try {
      value = direct.execute.call(direct.plan.tool, checked, NO_CONTEXT);
    } catch (error) {
      return call.leave({ how: 'ended', args: checked, end: { how: 'threw', error } });
    }
    if (value instanceof Promise) return awaitWork(call, Promise.resolve(value), call);
    return isReady(value) ? call.answer(value) : call.leave({ how: 'returned', args: checked, value });
  };
}

interface RecordedParts {
  readonly environment: CallEnvironment;
  readonly request: CallRequest;
  readonly origin: CallOrigin;
  readonly direct: DirectTool;
  readonly since: number;
  readonly checked: JsonObject;
  readonly inSteps: WayInSteps;
}

/** A call of a run on the short way. */
class RecordedCall implements WorkingCall, AwaitedWork<Invocation> {
  readonly environment: CallEnvironment;
  readonly scope: CallScope;
  readonly log = CallLog.none;
  readonly tool: ToolDefinition;
  readonly request: CallRequest;
  readonly attempt: number;
  readonly since: number;
  readonly checked: JsonObject;
  readonly facts: CheckedFacts;
  readonly #direct: DirectTool;
  readonly #inSteps: WayInSteps;
  /** The same as its steps keep it, once it goes on in them. */
  #call: Call | undefined;

  constructor({ environment, request, origin, direct, since, checked, inSteps }: RecordedParts) {
    const { scope, attempt = 1 } = origin;
    this.environment = environment;
    this.scope = scope;
    this.tool = direct.plan.tool;
    this.request = request;
    this.attempt = attempt;
    this.since = since;
    this.checked = checked;
    this.facts = checkedFacts(request, direct.plan, ACCEPTED);
    this.#direct = direct;
    this.#inSteps = inSteps;
  }

  answer(value: unknown): Invocation {
    const result = writeBare(this.#direct, value, this.environment);
    const record = callRecord(this, { status: result.isError ? 'error' : 'success', result });
    return { status: 'settled', result, record };
  }

  leave(at: LeftAt): Invocation | Promise<Invocation> {
    const { checked: accepted, facts } = this;
    const { plan } = this.#direct;
    return this.#inSteps.takeOver({ received: this.#received, plan, accepted, at, facts });
  }

  onEnd(end: BodyEnd): Invocation | Promise<Invocation> {
    const isPlain = this.#call === undefined && !this.environment.innerWaits?.().length;
    return end.how === 'returned' && isPlain
      ? this.answer(end.value)
      : this.leave({ how: 'ended', args: this.checked, end, call: this.#opened });
  }

  settle(value: unknown): Promise<BodyEnd> | undefined {
    return isReady(value) ? undefined : settledEnd(this.#opened, value);
  }

  stop(reason: unknown): void {
    contextOf(this.#opened).stop(reason);
  }

  get #received(): ReceivedCall {
    const { environment, request, scope, attempt, since } = this;
    return { ...receivedCall(environment, request, { scope, attempt }), since };
  }

  get #opened(): Call {
    const { tool, checked, facts } = this;
    const { plan } = this.#direct;
    this.#call ??= this.#inSteps.open(this.#received, { tool, plan, checked, args: checked, facts });
    return this.#call;
  }
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
