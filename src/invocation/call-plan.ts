import type { Checker } from '../checking/create-checker.js';
import { createResultChecker, type ResultChecker } from '../checking/create-result-checker.js';
import { sharedChecker } from '../checking/shared-checker.js';
import { wrappedChecker } from '../checking/wrapped-checker.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import { nullableOptionals } from '../schema/nullable-schema.js';
import { offeredParameters } from '../schema/offered-parameters.js';

/** What can be decided about a tool's calls once, instead of at each of them. */
export interface CallPlan {
  readonly parameters: object;
  readonly check: Checker;
  /** The property that the arguments are offered in, where their schema has to be put into one. */
  readonly wrapper?: string;
  readonly checkResult?: ResultChecker;
  /** Where results were told not to fit, of an output that was only inferred. */
  readonly toldMisfits: Set<string>;
  /** JSON that had to be repaired is good enough. */
  readonly takesRepaired: boolean;
  /** A hand-written tool that stores on itself, so that its calls must not overlap. */
  readonly isShared: boolean;
  /** Its body may have to wait for somebody: for an approval, or for the client that executes it. */
  readonly isGuarded: boolean;
}

/** Mending by default; one set of plans for each choice of the registry. */
const plans = {
  mending: new WeakMap<ToolDefinition, CallPlan>(),
  asSent: new WeakMap<ToolDefinition, CallPlan>(),
};

/**
 * The plan of a tool: made at its first call, which is when its schema is compiled; again where a
 * hand-written tool changes its schema.
 */
export function planOf(tool: ToolDefinition, { coerce = true }: { readonly coerce?: boolean }): CallPlan {
  const known = coerce ? plans.mending : plans.asSent;
  const plan = known.get(tool);
  if (plan !== undefined && plan.parameters === tool.parameters) return plan;
  const made = makePlan(tool, tool.coerce ?? coerce);
  known.set(tool, made);
  return made;
}

function makePlan(tool: ToolDefinition, coerce: boolean): CallPlan {
  const { parameters, annotations, repair, isOutputInferred, approval, execution, checkedAs, fillsDefaults } =
    tool;
  const output = checkedAs?.output ?? tool.output;
  const isDestructive = annotations?.destructive ?? false;
  const check = sharedChecker(checkedAs?.parameters ?? parameters, {
    refuseExtra: isDestructive,
    asSent: !coerce,
    fillDefaults: fillsDefaults,
  });
  const { wrapper } = offeredParameters(parameters);
  return {
    parameters,
    wrapper,
    check: wrapper === undefined ? check : wrappedChecker(check, wrapper),
    checkResult: output && createResultChecker(isOutputInferred ? nullableOptionals(output) : output),
    toldMisfits: new Set(),
    // What destroys does not run on what somebody may have meant.
    takesRepaired: repair ?? !isDestructive,
    isShared: 'setContext' in tool || 'setCallback' in tool,
    isGuarded: execution === 'client' || (approval !== undefined && approval !== false),
  };
}
