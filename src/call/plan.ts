import {
  type Checker,
  createResultChecker,
  type ResultChecker,
  sharedChecker,
  wrappedChecker,
} from '../checking/checker.js';
import type { ToolDefinition } from '../contract/tool.js';
import { isFinishedTool } from '../discovery/define-tool.js';
import { nullableOptionals } from '../schema/keywords.js';
import { offeredParameters } from '../schema/offered-parameters.js';
import { approvalNeed } from './waits.js';

/** What can be decided about a tool's calls once, instead of at each of them. */
export interface CallPlan {
  readonly tool: ToolDefinition;
  readonly parameters: object;
  /** What the registry says of types that do not fit. */
  readonly isMending: boolean;
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
  /** It takes the context, or is told of it before it runs. */
  readonly needsContext: boolean;
  /** Its body may have to wait for somebody: for an approval, or for the client that executes it. */
  readonly isGuarded: boolean;
  /** Nothing of the tool itself takes more than its arguments. */
  readonly isDirect: boolean;
}

/** What a direct call reads of its tool: in one form, where tools have as many as they have options. */
export interface DirectTool
  extends Pick<ToolDefinition, 'name' | 'hydrate' | 'execute' | 'returnsContent' | 'maxResultChars'> {
  readonly plan: CallPlan;
  readonly accept: Checker['accept'];
}

/** What keeps the plan of the tool that it gave last. */
interface PlannedEntry {
  plan?: CallPlan;
  /** Where calls of it may be direct: it is the tool of every call, and takes nothing but arguments. */
  direct?: DirectTool;
  /** The tool of every call, where that is always the same. */
  readonly fixed?: ToolDefinition;
}

/** One registered tool. */
export interface ToolEntry extends PlannedEntry {
  /** The tool that serves the next call. */
  readonly open: () => ToolDefinition;
  /** The tool as it was when it was registered: what is offered. */
  readonly offered: ToolDefinition;
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
export function planOf(entry: PlannedEntry, tool: ToolDefinition, coerce = true): CallPlan {
  const { plan } = entry;
  if (plan?.tool === tool && plan.parameters === tool.parameters && plan.isMending === coerce) return plan;
  const known = coerce ? plans.mending : plans.asSent;
  let planned = known.get(tool);
  if (planned?.parameters !== tool.parameters) {
    planned = makePlan(tool, coerce);
    known.set(tool, planned);
  }
  entry.plan = planned;
  if (planned.isDirect && entry.fixed === tool) entry.direct = directTool(planned);
  return planned;
}

function directTool(plan: CallPlan): DirectTool {
  const { name, hydrate, execute, returnsContent, maxResultChars } = plan.tool;
  return { plan, accept: plan.check.accept, name, hydrate, execute, returnsContent, maxResultChars };
}

function makePlan(tool: ToolDefinition, isMending: boolean): CallPlan {
  const { parameters, annotations, repair, isOutputInferred, approval, execution, fillsDefaults } = tool;
  const { checkedAs, hydrate } = tool;
  const output = checkedAs?.output ?? tool.output;
  const isDestructive = annotations?.destructive ?? false;
  const check = sharedChecker(hydrate?.accepts ?? checkedAs?.parameters ?? parameters, {
    refuseExtra: isDestructive,
    asSent: !(tool.coerce ?? isMending),
    fillDefaults: fillsDefaults,
  });
  const { wrapper } = offeredParameters(parameters);
  const isShared = 'setContext' in tool || 'setCallback' in tool;
  const needsContext = isShared || tool.ignoresContext !== true;
  const isGuarded = execution === 'client' || approvalNeed(approval) !== false;
  const isOutputEnforced = output !== undefined && !isOutputInferred;
  return {
    tool,
    parameters,
    isMending,
    wrapper,
    check: wrapper === undefined ? check : wrappedChecker(check, wrapper),
    checkResult: output && createResultChecker(isOutputInferred ? nullableOptionals(output) : output),
    toldMisfits: new Set(),
    // What destroys does not run on what somebody may have meant.
    takesRepaired: repair ?? !isDestructive,
    isShared,
    needsContext,
    isGuarded,
    // A hand-written tool may tell its limit by a getter.
    isDirect:
      isFinishedTool(tool) &&
      tool.timeoutMs === undefined &&
      !(needsContext || isGuarded || isOutputEnforced),
  };
}
