import { completionContent, completionKey } from '../call/completion-entry.js';
import { isExpired } from '../call/waits.js';
import type { Answer } from '../contract/call.js';
import type { InboxContent, InboxEntry, OpenTurn } from '../contract/conversation-log.js';
import type { JobEngine } from '../contract/job-engine.js';
import type { JsonObject } from '../contract/json-schema.js';
import type { Message } from '../contract/llm-provider.js';
import type { CheckpointStore, KeptRun } from '../contract/run-checkpoint.js';
import type { RunState } from '../contract/run-state.js';
import { InvalidOptionsError, ToolDeclarationError } from '../errors/author-fault.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { errorMessage } from '../kernel/error-message.js';
import type { LoopEvent, ToolLoopResult } from '../loop/events.js';
import { foldRun } from '../loop/fold-run.js';
import { abortedBefore } from '../loop/loop-run.js';
import { driveLostRun } from '../loop/recover-runs.js';
import { driveRun } from '../loop/run.js';
import { isSameOwner } from '../loop/run-owner.js';
import { driveStoredRun, endStoredRun } from '../loop/stored-run.js';
import { openWaits } from '../loop/suspend.js';
import type {
  ConversationsConfig,
  ConversationsOptions,
  NextTurn,
  TurnOwner,
} from './conversations-options.js';
import { answersJson, errorJson, eventJson, type KeptEvent, outcomeJson } from './event-json.js';
import { callOfContext } from './events.js';
import type { ExpiryWatch } from './expiry-watch.js';
import type { HeldConversation } from './held-conversation.js';
import { historyOf, messagesBefore, messagesOfTurn, promptOf, spentIn } from './kept-turns.js';
import { askForParts, type PartSources, type TurnParts } from './turn-parts.js';

/** What the turns of conversations are taken with. */
export interface TurnSurroundings extends PartSources {
  readonly store: CheckpointStore;
  readonly engine: JobEngine | undefined;
  readonly onUnknown: ConversationsOptions['onUnknown'];
  readonly expiries: ExpiryWatch;
  /** Aborted once all is closed: what becomes of jobs is then told by others. */
  readonly followUntil: AbortSignal;
  /** Hears of turns that failed without a run that says why. */
  readonly logFailed: (conversationId: string, error: unknown) => void;
  /** Keeps a completion of work that a turn has started; of two with the same key, the first. */
  readonly complete: (of: TurnOwner, key: string, content: InboxContent) => void;
}

/**
 * Takes the turns of a conversation until nothing is left to be done for now: nothing waits, or a run waits for
 * answers. Gives the revision up to which it has looked.
 */
export async function takeTurns(held: HeldConversation, surroundings: TurnSurroundings): Promise<number> {
  for (;;) {
    const { revision, turn, inbox } = held.conversation;
    const isLeft = turn !== undefined || inbox.length > 0;
    if (surroundings.closing.aborted) return isLeft ? revision - 1 : revision;
    if (!(await takeNext(held, surroundings))) return revision;
  }
}

/** Ends the turn that is open, of which an abort was asked; what waits behind it is left. */
export async function endOpenTurn(held: HeldConversation, surroundings: TurnSurroundings): Promise<void> {
  for (let { turn } = held.conversation; turn !== undefined; { turn } = held.conversation)
    if (!(await continueTurn(held, turn, surroundings))) return;
}

/** Does the next thing that is to be done; false where there is none. */
async function takeNext(held: HeldConversation, surroundings: TurnSurroundings): Promise<boolean> {
  const { turn, inbox, turns, conversationId } = held.conversation;
  if (turn !== undefined) return continueTurn(held, turn, surroundings);
  const [entry] = inbox;
  if (entry === undefined) return false;
  if (entry.content.kind === 'answers')
    await refuseAnswers(held, entry, { error: nothingAsked(), run: undefined });
  else {
    const firstEvent = held.conversation.lastEvent + 1;
    await beginTurn(held, {
      number: turns + 1,
      entry,
      runId: `${conversationId}.${turns + 1}`,
      firstEvent,
      isNamed: true,
    });
  }
  return true;
}

async function beginTurn(held: HeldConversation, turn: OpenTurn): Promise<void> {
  const { content, position } = turn.entry;
  const events: KeptEvent[] = [{ type: 'turn-start', turn: turnJson(turn) }];
  if (content.kind === 'completion' && content.forUser) {
    const { forUser: text, tool, callId, taskId } = content;
    events.push({ type: 'user-message', text, tool, callId, ...(taskId ? { taskId } : {}) });
  }
  await held.commit({ turn, done: [position], events });
}

async function continueTurn(
  held: HeldConversation,
  turn: OpenTurn,
  surroundings: TurnSurroundings,
): Promise<boolean> {
  const run = await surroundings.store.read(turn.runId);
  const fault = run && turnFault(held, turn, run);
  if (fault) {
    await failTurn(held, { turn, error: fault }, surroundings);
    return true;
  }
  // Where the run is not suspended, the process that took the answers died before it had told so.
  const told = run === undefined ? [] : await held.sincePause(turn);
  const answers = run === undefined ? undefined : firstAnswers(held, told);
  if (run?.status === 'ended') {
    await held.tellUntold(turn, run);
    await commitTurn(held, turn, { result: endedRun(run), ...settledAnswers(held, told, run) });
    return true;
  }
  const isPaused = told[0]?.type === 'turn-suspended' && !told.some(({ type }) => type === 'run-start');
  if (run?.status === 'suspended' && !isPaused) await held.tellUntold(turn, run);
  if (run?.status === 'suspended' && answers === undefined && !held.conversation.isAbortAsked) {
    const { pending } = run.state as RunState;
    // What nobody answered in time is not waited for.
    if (!pending.some((wait) => isExpired(wait))) {
      if (!isPaused) await tellPause(held, turn, run);
      surroundings.expiries.expect(held.conversation.conversationId, pending);
      return false;
    }
  }
  try {
    const result = await runTurn(held, { turn, run, answers }, surroundings);
    // Where the run came to an end or a stop a moment before, or this process closes, the next look finds that.
    if (result !== undefined)
      await commitTurn(held, turn, { result, done: answers ? [answers.position] : [] });
  } catch (error) {
    held.lost.throwIfAborted();
    // Those that were taken before have done what they could.
    if (answers?.isTold && isRefusal(error)) await held.commit({ done: [answers.position], events: [] });
    else if (answers !== undefined && isRefusal(error)) await refuseAnswers(held, answers, { error, run });
    else if (isFinal(error))
      await held.tellUntold(turn, run).then(() => failTurn(held, { turn, error }, surroundings));
    // The store, or what the application gives, may be right the next time.
    else throw error;
  }
  return true;
}

/** Ids of conversations may be a client's to choose, and the id of somebody's run may look like one of a turn. */
function turnFault(
  { conversation: { conversationId } }: HeldConversation,
  { runId, isNamed, entry }: OpenTurn,
  { state }: KeptRun,
): ToolwrightError | undefined {
  const isOwn = !isNamed || state.turnOf === conversationId;
  if (isOwn && isSameOwner(state.owner, entry.content.owner)) return undefined;
  const what = isOwn ? 'a run of another owner' : 'another run, which is no turn,';
  return new ToolwrightError('RunNotAllowed', `The turn was not taken: the store has ${what} as '${runId}'.`);
}

/** Whether the turn can never be run: its author's options are wrong, or what it was to replace is gone. */
function isFinal(error: unknown): boolean {
  return (
    error instanceof InvalidOptionsError ||
    error instanceof ToolDeclarationError ||
    (ToolwrightError.is(error) && error.name === 'ConversationNotReady')
  );
}

/** Tells that the turn waits, where its process died after it had kept the run and before it had told so. */
async function tellPause(held: HeldConversation, turn: OpenTurn, run: KeptRun): Promise<void> {
  const { pending } = run.state as RunState;
  const { messages, iterations, usage, spent, open } = foldRun(run);
  const { content = '' } = open ?? {};
  const result: TurnResult = { status: 'suspended', content, messages, iterations, usage, pending };
  await commitTurn(held, turn, { result: spent === undefined ? result : { ...result, spent }, done: [] });
}

/** A run that ended before the conversation had its end. */
function endedRun(run: KeptRun): TurnResult {
  const { messages, iterations, usage, end } = foldRun(run);
  return { status: 'failed', content: '', messages, iterations, usage, ...end };
}

/** Answers that wait, and whether readers know that they were taken: by a process that died after that. */
interface WaitingAnswers extends InboxEntry {
  readonly isTold: boolean;
}

/** `told`: since the last pause; what was taken before it waits no more. */
function firstAnswers(held: HeldConversation, told: readonly JsonObject[]): WaitingAnswers | undefined {
  const entry = held.conversation.inbox.find(({ content }) => content.kind === 'answers');
  if (entry === undefined) return undefined;
  return { ...entry, isTold: told.some(({ type, key }) => type === 'answers-taken' && key === entry.key) };
}

/** A turn, where its run is, and the answers that the run gets. */
interface StandingTurn {
  readonly turn: OpenTurn;
  readonly run: KeptRun | undefined;
  readonly answers: WaitingAnswers | undefined;
}

/** Runs a turn from where it is until it ends, or waits for answers. */
async function runTurn(
  held: HeldConversation,
  { turn, run, answers }: StandingTurn,
  surroundings: TurnSurroundings,
): Promise<TurnResult | undefined> {
  const { store, engine, leaseMs, onUnknown, followUntil } = surroundings;
  const { runId } = turn;
  const { owner } = turn.entry.content;
  const of = { conversationId: held.conversation.conversationId, ...(owner === undefined ? {} : { owner }) };
  const next = { ...of, messages: messagesBefore(held.conversation, turn.entry.content) };
  const signal = held.turnSignal();
  const parts = await askForParts(next, surroundings, { signal, lost: held.lost });
  if (parts.status === 'left') return undefined;
  if (parts.status === 'failed') surroundings.logFailed(of.conversationId, parts.error);
  if (parts.status !== 'given') return endWithout(held, parts, { turn, run, next, store, signal });
  const { given } = parts;
  const config = {
    ...withCompletions(given, of, surroundings),
    ...{ store, leaseMs, runId, signal },
    ...(engine === undefined ? {} : { engine }),
  };
  const scope = { ...parts.scope, ...of };
  let untold: readonly KeptEvent[] = [];
  const sink = (event: LoopEvent) => {
    if (event.type !== 'run-start')
      return isOnlyPassing(event) ? undefined : held.events.write(eventJson(event));
    // Answers that are wrong are refused before.
    if (answers?.isTold === false) void held.events.write(answersJson(answers));
    void held.events.write(eventJson(event));
    for (const missed of untold) void held.events.write(missed);
  };
  const turnOf = of.conversationId;
  const unknown = onUnknown === undefined ? {} : { onUnknown };
  const watched = { scope, sink, turnOf, followUntil, left: held.lost, ...unknown };
  if (run === undefined)
    return isKept(await driveRun(config, { messages: startOf(next, turn, given) }, watched));
  const stored = { store, runId, leaseMs };
  if (run.status === 'running')
    return driveLostRun(config, {
      ...{ ...stored, surroundings: watched },
      onTaken: async (lost) => {
        untold = await held.untoldOf(turn, lost);
      },
    }).then((result) => result && isKept(result));
  const resumption = { scope, ...answersOf(answers, owner) };
  return isKept(await driveStoredRun(config, stored, { resumption, surroundings: watched }));
}

/** A turn that is to end, and where. */
interface EndingTurn extends Pick<StandingTurn, 'turn' | 'run'>, Pick<TurnSurroundings, 'store'> {
  readonly next: NextTurn;
  readonly signal: AbortSignal;
}

/** Ends a turn without what the application gives for it; its history is valid. Nothing where that is committed. */
async function endWithout(
  held: HeldConversation,
  parts: Extract<TurnParts, { readonly status: 'aborted' | 'failed' }>,
  { turn, run, next, store, signal }: EndingTurn,
): Promise<TurnResult | undefined> {
  const failed = parts.status === 'failed' ? { status: 'failed' as const, error: parts.error } : {};
  if (run === undefined)
    return { ...abortedBefore([...next.messages, ...promptOf(turn)], signal), ...failed };
  const { runId } = turn;
  const reason = parts.status === 'failed' ? parts.error.message : errorMessage(signal.reason);
  await endStoredRun({ store, runId, reason, from: 'anybody' });
  const ended = await store.read(runId);
  if (ended === undefined) throw new ToolwrightError('RunNotFound', `The store has no run '${runId}'.`);
  await held.tellUntold(turn, ended);
  const settled = settledAnswers(held, await held.sincePause(turn), ended);
  await commitTurn(held, turn, { result: { ...endedRun(ended), ...failed }, ...settled });
  return undefined;
}

/** What becomes of answers that wait where their run has ended: it got them before that, or they are too late. */
function settledAnswers(
  held: HeldConversation,
  told: readonly JsonObject[],
  { runId, state }: KeptRun,
): Omit<TurnOutcome, 'result'> {
  const first = firstAnswers(held, told);
  const { iterations, open } = state;
  const waits = open === undefined ? [] : openWaits({ runId, iterations, open });
  const left = new Set(waits.map(({ pending }) => pending.id));
  const entries = held.conversation.inbox.filter(({ content }) => content.kind === 'answers');
  const events = entries.flatMap((entry) => {
    if (entry.position === first?.position && first.isTold) return [];
    const isLate = answersIn(entry).some(({ id }) => left.has(id));
    return [answersJson(entry, isLate ? { error: nothingAsked(), isLate } : undefined)];
  });
  return { done: entries.map(({ position }) => position), events };
}

function answersIn({ content }: InboxEntry): readonly Answer[] {
  return content.kind === 'answers' ? content.answers : [];
}

/** What an agent inside a call writes, letter by letter: its answer is the result of the call. */
function isOnlyPassing(event: LoopEvent): boolean {
  return event.type === 'call-event' && /-delta$|^call-event$/.test(event.event.type);
}

/** Without an entry, the turn is aborted: its calls need no answers. */
function answersOf(entry: InboxEntry | undefined, owner: unknown) {
  if (entry?.content.kind !== 'answers') return { answers: [] };
  const { answers, answeredBy, owner: named } = entry.content;
  if (!isSameOwner(owner, named))
    throw new ToolwrightError('RunNotAllowed', 'The answers name another owner than the turn has.');
  return { answers, answeredBy };
}

/** What the model is asked with first. */
function startOf(next: NextTurn, turn: OpenTurn, { systemPrompt }: ConversationsConfig): Message[] {
  const system: Message[] = systemPrompt === undefined ? [] : [{ role: 'system', content: systemPrompt }];
  return [...system, ...next.messages, ...promptOf(turn)];
}

/** Completions enter the conversation, whichever process holds it then. */
function withCompletions(
  { systemPrompt: _, checkpoint = 'step', ...config }: ConversationsConfig,
  of: TurnOwner,
  { complete }: TurnSurroundings,
) {
  const onAsyncResult: NonNullable<ConversationsConfig['onAsyncResult']> = (context, result) => {
    const content = completionContent(callOfContext(context), result, of.owner);
    complete(of, completionKey(context?.idempotencyKey ?? crypto.randomUUID()), content);
    config.onAsyncResult?.(context, result);
  };
  return { ...config, checkpoint, onAsyncResult };
}

/** A run that its store could not keep is not over: whoever holds the conversation next goes on with it. */
function isKept(result: ToolLoopResult): ToolLoopResult {
  const { error } = result;
  if (ToolwrightError.is(error) && (error.name === 'RunStoreFailed' || error.name === 'RunClaimed'))
    throw error;
  return result;
}

/** What of the outcome of a run a conversation keeps, or tells. */
type TurnResult = Pick<
  ToolLoopResult,
  'status' | 'content' | 'messages' | 'iterations' | 'usage' | 'spent' | 'output' | 'pending'
> & { readonly error?: unknown };

/** What came of the run of a turn. */
interface TurnOutcome {
  readonly result: TurnResult;
  /** Entries that need no turn any more. */
  readonly done: readonly number[];
  /** What is told before its end. */
  readonly events?: readonly KeptEvent[];
}

async function commitTurn(
  held: HeldConversation,
  turn: OpenTurn,
  { result, done, events = [] }: TurnOutcome,
): Promise<void> {
  const outcome = { turn: turnJson(turn), ...outcomeJson(result) };
  if (result.status === 'suspended') {
    await held.commit({ done, events: [{ type: 'turn-suspended', ...outcome }] });
    return;
  }
  const { length: keep } = messagesBefore(held.conversation, turn.entry.content);
  const [first] = result.messages;
  const said = result.messages.slice(first?.role === 'system' ? 1 : 0).slice(keep);
  const { number, firstEvent, entry } = turn;
  const { spent } = result;
  const { spent: spentSoFar } = spentIn(historyOf(held.conversation).turns, spent);
  const kept = {
    ...{ number, key: entry.key },
    ...(firstEvent === undefined ? {} : { firstEvent }),
    ...(spent === undefined ? {} : { spent }),
    ...(spentSoFar === undefined ? {} : { spentSoFar }),
  };
  const history = { keep, messages: messagesOfTurn(said, kept) };
  await held.commit({ turn: null, history, done, events: [...events, { type: 'turn-end', ...outcome }] });
}

/** A turn that can never be run as things are. */
async function failTurn(
  held: HeldConversation,
  { turn, error }: { readonly turn: OpenTurn; readonly error: unknown },
  { logFailed }: TurnSurroundings,
): Promise<void> {
  logFailed(held.conversation.conversationId, error);
  const failed = { status: 'failed', error: errorJson(error) } as const;
  await held.commit({ turn: null, events: [{ type: 'turn-end', turn: turnJson(turn), ...failed }] });
}

async function refuseAnswers(
  held: HeldConversation,
  entry: InboxEntry,
  { error, run }: { readonly error: unknown; readonly run: KeptRun | undefined },
): Promise<void> {
  const pending = run?.status === 'suspended' ? (run.state as RunState).pending : [];
  const isWaitedFor = ({ id }: Answer): boolean => pending.some((wait) => wait.id === id);
  // Others were quicker, or the turn is over; otherwise the answers themselves are wrong.
  const isLate = !answersIn(entry).every(isWaitedFor);
  await held.commit({ done: [entry.position], events: [answersJson(entry, { error, isLate })] });
}

function isRefusal(error: unknown): boolean {
  const refusals: readonly string[] = ['InvalidAnswer', 'RunNotAllowed', 'DefinitionChanged'];
  return ToolwrightError.is(error) && refusals.includes(error.name);
}

function nothingAsked(): ToolwrightError {
  return new ToolwrightError('InvalidAnswer', 'The conversation waits for no answer.');
}

function turnJson({ number, entry: { key, content } }: OpenTurn) {
  return { number, key, kind: content.kind };
}
