import type { CallJournal, CallRecord, CallStatus, PendingKind } from '../../core/contract/call.js';
import type { CallTrace } from '../../core/contract/telemetry.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import { andThen } from '../../core/kernel/async.js';
import { namesByNearness } from '../../core/kernel/nearest-name.js';
import { allow } from './allow.js';
import { redactionIn } from './call-log.js';
import { callRecord } from './call-outcome.js';
import { rejectArguments } from './check-arguments.js';
import { check, invalidTool, takeArguments } from './check-call.js';
import { type Call, contextOf, keyOfEffect, newCall, type ReceivedCall } from './context.js';
import { HookedCallLife, type HooksByMoment, hooksByMoment } from './hooked-call.js';
import type {
  BodyOutcome,
  CallEnvironment,
  CallOutcome,
  CallRequest,
  CallSource,
  Invocation,
  RecordedEnvironment,
} from './invocation.js';
import { type CallPlan, planOf } from './plan.js';
import { allowAgain, checkAgain, endWithoutCall } from './repeated-call.js';
import { failedResult } from './result-text.js';
import { blockedResult, outcomeOfBody, runBody } from './run-body.js';
import { JobTask } from './start-job.js';
import { CallTask, runInTurn, startMethod } from './tasks.js';

type MaybeLater<Value> = Value | Promise<Value>;

/** The answer to a call: its result, or an invocation if the environment requests the record of the call. */
type Answer = MaybeLater<ToolResult | Invocation>;

/** A step of a call. Returns the outcome of the call if it ends there. */
type Step = (call: Call) => MaybeLater<CallOutcome | undefined>;

type OnBodyEnd = (call: Call, body: BodyOutcome) => Answer;

/** Processes the outcome of a call, and may change it. */
type Ending = (call: ReceivedCall, outcome: CallOutcome) => MaybeLater<CallOutcome | undefined>;

/** The parts of a pipeline: only those that are needed. */
interface PipelineParts {
  readonly environment: CallEnvironment;
  readonly plan: CallPlan | undefined;
  readonly hooks: HooksByMoment | undefined;
  readonly steps: readonly Step[];
  /** The steps of calls that are executed again. */
  readonly stepsAgain: () => readonly Step[];
  readonly run: (call: Call, onEnd: OnBodyEnd) => Answer;
  readonly endings: readonly Ending[];
}

/** The pipeline for calls of one tool in one environment. */
class Pipeline {
  constructor(readonly parts: PipelineParts) {}

  make(request: CallRequest, { scope, attempt }: CallSource, trace?: CallTrace): Answer {
    const { environment, plan, hooks, steps, stepsAgain } = this.parts;
    const call = newCall(environment, request, { scope, plan, attempt, trace });
    if (hooks !== undefined) call.hooked = new HookedCallLife(hooks, call);
    const isAgain = request.journal !== undefined || request.hasBegun;
    return this.#advance(call as Call, isAgain ? stepsAgain() : steps);
  }

  /** Continues the steps of a call and settles it: synchronously, or with a promise if a step has to wait. */
  #advance(call: Call, steps: readonly Step[], from = 0): Answer {
    try {
      for (let index = from; index < steps.length; index += 1) {
        const outcome = (steps[index] as Step)(call);
        if (outcome instanceof Promise)
          return outcome.then(
            (later) =>
              later === undefined ? this.#advance(call, steps, index + 1) : this.#settle(call, later),
            (cause) => this.#fail(call, cause),
          );
        if (outcome !== undefined) return this.#settle(call, outcome);
      }
      return this.parts.run(call, this.#endBody);
    } catch (cause) {
      return this.#fail(call, cause);
    }
  }

  /** Step "write". */
  readonly #endBody: OnBodyEnd = (call, body) => {
    try {
      call.environment.onStep?.('run');
      const outcome = outcomeOfBody(call, body);
      if (!(outcome instanceof Promise)) return this.#settle(call, outcome);
      return outcome.then(
        (later) => this.#settle(call, later),
        (cause) => this.#fail(call, cause),
      );
    } catch (cause) {
      return this.#fail(call, cause);
    }
  };

  #fail(call: ReceivedCall, cause: unknown): Answer {
    return this.#settle(call, invalidTool(call, cause));
  }

  /** Settles a call with any outcome: the only place that reports the outcome to everything around the call. */
  #settle(call: ReceivedCall, outcome: CallOutcome, from = 0): Answer {
    const { endings } = this.parts;
    let last = outcome;
    try {
      for (let index = from; index < endings.length; index += 1) {
        const next = (endings[index] as Ending)(call, last);
        if (next instanceof Promise) {
          const before = last;
          return next.then(
            (later) => this.#settle(call, later ?? before, index + 1),
            (cause) => answer(call, invalidTool(call, cause)),
          );
        }
        last = next ?? last;
      }
    } catch (cause) {
      last = invalidTool(call, cause);
    }
    return answer(call, last);
  }
}

/**
 * Makes a call: find ▸ read ▸ check ▸ allow ▸ run ▸ write. Synchronous if all of its steps are. Never throws or
 * rejects.
 */
export function makeCall<Environment extends CallEnvironment>(
  environment: Environment,
  request: CallRequest,
  source: CallSource,
): MaybeLater<Environment extends RecordedEnvironment ? Invocation : ToolResult> {
  // Code that most calls skip is separate, because engines inline only short functions.
  const answer = environment.telemetry?.isOn
    ? makeTraced(environment, request, source)
    : pipelineFor(environment, request).make(request, source);
  return answer as ReturnType<typeof makeCall<Environment>>;
}

function makeTraced(environment: CallEnvironment, request: CallRequest, origin: CallSource): Answer {
  const { telemetry } = environment;
  const { id, name, journal, startedBy, mcp } = request;
  const trace = telemetry?.startCall({
    id,
    name,
    tool: environment.find(name)?.offered,
    attempt: origin.attempt ?? 1,
    // A job was approved before it was started.
    answered: startedBy === undefined ? answeredIn(journal) : [],
    startedBy,
    mcp,
    redaction: redactionIn(environment),
  });
  const make = (): Answer => pipelineFor(environment, request).make(request, origin, trace);
  return trace === undefined ? make() : trace.within(make);
}

/** Step "find": the pipeline of a tool, composed when the tool is first called in this environment. */
function pipelineFor(environment: CallEnvironment, { name }: CallRequest): Pipeline {
  try {
    const entry = environment.find(name);
    if (entry === undefined) return composeMissing(environment, notFound);
    const known = entry.composed as Pipeline | undefined;
    const isCurrent = known?.parts.environment === environment;
    if (isCurrent && entry.fixed !== undefined) return known;
    const plan = planOf(entry.open(), environment.coerce);
    if (isCurrent && known.parts.plan === plan) return known;
    const hooks = hooksOf(environment);
    const hasTask = environment.onAsyncResult !== undefined || isJob(plan, environment);
    const composed = { plan, environment, hooks, hasTask };
    const pipeline = new Pipeline({
      plan,
      environment,
      hooks,
      steps: composeSteps(composed, false),
      stepsAgain: () => composeSteps(composed, true),
      run: runOf(plan, environment),
      endings: composeEndings(composed),
    });
    entry.composed = pipeline;
    return pipeline;
  } catch (cause) {
    return composeMissing(environment, (call) => invalidTool(call, cause));
  }
}

function notFound({ request, environment }: ReceivedCall): CallOutcome {
  return { status: 'rejected', result: notFoundResult(request.name, environment.names?.() ?? []) };
}

/** The pipeline of calls whose tool is not available. */
function composeMissing(environment: CallEnvironment, end: (call: ReceivedCall) => CallOutcome): Pipeline {
  const hooks = hooksOf(environment);
  const composed = { plan: undefined, environment, hooks };
  return new Pipeline({
    ...composed,
    steps: [end],
    stepsAgain: () => [(call) => endWithoutCall(call, end(call))],
    run: runBody,
    endings: composeEndings({ ...composed, hasTask: false }),
  });
}

/** The facts that determine the steps; without a plan if the tool is missing. */
interface Composed extends Pick<PipelineParts, 'plan' | 'environment' | 'hooks'> {
  /** Work may outlive the answer. */
  readonly hasTask: boolean;
}

function hooksOf({ hooks, budget }: CallEnvironment): HooksByMoment | undefined {
  if (budget === undefined) return hooks && hooksByMoment(hooks);
  return hooksByMoment([...(hooks ?? []), budget]);
}

function isJob({ tool }: CallPlan, { jobs }: CallEnvironment): boolean {
  return jobs !== undefined && Boolean(tool.background);
}

function composeSteps(
  { plan, environment, hooks, hasTask }: Composed & { readonly plan: CallPlan },
  isAgain: boolean,
): readonly Step[] {
  const { logger, policies, onStep, isRecorded } = environment;
  const mayWait =
    environment.hooks ||
    hasTask ||
    policies ||
    plan.isGuarded ||
    plan.needsScopes ||
    plan.isShared ||
    isAgain;
  // Calls of a run are reported in the order in which they finish; a rejected call finishes early.
  const inOrder = (step: Step): Step =>
    isRecorded && mayWait ? (call) => Promise.resolve(call).then(step) : step;
  const checkStep = isAgain ? checkAgain : check;
  const reportedCheck: Step = (call) =>
    andThen(checkStep(call), (outcome) => {
      onStep?.('check');
      return outcome;
    });
  const isRewritten = hooks !== undefined && hooks.beforeCall.length > 0;
  const isHeld = hooks !== undefined && (hooks.beforeRun.length > 0 || (isAgain && isRewritten));
  return present<Step>([
    onStep && (() => void onStep('find')),
    isRewritten && inOrder(beforeCall),
    onStep ? reportedCheck : checkStep,
    logger && (({ log, repairs, removed }) => void log.repaired(repairs, removed)),
    hasTask && beginTask,
    plan.needsContext && ((call) => void contextOf(call)),
    (mayWait || hooks) && inOrder(isAgain ? allowAgain : allow),
    isHeld && inOrder(beforeRun),
    onStep && (() => void onStep('allow')),
    logger && (({ log, checked }) => void log.started(checked)),
  ]);
}

function present<Part>(parts: readonly (Part | false | undefined)[]): readonly Part[] {
  return parts.filter((part): part is Part & {} => part !== false && part !== undefined);
}

/** Whether a call is executed again. */
function isRepeated({ journal, hasBegun }: CallRequest): boolean {
  return journal !== undefined || hasBegun === true;
}

/** Step of the hooks before the check. */
function beforeCall(call: Call): MaybeLater<CallOutcome | undefined> {
  const ended = call.hooked?.beforeCall();
  return andThen(ended, (end) => {
    if (end === undefined || end.type !== 'rejected') return end && blockedResult(call, end);
    const ready = rejectArguments({ tool: call.tool, call: call.request, faults: end.faults });
    const outcome = takeArguments(call, ready);
    return isRepeated(call.request) ? outcome && endWithoutCall(call, outcome) : outcome;
  });
}

function beginTask(call: Call): undefined {
  const { jobs, onAsyncResult } = call.environment;
  if (jobs !== undefined && call.tool.background) call.task = new JobTask(call, jobs);
  else if (onAsyncResult !== undefined) call.task = new CallTask(call);
}

/** Step of the hooks before the tool runs. */
function beforeRun(call: Call): MaybeLater<CallOutcome | undefined> {
  return andThen(call.hooked?.beforeRun(), (block) => block && blockedResult(call, block));
}

/** How the tool runs: as a job, in the background, one call at a time, or directly. */
function runOf(plan: CallPlan, environment: CallEnvironment): PipelineParts['run'] {
  if (isJob(plan, environment)) return runAsJob;
  if (plan.tool.background && environment.onAsyncResult !== undefined)
    return (call, onEnd) => onEnd(call, { type: 'returned', value: startMethod(call) });
  return plan.isShared ? runShared : runBody;
}

function runAsJob(call: Call, onEnd: OnBodyEnd): Answer {
  const task = call.task as JobTask;
  const work = call.environment.awaitsJobs ? task.complete() : task.start();
  return work.then(
    (value) =>
      onEnd(call, value === undefined ? { type: 'aborted', hasBegun: true } : { type: 'returned', value }),
    (error) => onEnd(call, { type: 'error', error }),
  );
}

function runShared(call: Call, onEnd: OnBodyEnd): Answer {
  const run = () => runBody<BodyOutcome>(call, (_call, body) => body);
  return runInTurn(call, run).then(
    (body) => {
      if (body === undefined) return onEnd(call, { type: 'aborted' });
      return onEnd(call, 'type' in body ? body : { type: 'returned', value: body });
    },
    (error) => onEnd(call, { type: 'error', error }),
  );
}

function composeEndings({ plan, environment, hooks, hasTask }: Composed): readonly Ending[] {
  const { isRecorded, logger, onStep, telemetry, policies } = environment;
  const opensContext = plan?.needsContext || plan?.isGuarded || policies || hasTask;
  return present<Ending>([
    hasTask && ((call, outcome) => call.task?.outlive(outcome)),
    hooks &&
      (isRecorded && environment.hooks
        ? (call, outcome) => Promise.resolve().then(() => afterCall(call, outcome))
        : afterCall),
    logger && ((call, outcome) => void logOutcome(call, outcome)),
    hasTask && ((call, outcome) => void call.task?.answered(outcome)),
    opensContext && closeContext,
    onStep && (() => void onStep('write')),
    telemetry && endTrace,
  ]);
}

/** Step of the hooks after the call. A suspended call has not ended, and a job's hooks ran in its worker. */
function afterCall(call: ReceivedCall, outcome: CallOutcome): MaybeLater<CallOutcome | undefined> {
  if (outcome.status === 'suspended' || call.task?.isHooked) return undefined;
  return call.hooked?.after(outcome);
}

function logOutcome({ log, tool, since }: ReceivedCall, outcome: CallOutcome): undefined {
  const durationMs = performance.now() - since;
  if (outcome.faults !== undefined) log.rejected(outcome.faults, durationMs);
  else if (tool === undefined && outcome.status === 'rejected') log.notFound();
  else log.performed(outcome, durationMs);
}

/** Closes resources that the tool opened through its context, unless started work continues. */
function closeContext({ context }: ReceivedCall, { taskId }: CallOutcome): MaybeLater<undefined> {
  if (context === undefined || taskId !== undefined) return undefined;
  context.unfollow();
  return context.isOpen ? context.close().then(() => undefined) : undefined;
}

function answer(call: ReceivedCall, outcome: CallOutcome): ToolResult | Invocation {
  const { environment, standing, request } = call;
  const { status, result, suspension } = outcome;
  if (!environment.isRecorded) return result;
  const known = callRecord(call, outcome);
  const approved = standing ?? request.journal?.standing ?? request.journal?.edited;
  const record: { -readonly [Key in keyof CallRecord]: CallRecord[Key] } =
    approved === undefined ? known : withApproval(known, call);
  const isKept = environment.recordsKeys && call.checked !== undefined && !outcome.isNotBegun;
  if (isKept) record.idempotencyKey = keyOfEffect(call);
  if (status === 'suspended' && suspension !== undefined) return { status, suspension, result, record };
  return { status: status === 'started' ? status : 'settled', result, record };
}

/** The record of a call with the facts about its approval, independent of later changes to its arguments. */
function withApproval(
  record: CallRecord,
  { request, standing = request.journal?.standing }: ReceivedCall,
): CallRecord {
  const { journal } = request;
  const stood = standing === undefined ? record : { ...record, standing };
  if (journal?.edited === undefined) return stood;
  const { original } = journal.edited;
  const given = journal.given?.findLast(({ kind }) => kind === 'approval');
  const by = given === undefined ? {} : { editedBy: given.answeredBy };
  return { ...stood, arguments: journal.arguments, edited: { original, ...by } };
}

function answeredIn(journal: CallJournal | undefined): readonly PendingKind[] {
  if (journal === undefined) return [];
  const { approved, refused, result, outcome, answers } = journal;
  return present<PendingKind>([
    (approved || refused !== undefined) && 'approval',
    result && 'client',
    outcome && 'outcome',
    ...answers.map(() => 'question' as const),
  ]);
}

/** The call has its answer. */
function endTrace(call: ReceivedCall, { status, result, suspension, taskId }: CallOutcome): undefined {
  const { hooked, checked, request, repairs, removed } = call;
  const hasCost = COSTS.has(status) && !hooked?.isAnswered && request.startedBy === undefined;
  call.trace?.end({
    status,
    result,
    // Original arguments that hooks rewrote, or would have rewritten, are not recorded.
    arguments: checked ?? (hooked === undefined ? request.arguments : undefined),
    cost: hasCost ? costOf(call) : undefined,
    repairs,
    removed,
    waits: suspension?.waits.map(({ kind }) => kind),
    taskId,
  });
}

/** Statuses of calls that incur the cost of their tools; a job costs when it is enqueued. */
const COSTS: ReadonlySet<CallStatus> = new Set(['success', 'error', 'timed_out', 'aborted', 'started']);

/** The budget refuses a cost that is not a valid number. */
function costOf({ tool, checked = {} }: ReceivedCall): number | undefined {
  try {
    const cost: unknown = typeof tool?.cost === 'function' ? tool.cost(checked) : tool?.cost;
    return typeof cost === 'number' && cost >= 0 ? cost : undefined;
  } catch {
    return undefined;
  }
}

const MAX_SUGGESTED = 3;

/** The answer to a call of an unknown tool. */
function notFoundResult(given: unknown, known: readonly string[]): ToolResult {
  const name = typeof given === 'string' ? given : String(JSON.stringify(given));
  const near = namesByNearness(name, known).slice(0, MAX_SUGGESTED);
  const suggestion = near.length === 0 ? '' : `\nDid you mean ${near.join(', ')}?`;
  return failedResult('ToolNotFound', `tool not found: ${name}${suggestion}`);
}
