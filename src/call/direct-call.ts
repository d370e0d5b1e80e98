import { readPlainArguments } from '../checking/read-arguments.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { Hydrated } from '../contract/tool.js';
import type { ToolContext } from '../contract/tool-context.js';
import type { ToolResult } from '../contract/tool-result.js';
import type { CallEnvironment, CallOrigin, CallRequest } from './invocation.js';
import type { CallPlan } from './plan.js';
import { writeBare } from './result.js';
import { isReady } from './run-body.js';

/** A direct call that has come to something which takes the steps of all others. */
export interface LeftCall extends CallOrigin {
  readonly environment: CallEnvironment;
  readonly request: CallRequest;
  readonly plan: CallPlan;
  /** The arguments, which fit the schema. */
  readonly accepted: JsonObject;
  readonly at: LeftAt;
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
    if (!isAlone(environment, request, origin)) return undefined;
    const plan = environment.find(request.name)?.direct;
    const accepted = plan && accept(plan, request.arguments);
    if (accepted === undefined || plan === undefined) return undefined;
    const { tool } = plan;
    const leave = (at: LeftAt) => takeOver({ environment, request, ...origin, plan, accepted, at });
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

function isAlone(
  environment: CallEnvironment,
  { read, journal }: CallRequest,
  { scope }: CallOrigin,
): boolean {
  return (
    environment.isRecorded !== true &&
    environment.logger === undefined &&
    (environment.telemetry === undefined || !environment.telemetry.isOn) &&
    environment.policies === undefined &&
    environment.hooks === undefined &&
    environment.toolTimeoutMs === undefined &&
    environment.onAsyncResult === undefined &&
    environment.jobs === undefined &&
    scope.signal === undefined &&
    journal === undefined &&
    read === undefined
  );
}

/** Arguments of which nothing has to be said. */
function accept({ check }: CallPlan, sent: unknown): JsonObject | undefined {
  const read = readPlainArguments(sent);
  return read && check.accept(read);
}

/** A tool that ignores the context gets none. */
const NO_CONTEXT = undefined as unknown as ToolContext;
