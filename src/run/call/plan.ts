import type { ToolDefinition } from '../../core/contract/tool.js';
import {
  type Checker,
  createResultChecker,
  type ResultChecker,
  sharedChecker,
  wrappedChecker,
} from '../../tools/checking/checker.js';
import { nullableOptionals } from '../../tools/schema/keywords.js';
import { offeredParameters } from '../../tools/schema/write-schema.js';
import { approvalNeed } from './waits.js';

/** The facts about a tool's calls that are determined once. */
export interface CallPlan {
  readonly tool: ToolDefinition;
  readonly parameters: object;
  readonly check: Checker;
  /** That of `check`, which is used at every call. */
  readonly accept: Checker['accept'];
  /** The property that contains the offered arguments, if their schema had to be wrapped. */
  readonly wrapper?: string;
  readonly checkResult?: ResultChecker;
  /** Places where results did not match an inferred output and were already reported. */
  readonly reportedMisfits: Set<string>;
  /** Repaired JSON is accepted. */
  readonly takesRepaired: boolean;
  /** A hand-written tool with state, whose calls must not overlap. */
  readonly isShared: boolean;
  /** It takes the context, or receives it before it runs. */
  readonly needsContext: boolean;
  /** Its body may have to wait: for an approval, or for the client that executes it. */
  readonly isGuarded: boolean;
  /** Its caller must have OAuth scopes. */
  readonly needsScopes: boolean;
}

/** A registered tool. */
export interface ToolEntry {
  /** The tool for the next call. */
  readonly open: () => ToolDefinition;
  /** The tool as it was registered: this version is offered. */
  readonly offered: ToolDefinition;
  /** The tool of every call, if it is finished and always the same. */
  readonly fixed?: ToolDefinition;
  /** The pipeline of its last call; valid only for the same environment and version of the tool. */
  composed?: object;
}

/** Types are coerced by default; one set of plans for each setting of the registry. */
const plans = {
  coercing: new WeakMap<ToolDefinition, CallPlan>(),
  asSent: new WeakMap<ToolDefinition, CallPlan>(),
};

/**
 * The plan of a tool: created at its first call, which compiles its schema; again if a hand-written tool changes its
 * schema.
 */
export function planOf(tool: ToolDefinition, coerce = true): CallPlan {
  const known = coerce ? plans.coercing : plans.asSent;
  const plan = known.get(tool);
  if (plan?.parameters === tool.parameters) return plan;
  const made = makePlan(tool, coerce);
  known.set(tool, made);
  return made;
}

function makePlan(tool: ToolDefinition, coerce: boolean): CallPlan {
  const { parameters, annotations, repair, isOutputInferred, approval, execution, fillsDefaults } = tool;
  const { checkedAs, hydrate } = tool;
  const output = checkedAs?.output ?? tool.output;
  const isDestructive = annotations?.destructive ?? false;
  const check = sharedChecker(hydrate?.accepts ?? checkedAs?.parameters ?? parameters, {
    refuseExtra: isDestructive,
    asSent: !(tool.coerce ?? coerce),
    fillDefaults: fillsDefaults,
  });
  const { wrapper } = offeredParameters(parameters);
  const checker = wrapper === undefined ? check : wrappedChecker(check, wrapper);
  const isShared = 'setContext' in tool || 'setCallback' in tool;
  const needsContext = isShared || tool.ignoresContext !== true;
  const isGuarded = execution === 'client' || approvalNeed(approval) !== false;
  return {
    tool,
    parameters,
    wrapper,
    check: checker,
    accept: checker.accept,
    checkResult: output && createResultChecker(isOutputInferred ? nullableOptionals(output) : output),
    reportedMisfits: new Set(),
    // A destructive tool never runs with guessed arguments.
    takesRepaired: repair ?? !isDestructive,
    isShared,
    needsContext,
    isGuarded,
    needsScopes: Boolean(tool.scopes?.length),
  };
}
