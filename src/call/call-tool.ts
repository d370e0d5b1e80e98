import { summarizeFaults } from '../checking/faults.js';
import type { Suspension, Wait } from '../contract/call.js';
import type { ToolResult } from '../contract/tool-result.js';
import { errorMessage } from '../kernel/error-message.js';
import { canonicalJson } from '../kernel/json.js';
import { allowCall, askAtOnce, hinderedEnd, journalOf, suspendedEnd } from './allow.js';
import { argumentsOfBegun, mayBeDone, wordOn, wordOnGone, wordOnUnmade } from './begun-call.js';
import {
  argumentsBefore,
  type CheckedFacts,
  checkArguments,
  checkedFacts,
  type ReadyArguments,
  rejectArguments,
  withHydrated,
} from './check-arguments.js';
import { type Call, type CallHooks, contextOf, keyOfEffect, type ReceivedCall } from './context.js';
import { createDirectCaller, createRecordedCaller, type LeftCall } from './direct-call.js';
import { asEdited, countsFor, editedRequest, withApproval } from './edited-call.js';
import { HookedCallLife } from './hooked-call.js';
import type {
  BodyEnd,
  CallEnd,
  CallEnvironment,
  CallOrigin,
  CallRequest,
  Invocation,
  Obstacle,
  RecordedEnvironment,
} from './invocation.js';
import { CallLog } from './log.js';
import { type CallPlan, planOf } from './plan.js';
import type { Replay } from './replay.js';
import { callRecord, writeEnd } from './result.js';
import { failedResult, notFoundResult } from './result-text.js';
import { awaitWork, endBody, runBody } from './run-body.js';
import { JobTask } from './start-job.js';
import { CallTask, runInTurn, startMethod } from './tasks.js';
import { endTrace, startTrace } from './trace-call.js';
import { approvalWait, askedAgain, changedSince, GONE, withoutApproval } from './waits.js';

/** The answer to a call: its result, or an invocation where the environment wants the record of the call. */
type CallAnswer = ToolResult | Invocation;

type Answer = CallAnswer | Promise<CallAnswer>;

/** Makes a call within what surrounds it: its trace, its hooks and its log. Never throws or rejects. */
export function makeCall(
  environment: RecordedEnvironment,
  request: CallRequest,
  origin: CallOrigin,
): Invocation | Promise<Invocation>;
export function makeCall(
  environment: CallEnvironment,
  request: CallRequest,
  origin: CallOrigin,
): ToolResult | Promise<ToolResult>;
export function makeCall(
  environment: CallEnvironment,
  request: CallRequest,
  { scope, attempt = 1 }: CallOrigin,
): Answer {
  const { logger, isRecorded, telemetry, hooks } = environment;
  const trace = telemetry?.isOn ? startTrace(telemetry, { environment, request, attempt }) : undefined;
  const log = logger === undefined ? CallLog.none : new CallLog(environment, request);
  const since = logger !== undefined || isRecorded ? performance.now() : 0;
  const plain: ReceivedCall = { request, environment, scope, attempt, log, trace, since };
  const received = hooks === undefined ? plain : { ...plain, hooked: new HookedCallLife(hooks, plain) };
  return trace === undefined ? callTool(received) : trace.within(() => callTool(received));
}

/**
 * Takes a call up the staircase, whoever makes it: find ▸ read ▸ check ▸ allow ▸ run ▸ write. Each step can end the
 * call with a result; nothing is thrown. Synchronous as long as the tool is, and one promise where it is not: a
 * promise for each step would cost more than the steps.
 */
function callTool(received: ReceivedCall): Answer {
  const { request, environment } = received;
  try {
    const found = environment.find(request.name);
    if (found === undefined) return unmade(received, () => notFound(received));
    const tool = found.open();
    const plan = planOf(found, tool, environment.coerce);
    environment.onStep?.('find');
    if (received.hooked !== undefined) return checkHooked(received, received.hooked, { tool, plan });
    const sent = request.journal?.edited === undefined ? request : asEdited(request);
    return checked(received, { tool, plan, ready: checkArguments(tool, plan, sent) });
  } catch (cause) {
    return unmade(received, () => broken(received, cause));
  }
}

/** Ends a call that cannot be made: where it may have been before, first by what is known or said of that. */
function unmade(received: ReceivedCall, fail: () => Answer, found?: Found): Answer {
  const { request } = received;
  if (!mayBeDone(request)) return fail();
  const args = argumentsOfBegun(request);
  if (found === undefined) {
    const gone = { ...received, checked: args };
    const word = wordOnGone(gone);
    return word === undefined
      ? fail()
      : finish(gone, hinderedEnd({ ...gone, tool: { name: request.name } }, word));
  }
  const call = readyCall(received, { ...found, checked: args, args });
  return wordOnUnmade(call).then((word) =>
    word === undefined ? fail() : finish(call, hinderedEnd(call, word)),
  );
}

/** Makes a call of which nobody wants the record, where the short way leads to its end. */
export const answerDirectly = createDirectCaller(takeUp);

/** The same for a call whose record is wanted, in an environment where calls are alone. */
export const recordDirectly = createRecordedCaller({ takeOver: takeUp, open: readyCall });

/** Goes on in steps with a direct call that has come to more than its result. */
function takeUp<TheAnswer extends CallAnswer>(left: LeftCall): TheAnswer | Promise<TheAnswer>;
function takeUp({ received, plan, accepted, at, facts }: LeftCall): Answer {
  const { tool } = plan;
  try {
    if (at.how === 'broken') return broken(received, at.error);
    if (at.how === 'hydrated') {
      const fitting = { ok: true, value: accepted, removed: NONE } as const;
      const sentAs = { call: received.request, sent: accepted, ready: fitting };
      const ready = withHydrated({ tool, plan, ...sentAs }, at.hydrated);
      return checked(received, { tool, plan, ready });
    }
    const call = at.call ?? readyCall(received, { tool, plan, checked: accepted, args: at.args, facts });
    return at.how === 'ended' ? conclude(call, at.end) : endBody(call, at.value, conclude);
  } catch (cause) {
    return broken(received, cause);
  }
}

/**
 * A call that was approved for what its tool was, and cannot be made as it is now: whoever approved it is asked again,
 * because the model would only hear that it had failed. `undefined` where nobody has approved it.
 */
function askAgain(call: ReceivedCall, problem: string, tool?: Call['tool']): Answer | undefined {
  const { request, environment, log } = call;
  const { name, journal } = request;
  if (!journal?.approved || !environment.canSuspend) return undefined;
  const { edited: _, ...known } = withoutApproval(journal);
  const { edited, answers, once, reasks: before = 0 } = journal;
  const hasBegun = answers.length + once.length > 0;
  if (hasBegun || (edited !== undefined && !edited.isChecked)) return undefined;
  const args = edited?.original ?? journal.arguments;
  const reasks = before + 1;
  const wait = approvalWait(tool?.approval, {
    arguments: args,
    answerWithinMs: environment.answerWithinMs,
    onError: (error) => log.ignored('The description of an approval could not be written', { error }),
  });
  const asked = { ...known, arguments: args, reasks };
  const waits = [askedAgain(wait, changedSince(name, problem), reasks)];
  return finish({ ...call, checked: args }, suspendedEnd(name, { waits, journal: asked }));
}

function notFound(call: ReceivedCall): Answer {
  const again = askAgain(call, GONE);
  if (again !== undefined) return again;
  call.log.notFound();
  const result = notFoundResult(call.request.name, call.environment.names?.() ?? NONE);
  return answerEarly(call, { status: 'rejected', result });
}

/** The same, with the arguments that hooks leave. */
function checkHooked(received: ReceivedCall, hooked: CallHooks, { tool, plan }: Found): Answer {
  return hooked
    .before(tool)
    .then((before) => {
      if ('end' in before)
        return answerEarly({ ...received, tool }, writeEnd({ ...received, tool, plan }, before.end));
      const { request, faults } = before;
      const ready =
        faults === undefined
          ? checkArguments(tool, plan, asEdited(request))
          : rejectArguments({ tool, call: request, faults });
      return checked({ ...received, request }, { tool, plan, ready });
    })
    .catch((cause) => unmade(received, () => broken(received, cause), { tool, plan }));
}

/** Only a tool's declaration gets here: a schema that is not one, a factory, a constructor, a getter. */
function broken(call: ReceivedCall, cause: unknown): Answer {
  const message = `The tool '${call.request.name}' cannot be called: ${errorMessage(cause)}`;
  const result = failedResult('InvalidToolSignature', message, cause);
  call.log.ended(result, performance.now() - call.since);
  return answerEarly(call, { status: 'error', result });
}

interface Found {
  readonly tool: Call['tool'];
  readonly plan: CallPlan;
}

/** Rules of a class may be asynchronous, and then they may hang like any tool: the same limits hold. */
function checkLater(
  call: ReceivedCall,
  { tool, plan, checking }: Found & { readonly checking: Promise<ReadyArguments> },
): Answer {
  const onEnd = (end: BodyEnd): Answer => {
    try {
      if (end.how === 'returned') return checked(call, { tool, plan, ready: end.value as ReadyArguments });
      const unbegun = 'hasBegun' in end ? { ...end, hasBegun: false } : end;
      const told = () => finish(call, writeEnd({ ...call, tool, plan }, unbegun));
      if (end.how === 'aborted') return told();
      return unmade(call, end.how === 'threw' ? () => broken(call, end.error) : told, { tool, plan });
    } catch (cause) {
      return broken(call, cause);
    }
  };
  return awaitWork({ ...call, tool }, checking, { onEnd });
}

function reject(
  call: ReceivedCall,
  { faults, message }: ReadyArguments & { readonly ok: false },
  tool: Call['tool'],
): Answer {
  const again = askAgain(call, summarizeFaults(faults), tool);
  if (again !== undefined) return again;
  if (call.log.isRead) call.log.rejected(faults, performance.now() - call.since);
  return answerEarly(call, { status: 'rejected', result: failedResult('InvalidArguments', message) });
}

function checked(
  call: ReceivedCall,
  { tool, plan, ready }: Found & { readonly ready: ReadyArguments | Promise<ReadyArguments> },
): Answer {
  if (ready instanceof Promise) return checkLater(call, { tool, plan, checking: ready });
  if (call.request.journal?.edited?.isChecked && !countsFor(call.request.journal, ready)) {
    const { journal: _, hasBegun: __, ...request } = call.request;
    const asSent = (): Answer => {
      const sent = checkArguments(tool, plan, request);
      const fits = sent instanceof Promise || sent.ok;
      const again = fits ? undefined : askAgain(call, summarizeFaults(sent.faults), tool);
      return again ?? checked({ ...call, request }, { tool, plan, ready: sent });
    };
    return unmade(call, asSent, { tool, plan });
  }
  call.environment.onStep?.('check');
  if (!ready.ok) return unmade(call, () => reject(call, ready, tool), { tool, plan });
  const { value, hydrated: args = value, repairs, removed, isAccepted, transformed } = ready;
  return proceed(
    readyCall(call, { tool, plan, checked: value, args, repairs, removed, isAccepted, transformed }),
  );
}

interface ReadyParts
  extends Found,
    Pick<Call, 'checked' | 'args'>,
    Partial<Pick<Call, 'facts' | 'transformed'> & Pick<CheckedFacts, 'repairs' | 'removed'>> {
  readonly isAccepted?: true;
}

function readyCall(
  { request, environment, scope, attempt, log, trace, since, hooked }: ReceivedCall,
  { tool, plan, checked, args, repairs = NONE, removed = NONE, facts, isAccepted, transformed }: ReadyParts,
): Call {
  if (log.isRead) log.mended({ repairs, removed });
  const asked = request.journal === undefined ? request : withJournalFor(checked, request);
  // The tool may change what it is given; nobody looks at what was sent where there is no record and no context.
  const isUnseen = !environment.isRecorded && tool.ignoresContext;
  // Of edited arguments, what the model had sent.
  const isFit = isAccepted && asked === request;
  return {
    request: asked,
    environment,
    scope,
    attempt,
    log,
    trace,
    since,
    hooked,
    tool,
    plan,
    facts: facts ?? checkedFacts(request, plan, { repairs, removed, isAccepted: isFit, isUnseen }),
    checked,
    args,
    transformed,
    context: undefined,
    standing: undefined,
    task: undefined,
  };
}

const NONE: readonly string[] = [];

/** What was said about other arguments does not count, as a schema may have a new default; an end counts. */
function withJournalFor(checked: Call['checked'], request: CallRequest): CallRequest {
  const { journal, ...others } = request;
  if (journal?.edited !== undefined) return editedRequest(request, journal, checked);
  const isSame = canonicalJson(checked) === canonicalJson(journal?.arguments);
  return isSame || (journal !== undefined && wordOn(journal) !== undefined) ? request : others;
}

/** allow */
function proceed(call: Call): Answer {
  const { plan, request, environment } = call;
  call.task = taskOf(call);
  const isAlone = call.task === undefined && call.hooked === undefined;
  // A policy or an approval that looks at the context makes it.
  if (!isAlone || plan.needsContext) contextOf(call);
  const wasMade = request.journal !== undefined || request.hasBegun;
  const isDecided = environment.policies === undefined && !plan.isGuarded && !wasMade;
  if (isAlone && isDecided && !plan.isShared) return run(call);
  // Of the calls of a run, the order in which they end is told: one that was allowed ends later than one refused early.
  const isUntold = isAlone && !environment.isRecorded;
  const asked = isUntold ? askAtOnce(call) : undefined;
  if (isUntold && asked === undefined) return run(call);
  return allowCall(call, asked)
    .then((obstacle) => enter(call, obstacle))
    .catch((cause) => broken(call, cause));
}

function taskOf(call: Call): Call['task'] {
  const { onAsyncResult, jobs } = call.environment;
  if (jobs !== undefined && call.tool.background) return new JobTask(call, jobs);
  return onAsyncResult && new CallTask(call, onAsyncResult);
}

function enter(call: Call, obstacle: Obstacle | undefined): Answer {
  if (obstacle !== undefined) return finish(call, hinderedEnd(call, obstacle));
  if (call.hooked === undefined) return run(call);
  return call.hooked
    .beforeRun(call)
    .then((hindrance) => (hindrance === undefined ? run(call) : finish(call, hinderedEnd(call, hindrance))));
}

function run(call: Call): Answer {
  const { tool, plan, task, log, environment } = call;
  environment.onStep?.('allow');
  if (log.isRead) log.started(call.checked);
  if (task instanceof JobTask) return startAsJob(call, task);
  if (task !== undefined && tool.background)
    return conclude(call, { how: 'returned', value: startMethod(call) });
  if (!plan.isShared) return runBody(call, conclude);
  return runInTurn(call, () => runBody<BodyEnd>(call, (_call, end) => end)).then(
    (end) => conclude(call, endOfTurn(end)),
    (error) => conclude(call, { how: 'threw', error }),
  );
}

function startAsJob(call: Call, task: JobTask): Answer {
  const work = call.environment.awaitsJobs ? task.complete() : task.start();
  return work.then(
    (value) =>
      conclude(call, value === undefined ? { how: 'aborted', hasBegun: true } : { how: 'returned', value }),
    (error) => conclude(call, { how: 'threw', error }),
  );
}

function endOfTurn(end: BodyEnd | ToolResult | undefined): BodyEnd {
  if (end === undefined) return { how: 'aborted' };
  return 'how' in end ? end : { how: 'returned', value: end };
}

/** write */
function conclude(call: Call, end: BodyEnd): Answer {
  try {
    call.environment.onStep?.('run');
    const replay = call.context?.replay;
    const inner = call.environment.innerWaits?.() ?? NO_WAITS;
    return (replay === undefined && inner.length === 0) || call.scope.signal?.aborted
      ? finish(call, writeEnd(call, end))
      : concludeReplay(call, { end, replay, inner: hasEnded(call, end) ? inner : NO_WAITS });
  } catch (cause) {
    return broken(call, cause);
  }
}

const NO_WAITS: readonly Wait[] = [];

/** Nobody waits for what a body began that was cut off, or that answers later. */
function hasEnded({ task }: Call, { how }: BodyEnd): boolean {
  return (how === 'returned' || how === 'threw') && task?.id === undefined;
}

/** A body that used `ask` or `once`, or that began runs which wait. */
interface EndedBody {
  readonly end: BodyEnd;
  readonly replay: Replay | undefined;
  readonly inner: readonly Wait[];
}

/**
 * Where the body asked a question that has no answer yet, or a run that it began waits, the call waits, whatever the
 * body made of it. Work of `once` that is under way then may hang like any body: the same limits hold.
 */
function concludeReplay(call: Call, { end, replay, inner }: EndedBody): Answer {
  const { refused, isSuspended = false } = replay ?? {};
  if (refused !== undefined)
    return finish(call, { status: 'refused', result: failedResult('NotExecutableHere', refused.message) });
  if (!isSuspended && inner.length === 0) return finish(call, writeEnd(call, end));
  if (replay === undefined)
    return finish(call, suspendedEnd(call.tool.name, { waits: inner, journal: journalOf(call) }));
  return awaitWork(call, replay.suspension(argumentsBefore(call)), {
    onEnd: (waited) => {
      try {
        if (waited.how !== 'returned') return finish(call, writeEnd(call, waited));
        const { waits, journal } = waited.value as Suspension;
        return finish(call, suspendedEnd(call.tool.name, { waits: [...waits, ...inner], journal }));
      } catch (cause) {
        return broken(call, cause);
      }
    },
    stop: (reason) => contextOf(call).stop(reason),
  });
}

/** A call that ends, with what it has by then. */
type FinishedCall = ReceivedCall & Partial<Call>;

/** The call has ended: gives back what it held, once its work has completed. */
function finish(call: FinishedCall, written: CallEnd): Answer {
  const { task, context, log, hooked } = call;
  const end = task === undefined || hooked?.isHeard ? written : task.outlive(written);
  if (hooked?.isHeard === false && end.status !== 'suspended' && !task?.isHooked)
    return hooked.after(end, call).then((heard) => finish(call, heard));
  if (log.isRead) log.performed(end, performance.now() - call.since);
  task?.answered(end);
  if (context === undefined || end.taskId !== undefined) return answer(call, end);
  context.unfollow();
  return context.isOpen ? context.close().then(() => answer(call, end)) : answer(call, end);
}

/** The call has ended before its tool could have run. */
function answerEarly(call: FinishedCall, end: CallEnd): Answer {
  return call.hooked?.after(end, call).then((heard) => answer(call, heard)) ?? answer(call, end);
}

function answer(call: FinishedCall, end: CallEnd): CallAnswer {
  const { status, result, suspension } = end;
  call.environment.onStep?.('write');
  if (call.trace !== undefined) endTrace(call.trace, call, end);
  if (!call.environment.isRecorded) return result;
  const known = callRecord(call, end);
  const { journal } = call.request;
  const approved = call.standing ?? journal?.standing ?? journal?.edited;
  const told = approved === undefined ? known : withApproval(known, call);
  const isKept = call.environment.recordsKeys && call.checked !== undefined && !end.isUnmade;
  const record = isKept ? { ...told, idempotencyKey: keyOfEffect(call) } : told;
  if (status === 'suspended' && suspension !== undefined) return { status, suspension, result, record };
  return { status: status === 'started' ? status : 'settled', result, record };
}
