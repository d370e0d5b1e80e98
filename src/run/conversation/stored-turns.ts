import { setTimeout as pause } from 'node:timers/promises';
import { addSpending, type Spending } from '../../core/contract/budget.js';
import { type CallScope, type PendingCall, scopeFields } from '../../core/contract/call.js';
import type {
  ConversationCommit,
  InboxContent,
  InboxEntry,
  KeptConversation,
  KeptTurn,
  OpenTurn,
} from '../../core/contract/conversation-log.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { Message } from '../../core/contract/llm-provider.js';
import type { CheckpointStore, KeptRun } from '../../core/contract/run-checkpoint.js';
import type { RunState } from '../../core/contract/run-state.js';
import type { TracedRun } from '../../core/contract/telemetry.js';
import { checkOptions, InvalidOptionsError, ToolDeclarationError } from '../../core/errors/author-fault.js';
import { ProviderError } from '../../core/errors/provider-error.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { withinLimits } from '../../core/kernel/async.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isRecord, plainJson, withoutUndefined } from '../../core/kernel/json.js';
import { logFailure } from '../call/failure-log.js';
import { completionContent, completionKey } from '../call/job-dispatch.js';
import { safeLog } from '../call/log.js';
import { isExpired, needsApprover } from '../call/waits.js';
import { abortedBefore, askingStep } from '../loop/drive.js';
import type { LoopEvent, ToolLoopResult } from '../loop/events.js';
import { foldRun } from '../loop/fold-run.js';
import { resultsOfConversation } from '../loop/loop-run.js';
import { resumeWith } from '../loop/resume.js';
import { driveRun } from '../loop/run.js';
import { errorJson } from '../loop/run-errors.js';
import { isSameOwner } from '../loop/run-owner.js';
import { driveLostRun, driveStoredRun, endStoredRun, saveAskedAnew } from '../loop/stored-run.js';
import { openWaits } from '../loop/suspend.js';
import type { ConversationClaim } from './conversation-lease.js';
import {
  type ConversationsConfig,
  type ConversationsOptions,
  type ConversationsStore,
  type NextTurn,
  TURN_CONFIG,
} from './conversations-options.js';
import {
  callOfContext,
  eventJson,
  type KeptEvent,
  nothingAsked,
  outcomeJson,
  type RunOutcome,
  turnMessage,
  userMessage,
} from './events.js';

/** The dependencies of turns, in addition to their conversation. */
export interface TurnDeps {
  readonly options: ConversationsOptions;
  readonly leaseMs: number;
  /** Aborted when no more turns should start. */
  readonly closing: AbortSignal;
  /** Aborted once everything is closed: other processes then report the results of jobs. */
  readonly followUntil: AbortSignal;
  /** Runs code in the async context in which an entry was added, if that was in this process. */
  readonly inEntry: (conversationId: string, key: string) => TracedRun['inPrompt'];
  /** Called when a conversation waits for answers. */
  readonly expect: (conversationId: string, pending: readonly PendingCall[]) => void;
  /** Adds a completion; with the same key, only the first is added. */
  readonly enter: (conversationId: string, key: string, content: InboxContent) => Promise<unknown>;
}

/** The parts of a run's outcome that a conversation stores or reports. */
type TurnResult = RunOutcome & Pick<ToolLoopResult, 'messages'>;

/** Names of errors that refuse answers. */
const REFUSALS: readonly string[] = ['InvalidAnswer', 'RunNotAllowed', 'DefinitionChanged'];

/** An entry with answers. */
type AnswersEntry = InboxEntry & { readonly content: Extract<InboxContent, { readonly kind: 'answers' }> };

function isAnswers(entry: InboxEntry): entry is AnswersEntry {
  return entry.content.kind === 'answers';
}

/** Takes the turns of a conversation from its log; their runs are in a store, so that any process can continue them. */
export class StoredTurns {
  /** The run of the open turn at its inspection; `undefined` if it has not begun. */
  #run: KeptRun | undefined;
  /** The events that readers received since the turn last paused, starting with that pause. */
  #emitted: readonly JsonObject[] = [];
  /** Why the run of the open turn was ended. */
  #failed: Required<Pick<TurnResult, 'status' | 'error'>> | undefined;

  constructor(
    private readonly lease: ConversationClaim,
    private readonly deps: TurnDeps,
  ) {}

  /** Takes turns, one at a time and in order of arrival, until there is nothing left to do for now. */
  async process(isStopped: () => boolean): Promise<void> {
    while (!isStopped()) {
      const { turn, inbox } = this.lease.conversation;
      if (turn === undefined) {
        const [entry] = inbox;
        if (entry === undefined) return;
        this.#run = undefined;
        this.#failed = undefined;
        if (isAnswers(entry)) {
          await this.#refuse(entry, nothingAsked());
          continue;
        }
        const { conversationId, turns, lastEvent } = this.lease.conversation;
        const number = turns + 1;
        const place = { runId: `${conversationId}.${number}`, firstEvent: lastEvent + 1 };
        const begun: OpenTurn = { number, entry, ...place, isNamed: true };
        const events: KeptEvent[] = [{ type: 'turn-start', turn: turnJson(begun) }];
        const { content } = entry;
        if (content.kind === 'completion' && content.forUser)
          events.push(userMessage(content.forUser, content));
        await this.lease.commit({ turn: begun, done: [entry.position], events });
        continue;
      }
      const readiness = await this.#inspect(turn);
      if (readiness === 'waiting') return;
      if (readiness === 'over') continue;
      try {
        const result = await this.#runTurn(turn);
        const done = this.#answers ? [this.#answers.position] : [];
        if (result !== undefined) await this.#commit(turn, result, { done });
      } catch (error) {
        await this.#fail(turn, error);
      }
    }
  }

  /** Whether the open turn can run now. Also reports events that a crashed process had stored but not reported. */
  async #inspect(turn: OpenTurn): Promise<'ready' | 'waiting' | 'over'> {
    const run = await this.deps.options.store.read(turn.runId);
    this.#run = run;
    this.#emitted = [];
    if (run === undefined) return 'ready';
    const { conversationId, isAbortAsked } = this.lease.conversation;
    // Clients may choose conversation ids, so the id of another run may look like that of a turn.
    const isOwn = !turn.isNamed || run.state.turnOf === conversationId;
    if (!isOwn || !isSameOwner(run.state.owner, turn.entry.content.owner)) {
      const what = isOwn ? 'a run of another owner' : 'a run that is not a turn';
      const message = `The turn was not run: in the store, '${turn.runId}' is ${what}.`;
      return this.#failTurn(turn, new ToolwrightError('RunNotAllowed', message));
    }
    this.#emitted = await this.lease.eventsSince('turn-suspended', turn);
    if (run.status === 'running') return 'ready';
    const isPaused =
      this.#emitted[0]?.type === 'turn-suspended' &&
      !this.#emitted.some((event) => event.type === 'run-start');
    if (!isPaused || run.status === 'ended') await this.lease.emitMissedEvents(turn, run);
    if (run.status === 'ended') {
      // Its end was not committed to the conversation yet; answers that still wait are settled.
      const { open } = run.state;
      const waits = open === undefined ? [] : openWaits({ ...run.state, runId: run.runId, open });
      const left = new Set(waits.map(({ pending }) => pending.id));
      const entries = this.lease.conversation.inbox.filter(isAnswers);
      const events: KeptEvent[] = [];
      for (const [index, entry] of entries.entries()) {
        if (index === 0 && this.#wasTaken(entry)) continue;
        const isLate = entry.content.answers.some(({ id }) => left.has(id));
        events.push(answersJson(entry, isLate ? { error: nothingAsked(), isLate } : undefined));
      }
      const done = entries.map(({ position }) => position);
      await this.#commit(turn, { ...outcomeOf(run), ...this.#failed }, { done, events });
      return 'over';
    }
    const { pending } = run.state as RunState;
    // If answers have expired, the turn continues without them.
    if (this.#answers || isAbortAsked || pending.some((wait) => isExpired(wait))) return 'ready';
    // Its process crashed after it had stored the run and before it reported this.
    if (!isPaused) await this.#commit(turn, outcomeOf(run));
    this.deps.expect(conversationId, pending);
    return 'waiting';
  }

  /** Runs the turn until it ends or waits for answers; `undefined` if it is over, or must be inspected again. */
  async #runTurn(turn: OpenTurn): Promise<TurnResult | undefined> {
    const lease = this.lease;
    const { options, leaseMs, followUntil, enter, inEntry } = this.deps;
    const { store, engine, onUnknown, logger } = options;
    const { conversationId } = lease.conversation;
    const { content, key } = turn.entry;
    const of = withoutUndefined({ conversationId, owner: content.owner });
    const next = { ...of, messages: messagesBefore(lease.conversation, content) };
    const signal = lease.turnSignal();
    const loaded = await loadTurnConfig(next, this.deps, { signal, lost: lease.lost });
    if (loaded === undefined) return undefined;
    if (!('config' in loaded)) return this.#endWithout(turn, loaded, { next, signal });
    const { systemPrompt, checkpoint = 'step', ...given } = loaded.config;
    const onAsyncResult: ConversationsConfig['onAsyncResult'] = (context, result) => {
      const entryKey = completionKey(context?.idempotencyKey ?? crypto.randomUUID());
      enter(conversationId, entryKey, completionContent(callOfContext(context), result, of.owner)).catch(
        (error: unknown) => logFailure(logger, { what: 'A completion could not be saved', error }),
      );
      given.onAsyncResult?.(context, result);
    };
    const { runId } = turn;
    const stored = { store, runId, leaseMs };
    const config = withoutUndefined({ ...given, checkpoint, onAsyncResult, ...stored, signal, engine });
    const scope = { ...loaded.scope, ...of };
    const run = this.#run;
    const answers = this.#answers;
    let missed: readonly KeptEvent[] = [];
    const sink = (event: LoopEvent) => {
      // The text of an agent inside a call is not reported: its answer is the result of the call.
      if (event.type === 'call-event' && /-delta$|^call-event$/.test(event.event.type)) return;
      if (event.type !== 'run-start') return lease.write(eventJson(event));
      // Wrong answers were refused earlier.
      if (answers !== undefined && !this.#wasTaken(answers)) void lease.write(answersJson(answers));
      void lease.write(eventJson(event));
      for (const event of missed) void lease.write(event);
    };
    const inPrompt = inEntry(conversationId, key);
    const ofTurn = { turnOf: conversationId, inPrompt, resultsOf: resultsOfConversation(conversationId) };
    const deps = withoutUndefined({ scope, sink, ...ofTurn, followUntil, left: lease.lost, onUnknown });
    let result: ToolLoopResult | undefined;
    if (run === undefined) {
      const system: Message[] = systemPrompt === undefined ? [] : [{ role: 'system', content: systemPrompt }];
      const messages = [...system, ...next.messages, ...promptOf(turn)];
      result = await driveRun(config, { messages }, deps);
    } else if (run.status === 'running') {
      const onTaken = async (lost: KeptRun) => {
        missed = await lease.missedBy(turn, lost);
      };
      result = await driveLostRun(config, { ...stored, deps, onTaken });
    } else {
      const resumption = { scope, ...answersOf(answers, of.owner) };
      result = await driveStoredRun(config, stored, { resumption, deps });
    }
    // A run that its store could not save is not over: the next holder of the conversation continues it.
    const error = result?.error;
    const isLost =
      ToolwrightError.is(error) && (error.name === 'RunStoreFailed' || error.name === 'RunClaimed');
    if (isLost) throw error;
    return result;
  }

  /** Ends the turn with an error, or leaves it open if its answers were refused; throws if it should be tried again. */
  async #fail(turn: OpenTurn, error: unknown): Promise<void> {
    this.lease.lost.throwIfAborted();
    const answers = this.#answers;
    const name = ToolwrightError.is(error) ? error.name : '';
    if (answers !== undefined && REFUSALS.includes(name)) {
      // Answers that an earlier process applied have had their effect.
      if (this.#wasTaken(answers)) await this.lease.commit({ done: [answers.position], events: [] });
      else await this.#refuse(answers, error);
      return;
    }
    const isInvalid = error instanceof InvalidOptionsError || error instanceof ToolDeclarationError;
    // The store, or a function of the application, may succeed the next time, but no turn to replace reappears.
    if (!isInvalid && name !== 'ConversationNotReady') throw error;
    if (this.#run !== undefined) await this.lease.emitMissedEvents(turn, this.#run);
    await this.#failTurn(turn, error);
  }

  /**
   * Ends a turn whose config could not be loaded; its history is valid. Returns the result of a turn whose run has not
   * begun; others are committed here.
   */
  async #endWithout(
    turn: OpenTurn,
    { error }: EndedTurn,
    { next, signal }: { readonly next: NextTurn; readonly signal: AbortSignal },
  ): Promise<TurnResult | undefined> {
    if (error !== undefined) this.#logFailed(error);
    this.#failed = error && { status: 'failed', error };
    if (this.#run === undefined)
      return { ...abortedBefore([...next.messages, ...promptOf(turn)], signal), ...this.#failed };
    const { store } = this.deps.options;
    const reason = errorMessage(error ?? signal.reason);
    await endStoredRun({ store, runId: turn.runId, reason, from: 'anybody' });
    await this.#inspect(turn);
    return undefined;
  }

  /** `done`: entries that no longer need a turn. `events`: those before the end of the turn. */
  async #commit(
    turn: OpenTurn,
    result: TurnResult,
    { done = [], events = [] }: Pick<ConversationCommit, 'done' | 'events'> = {},
  ): Promise<void> {
    const { conversation } = this.lease;
    const outcome = { turn: turnJson(turn), ...outcomeJson(result) };
    if (result.status === 'suspended')
      return this.lease.commit({ done, events: [{ type: 'turn-suspended', ...outcome }] });
    const { number, firstEvent, entry } = turn;
    const { length: keep } = messagesBefore(conversation, entry.content);
    const isSystem = result.messages[0]?.role === 'system';
    const own = result.messages.slice(keep + (isSystem ? 1 : 0));
    const [first, ...others] = own;
    const filesRefused = areFilesRefused(result.error, own) || undefined;
    const { spent } = result;
    // Including replaced turns.
    const spentSoFar = addSpending(historyOf(conversation).turns.at(-1)?.spentSoFar, spent);
    const facts = { number, key: entry.key, firstEvent, filesRefused, spent, spentSoFar };
    const stored = withoutUndefined<KeptTurn>(facts);
    // The first message of a turn contains its facts.
    const messages = first === undefined ? [] : [{ ...first, turn: stored }, ...others];
    const history = { keep, messages };
    const error = outcome.error && withoutUndefined({ ...outcome.error, filesRefused });
    const ended: KeptEvent = withoutUndefined({ type: 'turn-end' as const, ...outcome, error });
    await this.lease.commit({ turn: null, history, done, events: [...events, ended] });
  }

  /** Ends a turn that can never run. */
  async #failTurn(turn: OpenTurn, error: unknown): Promise<'over'> {
    this.#logFailed(error);
    const failed = { status: 'failed', error: errorJson(error) } as const;
    await this.lease.commit({ turn: null, events: [{ type: 'turn-end', turn: turnJson(turn), ...failed }] });
    return 'over';
  }

  async #refuse(entry: AnswersEntry, error: unknown): Promise<void> {
    const pending = this.#run?.status === 'suspended' ? (this.#run.state as RunState).pending : [];
    // Other answers were faster, or the turn is over; otherwise the answers themselves are wrong.
    const isLate = !entry.content.answers.every(({ id }) => pending.some((wait) => wait.id === id));
    await this.lease.commit({ done: [entry.position], events: [answersJson(entry, { error, isLate })] });
  }

  /** The next answers for the run. */
  get #answers(): AnswersEntry | undefined {
    return this.#run && this.lease.conversation.inbox.find(isAnswers);
  }

  /** Whether readers received that these answers were applied, from a process that crashed afterwards. */
  #wasTaken({ key }: AnswersEntry): boolean {
    return this.#emitted.some((event) => event.type === 'answers-taken' && event.key === key);
  }

  #logFailed(error: unknown): void {
    const { conversationId } = this.lease.conversation;
    logFailure(this.deps.options.logger, { what: 'Turn failed', error, at: { conversationId } });
  }
}

/** The application's config for a turn. */
interface TurnConfig {
  readonly config: ConversationsConfig;
  readonly scope: CallScope;
}

/** The end of the turn was requested, or its config cannot be loaded. */
interface EndedTurn {
  readonly error?: Error;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/** How long an aborted turn waits for its config: with the tools, more can be stated about its calls. */
const ABORTED_WITHIN_MS = 5_000;

/**
 * Loads the config and the scope of a turn from the application. It retries failures, because a database may be
 * unavailable for a moment, but no longer than a lease, because other turns wait. An abort does not wait for them.
 * Returns `undefined` if this process closes: another one loads the config again.
 *
 * @throws InvalidOptionsError, ToolDeclarationError: retries would fail in the same way; the reason of `lost`.
 */
async function loadTurnConfig(
  next: NextTurn,
  { options, leaseMs, closing }: TurnDeps,
  { signal, lost }: { readonly signal: AbortSignal; readonly lost: AbortSignal },
): Promise<TurnConfig | EndedTurn | undefined> {
  const { logger, config: configOf, scope: scopeOf } = options;
  const limits = signal.aborted
    ? { signal: lost, timeoutMs: ABORTED_WITHIN_MS }
    : { signal: AbortSignal.any([signal, lost]), timeoutMs: undefined };
  const since = performance.now();
  for (let tries = 1, wait = FIRST_PAUSE_MS; ; tries += 1, wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
    let asked = 'config';
    try {
      const loading = (async () => (typeof configOf === 'function' ? configOf(next) : configOf))();
      const given = await withinLimits(loading, limits);
      checkOptions(given, TURN_CONFIG);
      const config = logger === undefined ? given : { logger, ...given };
      asked = 'scope';
      const scope = await withinLimits((async () => (await scopeOf?.(next)) ?? {})(), limits);
      return { config, scope: scopeFields(scope) };
    } catch (error) {
      lost.throwIfAborted();
      if (signal.aborted) return {};
      if (error instanceof InvalidOptionsError || error instanceof ToolDeclarationError) throw error;
      if (performance.now() - since + wait >= leaseMs) {
        const often = `${tries} ${tries === 1 ? 'time' : 'times'} within ${leaseMs} ms`;
        const message = `The turn was not run: \`${asked}\` of Conversations failed ${often}; the last error: ${errorMessage(error)}`;
        return { error: new Error(message, { cause: error }) };
      }
      const message = `\`${asked}\` of Conversations failed for a turn of '${next.conversationId}'; it is called again`;
      safeLog(logger).warn(message, { error, tries });
    }
    await pause(wait, undefined, { signal: AbortSignal.any([signal, lost, closing]) }).catch(() => {});
    lost.throwIfAborted();
    if (signal.aborted) return {};
    if (closing.aborted) return undefined;
  }
}

/** Without an entry, the turn is aborted: its calls need no answers. */
function answersOf(entry: AnswersEntry | undefined, owner: unknown) {
  if (entry === undefined) return { answers: [] };
  const { answers, answeredBy, owner: named } = entry.content;
  if (!isSameOwner(owner, named))
    throw new ToolwrightError('RunNotAllowed', 'The owner of the answers is not the owner of the turn.');
  return { answers, answeredBy };
}

/** The outcome of a run that waits or has ended, from its store. */
function outcomeOf(run: KeptRun): TurnResult {
  const { messages, iterations, usage, spent, open, end } = foldRun(run);
  const counts = withoutUndefined({ messages, iterations, usage, spent });
  if (run.status === 'ended') return { status: 'failed', content: '', ...counts, ...end };
  const { pending } = run.state as RunState;
  return { status: 'suspended', content: open?.content ?? '', ...counts, pending };
}

function turnJson({ number, entry: { key, content } }: OpenTurn) {
  return { number, key, kind: content.kind };
}

/** A turn of a history, and its first index in the messages. */
export interface HistoryTurn extends KeptTurn {
  readonly begins: number;
}

/** A conversation for readers. */
export interface ConversationView {
  readonly conversationId: string;
  /** The owner of its first entry. */
  readonly owner?: unknown;
  /** `running`: a turn runs or is about to; `suspended`: it waits for answers; `idle`: there is nothing left to do. */
  readonly status: 'idle' | 'running' | 'suspended';
  /** The messages of finished turns, and the prompt of the current one. */
  readonly messages: readonly Message[];
  /** The finished turns, and the first index of each in `messages`; turns of older versions are missing. */
  readonly history: readonly HistoryTurn[];
  /** The current turn, and its first index in `messages`; turns that it replaces come before it. */
  readonly turn?: OpenTurn & Pick<HistoryTurn, 'begins'>;
  /** The waits of the turn. */
  readonly pending: readonly PendingCall[];
  /** Number of the turn's request to the model that made the calls of `pending`. */
  readonly iteration?: number;
  /** The amounts spent by its turns, including replaced ones; only if they have a budget. */
  readonly spent?: Spending;
  /** The waiting entries. */
  readonly inbox: KeptConversation['inbox'];
  /** The number of turns begun so far. */
  readonly turns: number;
  /** Number of the last event: continue reading from here. */
  readonly lastEvent: number;
}

/** Separates messages and turns, which a log stores together: models receive no turn data. */
function historyOf(kept: Pick<KeptConversation, 'messages'>) {
  const turns: HistoryTurn[] = [];
  const messages: Message[] = [];
  for (const stored of kept.messages) {
    if (stored.turn === undefined) {
      messages.push(stored);
      continue;
    }
    const { turn, ...message } = stored;
    turns.push({ ...turn, begins: messages.length });
    messages.push(message);
  }
  return { messages, turns };
}

/** The message to the model at the start of a turn. */
function promptOf({ entry: { content } }: OpenTurn): readonly Message[] {
  const said = content.kind === 'answers' ? undefined : turnMessage(content);
  return said === undefined ? [] : [said];
}

/**
 * The messages before the turn with this content: all, or those before the turn that it replaces.
 *
 * @throws ToolwrightError `ConversationNotReady` (526) if the history has no such turn.
 */
function messagesBefore(
  kept: Pick<KeptConversation, 'messages'>,
  content: InboxContent | { readonly replaces: string },
): readonly Message[] {
  const { messages: stored, turns } = historyOf(kept);
  const refused = new Set(turns.flatMap(({ filesRefused, begins }) => (filesRefused ? [begins] : [])));
  const messages = stored.map((message, index) => (refused.has(index) ? withoutFiles(message) : message));
  const replaces = 'replaces' in content ? content.replaces : undefined;
  if (replaces === undefined) return messages;
  const turn = turns.find(({ key }) => key === replaces);
  if (turn !== undefined) return messages.slice(0, turn.begins);
  const message = `The history has no turn that began with '${replaces}', so it cannot be replaced.`;
  throw new ToolwrightError('ConversationNotReady', message);
}

/** A message whose files would make every later request of the conversation fail, too. */
function withoutFiles(message: Message): Message {
  const { role, content } = message;
  if (role !== 'user' || typeof content === 'string') return message;
  const texts = content.map((part) => (isText(part) ? part : { type: 'text', text: FILE_LEFT_OUT }));
  return { ...message, content: texts };
}

const FILE_LEFT_OUT = '[A file of the user was left out, because the provider of the model refused it.]';

function isText(part: unknown): boolean {
  return isRecord(part) && part.type === 'text';
}

/** Statuses with which providers refuse the contents of a request. */
const CONTENT_REFUSED: readonly unknown[] = [undefined, 400, 413, 415, 422];

/** Whether the provider refused the first request of a turn, whose message has files. */
function areFilesRefused(error: unknown, messages: readonly Message[]): boolean {
  const cause = ToolwrightError.is(error) && error.name === 'ProviderFailed' ? error.cause : undefined;
  if (!ProviderError.is(cause) || cause.retryable || !CONTENT_REFUSED.includes(cause.status)) return false;
  const hasFiles = ({ content }: Message) => Array.isArray(content) && !content.every(isText);
  return messages.every(({ role }) => role === 'user') && messages.some(hasFiles);
}

/**
 * Checks that the turn that a prompt replaces exists; a prompt that was sent before may already have replaced it.
 *
 * @throws ToolwrightError `ConversationNotReady` (526).
 */
export function checkReplaced(
  kept: KeptConversation | undefined,
  { key, replaces }: { readonly key: string; readonly replaces: string },
): void {
  const { turn, inbox = [], messages = [] } = kept ?? {};
  const entries = [turn?.entry, ...inbox, ...historyOf({ messages }).turns];
  if (!entries.some((entry) => entry?.key === key)) messagesBefore({ messages }, { replaces });
}

/** The config for checking edited arguments and remembered approvals. */
type CheckConfig = Pick<Partial<ConversationsConfig>, 'tools' | 'stateSecret' | 'logger'>;

/** Answers before they enter a conversation. */
interface EnteringAnswers {
  readonly conversationId: string;
  readonly content: AnswersEntry['content'];
  readonly store: ConversationsStore;
  /** Without tools, the turn checks edited arguments itself. */
  readonly config: CheckConfig | ((turn: NextTurn) => CheckConfig | Promise<CheckConfig>);
}

/**
 * Refuses answers immediately if they could only be refused later; later changes are reported as `answers-refused`.
 *
 * @throws ToolwrightError `InvalidAnswer` (514), `RunNotAllowed` (523).
 */
export async function checkAnswers({
  conversationId,
  content: { answers, owner, answeredBy },
  store,
  config,
}: EnteringAnswers): Promise<void> {
  const kept = await store.conversations.read(conversationId);
  const turn = kept?.turn;
  const run = turn && (await store.load(turn.runId));
  if (kept === undefined || turn === undefined || run === undefined)
    throw new ToolwrightError(
      'InvalidAnswer',
      `Conversation '${conversationId}' is not waiting for an answer.`,
    );
  if (!isSameOwner(turn.entry.content.owner, owner))
    throw new ToolwrightError('RunNotAllowed', 'The answers were not accepted: the turn has another owner.');
  const ids = run.pending.map(({ id }) => id);
  const unknown = answers.flatMap((answer) => (ids.includes(answer?.id) ? [] : `'${answer?.id}'`));
  if (unknown.length > 0 || answers.length === 0) {
    const wrong =
      answers.length === 0
        ? 'No answer was given'
        : `The conversation is not waiting for ${unknown.join(', ')}`;
    const waits = [...new Set(ids)].map((id) => `'${id}'`).join(', ');
    throw new ToolwrightError('InvalidAnswer', `${wrong}; it is waiting for ${waits}.`);
  }
  // As the run would check them: their form, the schema of the question, and edited arguments.
  const messages = messagesBefore(kept, turn.entry.content);
  const of = withoutUndefined({ owner, conversationId });
  const trial = { answers, answeredBy, scope: of, isCertain: true, isTrial: true };
  let checked: CheckConfig = {};
  if (answers.some(needsApprover)) {
    const loading = (async () => (typeof config === 'function' ? config({ ...of, messages }) : config))();
    // If the application cannot load its tools now, the turn checks a plain approval.
    const needsTools = answers.some((answer) => 'arguments' in answer || 'remember' in answer);
    checked = await (needsTools ? loading : loading.catch((): CheckConfig => ({})));
  }
  try {
    await resumeWith({ ...checked, store }, run, trial);
  } catch (error) {
    // The process that takes the turn handles a state of another version.
    if (ToolwrightError.is(error) && error.name === 'InvalidState') return;
    await saveAskedAnew(store, error, checked.stateSecret);
    throw error;
  }
}

/**
 * Enters an operator's answers to a turn that waits. Their key names the first question, so that of several users only
 * the first one answers it; after a refused answer, another can be given. `check` throws if the run no longer waits.
 *
 * @throws ToolwrightError `InvalidAnswer` (514) if another answer was faster.
 */
export async function enterAnswers(
  { conversationId, content, store, runId }: Omit<EnteringAnswers, 'config'> & { readonly runId: string },
  check: () => Promise<void>,
): Promise<void> {
  const ids = content.answers.map((answer) => answer?.id);
  for (let count = 1; ; count += 1) {
    const kept = await store.conversations.read(conversationId);
    for (const { content: before } of kept?.inbox.filter(isAnswers) ?? []) {
      const same = before.answers.find((answer) => ids.includes(answer?.id));
      if (same === undefined) continue;
      const by = before.answeredBy === undefined ? '' : `, by ${JSON.stringify(before.answeredBy)}`;
      const message = `${runId} is not waiting for an answer to '${same.id}': it was already answered${by}`;
      throw new ToolwrightError('InvalidAnswer', message);
    }
    // After reading the inbox, because answers leave it when the run has them.
    await check();
    const key = `answer ${count} to ${ids[0]}`;
    if ((await store.conversations.enter({ conversationId, key, content }))?.isNew) return;
  }
}

/**
 * The event for the sender of answers, by their key: the turn continues with them, or they were `refused` because
 * they were wrong or too late.
 */
function answersJson(
  { key, content: { answers, answeredBy } }: AnswersEntry,
  refused?: { readonly error: unknown; readonly isLate: boolean },
): KeptEvent {
  if (refused !== undefined)
    return { type: 'answers-refused', key, isLate: refused.isLate, error: errorJson(refused.error) };
  const ids = answers.map(({ id }) => id);
  const given = answers.flatMap((answer) => ('reason' in answer ? [[answer.id, answer.reason]] : []));
  const reasons = given.length > 0 ? Object.fromEntries(given) : undefined;
  return plainJson({ type: 'answers-taken', key, ids, reasons, answeredBy }) as KeptEvent;
}

/** A stored conversation with the waits of its turn's run. */
export async function viewOf(kept: KeptConversation, store: CheckpointStore): Promise<ConversationView> {
  const { conversationId, owner, inbox, turns, turn, lastEvent } = kept;
  const { messages, turns: history } = historyOf(kept);
  const run = turn && (await store.load(turn.runId));
  const isWaiting = run !== undefined && !inbox.some(isAnswers);
  let status: ConversationView['status'] = turn !== undefined || inbox.length > 0 ? 'running' : 'idle';
  if (isWaiting && !kept.isAbortAsked) status = 'suspended';
  return withoutUndefined<ConversationView>({
    conversationId,
    owner,
    spent: addSpending(history.at(-1)?.spentSoFar, run?.spent),
    turn: turn && { ...turn, begins: messages.length },
    iteration: run && askingStep(run),
    status,
    messages: turn ? [...messages, ...promptOf(turn)] : messages,
    history,
    pending: run?.pending ?? [],
    inbox,
    turns,
    lastEvent,
  });
}
