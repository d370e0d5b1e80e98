import type { CallJournal, CallRecord, CallStatus, PendingKind } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { CallTrace } from '../../core/contract/telemetry.js';
import { errorResult, type SerializedToolResult, ToolResult } from '../../core/contract/tool-result.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { andThen, withinLimits } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { copyOfJson, isObject, isRecord, plainJson } from '../../core/kernel/json.js';
import { namesByNearness } from '../../core/kernel/nearest-name.js';
import { summarizeFaults } from '../../tools/checking/faults.js';
import { allow, approvalQuestion, blockOf, mayHaveApproved } from './allow.js';
import { logThrown, redactionIn } from './call-log.js';
import {
  acceptedArguments,
  argumentsBefore,
  copyOfSent,
  prepareArguments,
  type ReadyArguments,
  readRaw,
  rejectArguments,
} from './check-arguments.js';
import { type Call, contextOf, keyOfEffect, limitsOf, newCall, type ReceivedCall } from './context.js';
import { CallHooks, type HooksByMoment, hooksByMoment } from './hooked-call.js';
import {
  type Block,
  type BodyOutcome,
  type CallEnvironment,
  type CallOutcome,
  type CallRequest,
  type CallSource,
  hadBegun,
  type Invocation,
  isRepeated,
  type MaybeLater,
  type RecordedEnvironment,
} from './invocation.js';
import { type CallPlan, planOf } from './plan.js';
import { failedResult } from './result-text.js';
import {
  awaitWork,
  blockedResult,
  callRecord,
  outcomeOfBody,
  runBody,
  suspended,
  writeOutcome,
} from './run-body.js';
import { CallTask, JobTask, runInTurn, startMethod } from './tasks.js';
import {
  approverField,
  askedAgain,
  changedSince,
  changeOfArguments,
  GONE,
  withoutApproval,
} from './waits.js';

/** The answer to a call: its result, or an invocation if the environment requests the record of the call. */
type Answer = MaybeLater<ToolResult | Invocation>;

/** A step of a call. Returns the outcome of the call if it ends there. */
type Step = (call: Call) => MaybeLater<CallOutcome | undefined>;

type OnBodyEnd = (call: Call, body: BodyOutcome) => Answer;

/** Runs the tool of a call, and continues with the outcome. */
type Run = (call: Call, onEnd: OnBodyEnd) => Answer;

/** Processes the outcome of a call, and may change it. */
type Ending = (call: ReceivedCall, outcome: CallOutcome) => MaybeLater<CallOutcome | undefined>;

/** The facts that determine the steps and endings of calls. */
interface Composed {
  readonly environment: CallEnvironment;
  /** Absent if the tool is missing. */
  readonly plan?: CallPlan;
  readonly hooks: HooksByMoment | undefined;
  /** Work may outlive the answer. */
  readonly hasTask: boolean;
}

/** The steps of calls that are made for the first time, or again. */
type StepsOf = (composed: Composed, isAgain: boolean) => readonly Step[];

/** The pipeline for calls of one tool in one environment, with only the parts that are needed. */
class Pipeline {
  readonly composed: Composed;
  readonly #steps: readonly Step[];
  readonly #endings: readonly Ending[];
  readonly #run: Run;

  constructor(
    environment: CallEnvironment,
    plan: CallPlan | undefined,
    private readonly stepsOf: StepsOf,
  ) {
    const { hooks: given, budget, onAsyncResult } = environment;
    const all = budget === undefined ? given : [...(given ?? []), budget];
    const hasTask = plan !== undefined && (onAsyncResult !== undefined || isJob(plan, environment));
    this.composed = { environment, plan, hooks: all && hooksByMoment(all), hasTask };
    this.#steps = stepsOf(this.composed, false);
    this.#endings = composeEndings(this.composed);
    this.#run = plan === undefined ? runBody : runOf(plan, environment);
  }

  make(request: CallRequest, { scope, attempt }: CallSource, trace?: CallTrace): Answer {
    const { environment, plan, hooks } = this.composed;
    const call = newCall(environment, request, { scope, plan, attempt, trace });
    if (hooks !== undefined) call.hooked = new CallHooks(hooks, call);
    const steps = isRepeated(request) ? this.stepsOf(this.composed, true) : this.#steps;
    return this.#advance(call as Call, steps);
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
      return this.#run(call, this.#endBody);
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
    const endings = this.#endings;
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
  const { approved, refused, result, outcome, answers = [] } = journal ?? {};
  const answered = present<PendingKind>([
    (approved || (refused !== undefined && outcome === undefined)) && 'approval',
    result && 'client',
    outcome && 'outcome',
    ...answers.map(() => 'question' as const),
  ]);
  const trace = telemetry?.startCall({
    id,
    name,
    tool: environment.find(name)?.offered,
    attempt: origin.attempt ?? 1,
    // A job was approved before it was started.
    answered: startedBy === undefined ? answered : [],
    startedBy,
    mcp,
    redaction: redactionIn(environment),
  });
  const make = (): Answer => pipelineFor(environment, request).make(request, origin, trace);
  return trace === undefined ? make() : trace.within(make);
}

/** Step "find": the pipeline of a tool, composed when the tool is first called in this environment. */
function pipelineFor(environment: CallEnvironment, { name, scopeError }: CallRequest): Pipeline {
  try {
    if (scopeError !== undefined) {
      const result = errorResult(scopeError.message).withError(scopeError);
      return pipelineTo(environment, () => ({ status: 'error', result }));
    }
    const entry = environment.find(name);
    if (entry === undefined) return pipelineTo(environment, notFound);
    const known = entry.composed as Pipeline | undefined;
    const isCurrent = known?.composed.environment === environment;
    if (isCurrent && entry.fixed !== undefined) return known;
    const plan = planOf(entry.open(), environment.coerce);
    if (isCurrent && known.composed.plan === plan) return known;
    const pipeline = new Pipeline(environment, plan, composeSteps);
    entry.composed = pipeline;
    return pipeline;
  } catch (cause) {
    return pipelineTo(environment, (call) => invalidTool(call, cause));
  }
}

/** The pipeline of calls whose tool is not available. */
function pipelineTo(environment: CallEnvironment, end: (call: ReceivedCall) => CallOutcome): Pipeline {
  return new Pipeline(environment, undefined, (_composed, isAgain) => [
    isAgain ? (call) => endWithoutCall(call, end(call)) : end,
  ]);
}

const MAX_SUGGESTED = 3;

function notFound({ request, environment }: ReceivedCall): CallOutcome {
  const { names, kind = 'tool' } = environment;
  const given: unknown = request.name;
  const name = typeof given === 'string' ? given : String(JSON.stringify(given));
  const near = namesByNearness(name, names?.() ?? []).slice(0, MAX_SUGGESTED);
  const suggestion = near.length === 0 ? '' : `\nDid you mean ${near.join(', ')}?`;
  return {
    status: 'rejected',
    result: failedResult('ToolNotFound', `${kind} not found: ${name}${suggestion}`),
  };
}

function isJob({ tool }: CallPlan, { jobs }: CallEnvironment): boolean {
  return jobs !== undefined && Boolean(tool.background);
}

function composeSteps({ plan, environment, hooks, hasTask }: Composed, isAgain: boolean): readonly Step[] {
  const { logger, policies, onStep, isRecorded } = environment;
  const { isGuarded, needsScopes, isShared, needsContext } = plan ?? {};
  const mayWait = environment.hooks || hasTask || policies || isGuarded || needsScopes || isShared || isAgain;
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
    needsContext && ((call) => void contextOf(call)),
    mayWait && inOrder(isAgain ? allowAgain : allow),
    isHeld && inOrder(beforeRun),
    onStep && (() => void onStep('allow')),
    logger && (({ log, checked }) => void log.started(checked)),
  ]);
}

function present<Part>(parts: readonly (Part | false | undefined)[]): readonly Part[] {
  return parts.filter((part): part is Part & {} => part !== false && part !== undefined);
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
function runOf(plan: CallPlan, environment: CallEnvironment): Run {
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
    logger &&
      (({ log, tool, since }, outcome) =>
        void log.ended(outcome, performance.now() - since, tool !== undefined)),
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

/** Closes resources that the tool opened through its context, unless started work continues. */
function closeContext({ context }: ReceivedCall, { taskId }: CallOutcome): MaybeLater<undefined> {
  if (context === undefined || taskId !== undefined) return undefined;
  context.unfollow();
  return context.isOpen ? context.close().then(() => undefined) : undefined;
}

function answer(call: ReceivedCall, outcome: CallOutcome): ToolResult | Invocation {
  const { environment, standing, request, hooked } = call;
  const { status, result, suspension } = outcome;
  if (!environment.isRecorded) return result;
  const known = callRecord(call, outcome);
  const approved = standing ?? request.journal?.standing ?? request.journal?.edited;
  const record: { -readonly [Key in keyof CallRecord]: CallRecord[Key] } =
    approved === undefined ? known : withApproval(known, call);
  const isKept = environment.recordsKeys && call.checked !== undefined && !outcome.isNotBegun;
  if (isKept) record.idempotencyKey = keyOfEffect(call);
  const isNotRepeated = status === 'refused' || hooked?.isAnswered;
  if (hooked?.hidesFailure || (isNotRepeated && hadBegun(request))) record.effects = 'unknown';
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

/** The call has its answer. */
function endTrace(call: ReceivedCall, { status, result, suspension, taskId }: CallOutcome): undefined {
  const { hooked, checked, request, repairs, removed, tool } = call;
  let cost: number | undefined;
  if (COSTS.has(status) && !hooked?.isAnswered && request.startedBy === undefined)
    try {
      const given: unknown = typeof tool?.cost === 'function' ? tool.cost(checked ?? {}) : tool?.cost;
      // The budget refuses a cost that is not a valid number.
      if (typeof given === 'number' && given >= 0) cost = given;
    } catch {}
  call.trace?.end({
    status,
    result,
    // Original arguments that hooks rewrote, or would have rewritten, are not recorded.
    arguments: checked ?? (hooked === undefined ? request.arguments : undefined),
    cost,
    repairs,
    removed,
    waits: suspension?.waits.map(({ kind }) => kind),
    taskId,
  });
}

/** Statuses of calls that incur the cost of their tools; a job costs when it is enqueued. */
const COSTS: ReadonlySet<CallStatus> = new Set(['success', 'error', 'timed_out', 'aborted', 'started']);

/** The outcome that an answer determines for a call; `undefined` if it must be executed. */
function decisionFor({ refused, result, outcome }: Partial<CallJournal> = {}): Block | undefined {
  if (refused !== undefined) {
    const { reason = 'it was not approved', expired: isExpired = false } = refused;
    return { type: 'refused', reason, isExpired, isAnswer: true };
  }
  if (result !== undefined) return { type: 'returned', value: givenResult(result.value) };
  return outcome?.status === 'done' ? { type: 'returned', value: givenResult(outcome.value) } : undefined;
}

/** A result may be in the form in which `JSON.stringify` writes a `ToolResult`. */
function givenResult(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { for_llm, for_user = '', silent, is_error, async } = value as Partial<Record<string, unknown>>;
  const flags = [silent, is_error, async];
  const isSerialized =
    typeof for_llm === 'string' &&
    typeof for_user === 'string' &&
    flags.every((flag) => typeof flag === 'boolean');
  return isSerialized ? ToolResult.fromJSON(value as SerializedToolResult) : value;
}

/**
 * The outcome of a call that cannot be executed as it is now. If it may have been executed before, its known or
 * decided outcome wins. If it was approved for an earlier version of its tool, a new approval is requested.
 */
async function endWithoutCall(call: ReceivedCall, outcome: CallOutcome): Promise<CallOutcome> {
  const known = await knownOutcome(call);
  if (known !== undefined) return known;
  if (outcome.status !== 'rejected') return outcome;
  return askAgain(call, call.tool === undefined ? GONE : summarizeFaults(outcome.faults ?? [])) ?? outcome;
}

/**
 * The outcome of a call that may have been executed before and cannot be executed now; `undefined` if it was not
 * executed.
 */
async function knownOutcome(call: ReceivedCall): Promise<CallOutcome | undefined> {
  const { request, tool } = call;
  const { journal, hasBegun, readOnly } = request;
  let decision = decisionFor(journal);
  if (!hasBegun && decision === undefined) return undefined;
  // They were checked when the call was made.
  const read = request.read ?? readRaw(request.arguments);
  const args = journal?.arguments ?? (read.ok ? read.value : {});
  const made = Object.assign(call, { checked: args, args });
  if (decision === undefined && hasBegun && !readOnly && !tool?.annotations?.readOnly)
    decision =
      tool === undefined ? unknownOutcome(call) : await blockOfBegun(made as Call, { isMakeable: false });
  if (decision !== undefined)
    return blockedResult({ ...made, tool: tool ?? { name: request.name } }, decision);
  call.checked = undefined;
  return undefined;
}

/** Requests a new approval, because the model would only see a failure; `undefined` if the call had no approval. */
function askAgain(call: ReceivedCall, problem: string): CallOutcome | undefined {
  const { request, environment } = call;
  const { name, journal } = request;
  if (!journal?.approved || !environment.canSuspend) return undefined;
  const { edited: _, ...known } = withoutApproval(journal);
  const { edited, answers, once, reasks: before = 0 } = journal;
  if (answers.length + once.length > 0 || (edited !== undefined && !edited.isChecked)) return undefined;
  const args = edited?.original ?? journal.arguments;
  const reasks = before + 1;
  call.checked = args;
  const waits = [askedAgain(approvalQuestion(call, args), changedSince(name, problem), reasks)];
  return suspended(name, { waits, journal: { ...known, arguments: args, reasks } });
}

/** Step "check" of a repeated call: uses the approver's arguments, if they were edited. */
async function checkAgain(call: Call): Promise<CallOutcome | undefined> {
  const { request, hooked } = call;
  const { journal } = request;
  try {
    const edited = journal?.edited && editedRequest(request, journal, journal.arguments);
    let ready = await readyArguments(call, edited ?? request);
    let change = journal && 'ok' in ready ? changeSince(journal, ready) : undefined;
    if (journal && edited === undefined && change !== undefined) {
      // An approval is valid as long as the tool accepts the approved arguments, even if it would read the model's
      // arguments differently now. Arguments that a hook has rewritten never return to the model's.
      const asked = await readyArguments(call, editedRequest(request, journal, journal.arguments));
      const since = 'ok' in asked ? changeSince(journal, asked) : undefined;
      if (hooked?.mayRewrite || since === undefined) {
        const { repairs, removed } = 'ok' in ready && ready.ok ? ready : { removed: [] };
        const isReady = 'ok' in asked && asked.ok;
        ready = isReady
          ? { ...asked, repairs, removed, transformed: copyOfJson(asked.value) as JsonObject }
          : asked;
        change = since;
      }
    }
    if (journal?.approved && change !== undefined) call.change = changedSince(request.name, change);
    if (journal?.edited?.isChecked && change !== undefined) {
      // The tool would now receive other arguments than the approved ones: the call starts over as the model sent it.
      const known = await knownOutcome(call);
      if (known !== undefined) return known;
      const { original } = journal.edited;
      const sent = hooked?.mayRewrite ? editedRequest(request, journal, original) : request;
      const { journal: _, hasBegun: __, ...asSent } = sent;
      ready = await readyArguments(call, asSent);
      const again = 'ok' in ready && !ready.ok ? askAgain(call, summarizeFaults(ready.faults)) : undefined;
      if (again !== undefined) return again;
      call.request = asSent;
    }
    const outcome = takeArguments(call, ready);
    if (outcome !== undefined) return outcome.status === 'aborted' ? outcome : endWithoutCall(call, outcome);
    const { journal: kept, ...others } = call.request;
    if (kept?.edited !== undefined) call.request = editedRequest(call.request, kept, call.checked);
    // Decisions about other arguments are dropped, as a schema may have a new default; outcomes are kept.
    else if (kept !== undefined && change !== undefined && !decisionFor(kept)) call.request = others;
    return undefined;
  } catch (cause) {
    return endWithoutCall(call, invalidTool(call, cause));
  }
}

/** How a call would now differ from the approved one, or its fault; `undefined` if it does not differ. */
function changeSince({ arguments: asked }: CallJournal, ready: ReadyArguments): string | undefined {
  return ready.ok ? changeOfArguments(asked, ready.value) : summarizeFaults(ready.faults);
}

/** A call with other arguments than the model's. They are serialized, so that the tool cannot change them. */
function editedRequest(request: CallRequest, journal: CallJournal, args: JsonObject): CallRequest {
  const { read: _, ...others } = request;
  const { original } = journal.edited ?? { original: journal.arguments };
  const text = JSON.stringify(args);
  return {
    ...others,
    arguments: plainJson(args),
    text,
    // The editor of arguments sees the ones that would run.
    isTransformed: true,
    journal: { ...journal, arguments: JSON.parse(text), edited: { original, isChecked: true } },
  };
}

/** Step "allow" of a repeated call: earlier decisions and possible effects come first. */
async function allowAgain(call: Call): Promise<CallOutcome | undefined> {
  const { journal, hasBegun, asJob } = call.request;
  const { tool, environment } = call;
  const reported = journal?.given?.findLast(({ kind }) => kind === 'outcome');
  // Reporting the outcome requires the rights of its approver; otherwise the answer does not count.
  const mayHaveRun = journal?.outcome === undefined ? hasBegun : !mayHaveApproved(call, reported?.answeredBy);
  const { readOnly, idempotent } = tool.annotations ?? {};
  // A job has the key of its call, so it is not started twice.
  const isJobAgain = asJob !== false && isJob(call.plan, environment);
  let block = decisionFor(journal);
  // Before the policies, because a refusal would report that the call was not executed.
  if (block === undefined && mayHaveRun && !(readOnly || idempotent || isJobAgain))
    block = await blockOfBegun(call, { isMakeable: true });
  if (block !== undefined) return blockedResult(call, block);
  block = await blockOf(call);
  if (block === undefined) return undefined;
  const isForbidden = block.type === 'refused' || (block.type === 'waits' && block.wait.kind === 'approval');
  if (!mayHaveRun || !isForbidden || readOnly) return blockedResult(call, block);
  // Refusing it, or executing it with other arguments, would ignore a possible earlier effect.
  const known = (await blockOfBegun(call, { isMakeable: false })) ?? block;
  if (known.type !== 'waits' || known.wait.kind !== 'outcome') return blockedResult(call, known);
  const message = `${known.wait.message} The current rules do not let it run again.`;
  return blockedResult(call, { ...known, wait: { ...known.wait, message } });
}

/**
 * What prevents a call that was interrupted by a crash from being executed again; `undefined` if it may be executed.
 */
async function blockOfBegun(
  call: Call,
  { isMakeable }: { readonly isMakeable: boolean },
): Promise<Block | undefined> {
  const { tool, request, log, environment } = call;
  if (tool.reconcile !== undefined) {
    const context = contextOf(call);
    const { idempotencyKey } = context;
    const begun = { callId: request.id, idempotencyKey, arguments: argumentsBefore(call) };
    try {
      const known: unknown = await withinLimits(tool.reconcile(begun, context), limitsOf(call));
      const status = isRecord(known) ? known.status : undefined;
      if (isRecord(known) && status === 'done') return { type: 'returned', value: known.result };
      if (status === 'not-done') return undefined;
      if (status !== 'unknown')
        log.ignored('`reconcile` of a tool returned none of done, not-done and unknown', { known });
    } catch (error) {
      logThrown(call, '`reconcile` of a tool failed; the outcome of the call is unknown', error);
    }
  }
  return isMakeable && environment.onUnknown === 'rerun' ? undefined : unknownOutcome(call);
}

function unknownOutcome({ request, environment, tool }: ReceivedCall): Block {
  const message = `The call of '${request.name}' was interrupted. It is not known whether it was executed.`;
  if (environment.onUnknown === 'error')
    return {
      type: 'error',
      error: new ToolwrightError('OutcomeUnknown', `${message} Find out, or ask, before you call it again.`),
    };
  const { reruns: index = 0 } = request.journal ?? {};
  return { type: 'waits', wait: { kind: 'outcome', index, message, ...approverField(tool?.approval) } };
}

/** Steps "read" and "check": the arguments for the tool, or the rejection of invalid arguments. */
function check(call: Call): MaybeLater<CallOutcome | undefined> {
  const { request, tool, plan } = call;
  const accepted = tool.hydrate === undefined ? acceptedArguments(plan, request) : undefined;
  if (accepted === undefined)
    return andThen(readyArguments(call, request), (ready) => takeArguments(call, ready));
  copySent(call, true);
  call.checked = accepted;
  call.args = accepted;
  return undefined;
}

/** The tool may change its arguments. The sent ones are needed only for a record or a context. */
function copySent(call: Call, isAccepted: boolean): void {
  const { environment, tool, plan, request } = call;
  if (environment.isRecorded || !tool.ignoresContext) call.sent = copyOfSent(request, plan, isAccepted);
}

/** The arguments of a request, checked within the limits of the call, because rules of a class may be asynchronous. */
function readyArguments(call: Call, request: CallRequest): MaybeLater<ReadyArguments | CallOutcome> {
  const ready = prepareArguments(call.tool, call.plan, request);
  if (!(ready instanceof Promise)) return ready;
  return awaitWork<Call, ReadyArguments | CallOutcome>(call, ready, {
    onEnd: (_call, end) => {
      if (end.type === 'returned') return end.value as ReadyArguments;
      if (end.type === 'error') return invalidTool(call, end.error);
      return writeOutcome(call, 'hasBegun' in end ? { ...end, hasBegun: false } : end);
    },
  });
}

/** Sets the arguments that the call continues with; returns its outcome if there are none. */
function takeArguments(call: Call, ready: ReadyArguments | CallOutcome): CallOutcome | undefined {
  if (!('ok' in ready)) return ready;
  if (!ready.ok) {
    const { message, faults } = ready;
    return { status: 'rejected', result: failedResult('InvalidArguments', message), faults };
  }
  const { value, hydrated = value, repairs, removed, isAccepted, transformed } = ready;
  copySent(call, isAccepted === true && call.request.journal === undefined);
  if (repairs !== undefined) call.repairs = repairs;
  call.removed = removed;
  call.checked = value;
  call.args = hydrated;
  call.transformed = transformed;
  return undefined;
}

/**
 * The outcome of a call whose tool has a faulty declaration: an invalid schema, or a factory, constructor or getter
 * that throws.
 */
function invalidTool(call: ReceivedCall, cause: unknown): CallOutcome {
  const message = `The tool '${call.request.name}' cannot be called: ${errorMessage(cause)}`;
  return { status: 'error', result: failedResult('InvalidToolSignature', message, cause) };
}

/** The arguments that a tool would receive, in JSON form, or their faults. */
export type CheckedArguments =
  | { readonly ok: true; readonly arguments: JsonObject; readonly removed: readonly string[] }
  /** All faults in one sentence without its full stop. */
  | { readonly ok: false; readonly problem: string };
