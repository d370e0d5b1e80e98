import { once } from 'node:events';
import type { Answer, CallJournal, CallScope, PendingCall } from '../../core/contract/call.js';
import { CONVERSATION_LOG, type ConversationLog } from '../../core/contract/conversation-log.js';
import type { LLMProvider, Message } from '../../core/contract/llm-provider.js';
import type { CheckpointStore } from '../../core/contract/run-checkpoint.js';
import type { RunState } from '../../core/contract/run-state.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import type { Invocation } from '../../run/call/invocation.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { answerWait, approverOf, needsApprover, type WaitAnswer } from '../../run/call/waits.js';
import { keepsConversations } from '../../run/conversation/conversations-options.js';
import { checkAnswers, enterAnswers } from '../../run/conversation/stored-turns.js';
import type { ToolLoopResult } from '../../run/loop/events.js';
import type { ResumeConfig } from '../../run/loop/options.js';
import { resumeToolLoop, streamToolLoop } from '../../run/loop/run.js';
import { answerStoredRun, resumeStoredRun } from '../../run/loop/stored-run.js';
import { readArguments } from '../../tools/checking/read-arguments.js';
import type { InspectorOptions } from './options.js';
import { listsRuns } from './shown-runs.js';
import { type SeenCall, type SeenRun, TRIAL, type WatchedCalls, type WatchedRuns } from './watched.js';

/** An invalid request of the page, or a request for something that does not exist. */
export class PageFault extends Error {
  readonly statusCode: 400 | 404;

  constructor(message: string, statusCode: PageFault['statusCode'] = 400) {
    super(message);
    this.statusCode = statusCode;
  }
}

/** Who answers on the page, as calls record it. */
function answererOf({ answeredBy = { inspector: true } }: InspectorOptions): unknown {
  return answeredBy;
}

interface AnsweringParts {
  readonly registry: ToolRegistry;
  readonly options: InspectorOptions;
}

/**
 * An unknown person may be the owner of the run, so they cannot approve calls of tools with an `approver`.
 *
 * @throws ToolwrightError `RunNotAllowed` (523).
 */
function checkAnswerer(
  { registry, options }: AnsweringParts,
  { tool, approver }: Pick<PendingCall, 'tool' | 'approver'>,
): void {
  const required = approver ?? approverOf(registry.offered(tool)?.approval);
  if (options.answeredBy !== undefined || required === undefined) return;
  const message = `The call of '${tool}' can be approved here only if the inspector has the identity of the user: set answeredBy: { user: 'u1' } in its options, or --by. Nothing has run.`;
  throw new ToolwrightError('RunNotAllowed', message);
}

/** Where a run continues after the answer. */
export type GoesOn = 'here' | 'worker' | 'conversation';

interface WaitingRun {
  readonly runId: string;
  readonly owner: unknown;
  readonly model: string | undefined;
  readonly since: number;
  /** `process`: its state is this process's alone. */
  readonly place: 'process' | 'store';
  /** Empty if only its `Conversation` may answer. */
  readonly goesOn: readonly GoesOn[];
  readonly pending: readonly PendingCall[];
}

interface BoardParts extends AnsweringParts {
  readonly runs: WatchedRuns;
}

const MOST_LISTED = 100;

/** The waiting runs of this process and of the store. */
export class PendingBoard {
  readonly #parts: BoardParts;

  constructor(parts: BoardParts) {
    this.#parts = parts;
  }

  async list(): Promise<readonly WaitingRun[]> {
    const own = this.#parts.runs.list().filter(({ status }) => status === 'suspended');
    const { store } = this.#parts.options;
    // If the store has no `list`, only runs of this process can be found in it.
    const found = listsRuns(store)
      ? (await store.list({ status: 'suspended', limit: MOST_LISTED })).runs.map(
          async ({ runId, changedAt }) => this.#ofStore(await store.load(runId), changedAt),
        )
      : own.map(async ({ runId, run }) => this.#ofStore(await run.config.store?.load(runId), Date.now()));
    const stored = (await Promise.all(found)).flat();
    const storedIds = new Set(stored.map(({ runId }) => runId));
    const ofProcess = own.flatMap((seen): readonly WaitingRun[] => {
      const { runId, owner, model, result, spans } = seen;
      if (storedIds.has(runId) || result?.state === undefined) return [];
      const since = spans.findLast(({ kind }) => kind === 'wait')?.begin ?? seen.begin;
      const { pending = [] } = result;
      const goesOn: GoesOn[] = isHeldByConversation(seen) ? [] : ['here'];
      return [{ runId, owner, model, since, place: 'process', goesOn, pending }];
    });
    return [...ofProcess, ...stored];
  }

  /**
   * Answers a run. A run that continues here does so in the background.
   *
   * @throws PageFault if the run waits for nothing; ToolwrightError if the answers do not fit, or another process holds
   *   the run.
   */
  async answer(runId: string, answers: readonly Answer[], goesOn: GoesOn): Promise<void> {
    const waiting = (await this.list()).find((run) => run.runId === runId);
    if (waiting === undefined) throw new PageFault(`run '${runId}' is not waiting for an answer`);
    if (!waiting.goesOn.includes(goesOn))
      throw new PageFault(`run '${runId}' cannot be continued in this way`);
    for (const answer of answers) {
      const asked = waiting.pending.find(({ id }) => id === answer?.id);
      if (asked !== undefined && needsApprover(answer)) checkAnswerer(this.#parts, asked);
    }
    if (goesOn === 'here') return this.#resume(waiting, answers);
    const { registry, options } = this.#parts;
    const { store, stateSecret } = options;
    const { owner } = waiting;
    if (goesOn === 'conversation') {
      const conversationId = conversationIdOf(runId);
      if (!keepsConversations(store) || conversationId === undefined)
        throw new Error('there is no conversation');
      const by = withoutUndefined({ answeredBy: answererOf(options), owner });
      const content = { kind: 'answers', answers, ...by } as const;
      // Edits are checked with the tools of the process that takes the turn.
      const check = () => checkAnswers({ conversationId, content, store, config: {} });
      await enterAnswers({ runId, conversationId, content, store }, check);
      return;
    }
    await answerStoredRun({ store: store as CheckpointStore, runId }, answers, {
      answeredBy: answererOf(options),
      tools: registry,
      ...withoutUndefined({ stateSecret, owner }),
    });
  }

  async #ofStore(state: RunState | undefined, since: number): Promise<readonly WaitingRun[]> {
    if (state === undefined) return [];
    const { runs, options } = this.#parts;
    const { runId, owner, model, pending } = state;
    const seen = runs.get(runId);
    const goesOn: GoesOn[] = [];
    const { conversations: log } = Object(options.store) as { readonly conversations?: ConversationLog };
    const conversationId = conversationIdOf(runId);
    const hasTurns = conversationId !== undefined && CONVERSATION_LOG.accepts(log);
    const isOpenTurn = hasTurns && (await log?.read(conversationId))?.turn?.runId === runId;
    if (isOpenTurn) goesOn.push('conversation');
    else if (!isHeldByConversation(seen)) {
      if (seen !== undefined || options.provider !== undefined) goesOn.push('here');
      if (listsRuns(options.store)) goesOn.push('worker');
    }
    return [{ runId, owner, model, since, place: 'store', goesOn, pending }];
  }

  /** Continues a run here. The application may have the state of a run of this process, too, and is not notified. */
  async #resume({ runId, owner, place }: WaitingRun, answers: readonly Answer[]): Promise<void> {
    const { registry, runs, options } = this.#parts;
    const { provider, model, stateSecret, scopeOf: scopeOfOwner } = options;
    const seen = runs.get(runId);
    const configured = { ...withoutUndefined({ provider, model, stateSecret }), tools: registry };
    const { signal: _1, runId: _2, ...config } = seen?.run.config ?? (configured as ResumeConfig);
    const ofOwner = withoutUndefined({ owner });
    const scope = seen ? scopeOf(seen) : { ...(await scopeOfOwner?.(owner)), ...ofOwner };
    const given = { scope, answeredBy: answererOf(options) };
    if (place === 'process')
      return this.#begun(resumeToolLoop(config, seen?.result?.state, answers, given), runId);
    const store = config.store ?? options.store;
    if (store === undefined) throw new Error('there is no store');
    return this.#begun(resumeStoredRun(config, { store, runId }, answers, given), runId);
  }

  /** Waits until the run continues or has ended: then the answers were accepted. */
  async #begun(run: Promise<unknown>, runId: string): Promise<void> {
    const left = new AbortController();
    const { signal } = left;
    const goesOn = once(this.#parts.runs.events, `begin ${runId}`, { signal }).catch(() => {});
    await Promise.race([run, goesOn]).finally(() => left.abort());
  }
}

/** A `Conversation` holds its turn itself, and would repeat calls that were answered here. */
function isHeldByConversation(seen: SeenRun | undefined): boolean {
  return seen?.run.onStep !== undefined;
}

/** The original signal may be aborted already. */
function scopeOf({ run }: SeenRun): CallScope {
  const { signal: _1, callId: _2, ...scope } = run.scope;
  return scope;
}

function conversationIdOf(runId: string): string | undefined {
  return /^(.+)\.\d+$/s.exec(runId)?.[1];
}

export interface TrialCall {
  readonly tool: string;
  /** An object, or the text that a model would send. */
  readonly arguments: unknown;
  readonly scope: CallScope;
}

/** A suspended call. */
interface Waiting {
  readonly trial: TrialCall;
  readonly invocation: Extract<Invocation, { readonly status: 'suspended' }>;
}

interface TrialParts extends AnsweringParts {
  readonly calls: WatchedCalls;
}

/** Executes the calls of the page. */
export class TrialCalls {
  readonly #parts: TrialParts;
  /** By the key of the call. */
  readonly #waiting = new Map<string, Waiting>();
  #count = 0;

  constructor(parts: TrialParts) {
    this.#parts = parts;
  }

  async make(trial: TrialCall, journal?: CallJournal): Promise<SeenCall> {
    this.#count += 1;
    const id = `${TRIAL}${this.#count}`;
    const { tool, arguments: args, scope } = trial;
    const begin = performance.now();
    const read = readArguments(args);
    const readMs = performance.now() - begin;
    const request = { id, name: tool, arguments: args, read, journal };
    const { registry, calls } = this.#parts;
    const invocation = await registry.invoke(request, { ...scope, callId: id });
    calls.addRead(id, readMs);
    const seen = calls.find(id);
    if (seen === undefined) throw new Error(`the call of '${tool}' is no longer stored`);
    if (invocation.status === 'suspended') this.#waiting.set(seen.key, { trial, invocation });
    return seen;
  }

  isWaiting(key: string): boolean {
    return this.#waiting.has(key);
  }

  /**
   * Answers a waiting call of the page. Edited arguments are validated, and count as approved.
   *
   * @throws PageFault if the answer does not fit.
   */
  async answer(key: string, { arguments: edited, ...answer }: TrialAnswer): Promise<SeenCall> {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) throw new PageFault('this call is not waiting');
    if (edited === undefined) return this.#continueCall(key, waiting, answer);
    const again = await this.make({ ...waiting.trial, arguments: edited });
    this.#waiting.delete(key);
    const next = this.#waiting.get(again.key);
    return next === undefined ? again : this.#continueCall(again.key, next, answer);
  }

  async #continueCall(key: string, { trial, invocation }: Waiting, answer: WaitAnswer): Promise<SeenCall> {
    const { waits, journal } = invocation.suspension;
    const [wait] = waits;
    if (wait === undefined) throw new PageFault('this call is not waiting');
    const answered = answerWait({ wait, journal }, answer);
    if (!answered.ok) throw new PageFault(answered.problem);
    if (needsApprover(answer)) checkAnswerer(this.#parts, { tool: trial.tool, approver: wait.approver });
    this.#waiting.delete(key);
    const { kind, index } = wait;
    const given = [...(journal.given ?? []), { kind, index, answeredBy: answererOf(this.#parts.options) }];
    return this.make(trial, { ...answered.journal, given });
  }
}

/** An answer to a call of the page. */
export type TrialAnswer = WaitAnswer & { readonly arguments?: unknown };

interface ChatTurn {
  readonly asked: string;
  readonly runId: string;
  /** The number of messages before this turn. */
  readonly from: number;
}

/** A chat of the page, with the messages of completed runs. */
interface TrialChat {
  readonly id: string;
  readonly messages: readonly Message[];
  readonly turns: readonly ChatTurn[];
  readonly status: string;
  readonly error?: string | undefined;
}

interface ChatPrompt {
  readonly id: string;
  readonly text: string;
  readonly scope: CallScope;
  readonly model: { readonly provider: LLMProvider; readonly model: string };
}

const MAX_CHATS = 50;

/** Whether the last turn is running or waits for an answer. */
function isBusy({ status }: TrialChat): boolean {
  return status === 'running' || status === 'suspended';
}

/** The chats of the page. */
export class TrialChats {
  readonly #registry: ToolRegistry;
  readonly #runs: WatchedRuns;
  readonly #systemPrompt: string | undefined;
  readonly #chats = new Map<string, TrialChat>();
  readonly #running = new Map<string, AbortController>();

  constructor(registry: ToolRegistry, runs: WatchedRuns, systemPrompt: string | undefined) {
    this.#registry = registry;
    this.#runs = runs;
    this.#systemPrompt = systemPrompt;
    // Also for runs that were suspended and answered on the page.
    runs.events.on('end', ({ runId }: SeenRun, { status, messages, error }: ToolLoopResult) => {
      const chat = this.#chats.values().find(({ turns }) => turns.at(-1)?.runId === runId);
      if (chat === undefined) return;
      if (status === 'suspended') this.#save({ ...chat, status });
      else {
        const said = messages.filter(({ role }) => role !== 'system');
        this.#save({ ...chat, error: error?.message, status, messages: said });
      }
    });
  }

  get(id: string): TrialChat {
    return this.#chats.get(id) ?? { id, messages: [], turns: [], status: 'new' };
  }

  prompt({ id, text, scope, model }: ChatPrompt): TrialChat {
    const chat = this.get(id);
    if (isBusy(chat))
      throw new PageFault('the chat is busy: its run is still running or waits for an answer');
    const runId = crypto.randomUUID();
    const aborted = new AbortController();
    const system = this.#systemPrompt;
    const messages: readonly Message[] = [
      ...(system === undefined ? [] : [{ role: 'system', content: system } as const]),
      ...chat.messages,
      { role: 'user', content: text },
    ];
    const turns = [...chat.turns, { asked: text, runId, from: chat.messages.length }];
    const begun = { ...chat, turns, error: undefined, status: 'running' };
    this.#save(begun);
    this.#running.set(id, aborted);
    const config = { ...model, tools: this.#registry, runId, signal: aborted.signal };
    void this.#follow(id, streamToolLoop(config, messages, { ...scope, conversationId: id }));
    return begun;
  }

  /** Removes the last turn, and sends its prompt again. */
  retry({ id, ...others }: Omit<ChatPrompt, 'text'>): TrialChat {
    const chat = this.get(id);
    const last = chat.turns.at(-1);
    if (last === undefined) throw new PageFault('there is nothing to retry');
    if (!isBusy(chat))
      this.#save({ ...chat, turns: chat.turns.slice(0, -1), messages: chat.messages.slice(0, last.from) });
    return this.prompt({ id, text: last.asked, ...others });
  }

  /** Aborts the run, or gives it up if it is waiting. */
  abort(id: string): void {
    this.#running.get(id)?.abort(new Error('aborted in the inspector'));
    const chat = this.get(id);
    const runId = chat.turns.at(-1)?.runId;
    if (chat.status !== 'suspended' || runId === undefined) return;
    this.#runs.giveUp(runId);
    this.#save({ ...chat, status: 'aborted' });
  }

  close(): void {
    for (const id of this.#running.keys()) this.abort(id);
  }

  async #follow(id: string, run: ReturnType<typeof streamToolLoop>): Promise<void> {
    try {
      for await (const _ of run);
    } catch (error) {
      this.#save({ ...this.get(id), status: 'failed', error: errorMessage(error) });
    } finally {
      this.#running.delete(id);
    }
  }

  #save(chat: TrialChat): void {
    this.#chats.set(chat.id, chat);
    forgetOldest(this.#chats, MAX_CHATS);
  }
}
