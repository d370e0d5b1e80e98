import { once } from 'node:events';
import type { Answer, CallScope, PendingCall } from '../../core/contract/call.js';
import { CONVERSATION_LOG, type ConversationLog } from '../../core/contract/conversation-log.js';
import type { CheckpointStore } from '../../core/contract/run-checkpoint.js';
import type { RunState } from '../../core/contract/run-state.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { approverOf, needsApprover } from '../../run/call/waits.js';
import { keepsConversations } from '../../run/conversation/conversations-options.js';
import { checkAnswers, enterAnswers } from '../../run/conversation/stored-turns.js';
import type { ResumeConfig } from '../../run/loop/options.js';
import { resumeToolLoop } from '../../run/loop/run.js';
import { answerStoredRun, resumeStoredRun } from '../../run/loop/stored-run.js';
import type { InspectorOptions } from './options.js';
import { listsRuns } from './shown-runs.js';
import type { SeenRun, WatchedRuns } from './watched-runs.js';

/** Recorded if `answeredBy` is not set. */
const SOMEBODY = { inspector: true };

/** The person who answers on the page. */
export class AnsweringPerson {
  readonly #registry: ToolRegistry;
  readonly #configured: unknown;

  constructor(registry: ToolRegistry, configured: unknown) {
    this.#registry = registry;
    this.#configured = configured;
  }

  /** The value that calls record. */
  get name(): unknown {
    return this.#configured ?? SOMEBODY;
  }

  /**
   * An unknown person may be the owner of the run, so they cannot approve calls of tools with an `approver`.
   *
   * @throws ToolwrightError `RunNotAllowed` (523).
   */
  check({ tool, approver }: Pick<PendingCall, 'tool' | 'approver'>): void {
    const now = approverOf(this.#registry.offered(tool)?.approval);
    if (this.#configured !== undefined || (approver ?? now) === undefined) return;
    const message = `The call of '${tool}' can be approved here only where the inspector knows who answers: answeredBy: { user: 'u1' } in its options, or --by. Nothing has run.`;
    throw new ToolwrightError('RunNotAllowed', message);
  }
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

interface BoardParts {
  readonly registry: ToolRegistry;
  readonly runs: WatchedRuns;
  readonly options: InspectorOptions;
  readonly person: AnsweringPerson;
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
   * @throws ToolwrightError if the answers do not fit, or another process holds the run.
   */
  async answer(runId: string, answers: readonly Answer[], goesOn: GoesOn): Promise<void> {
    const waiting = (await this.list()).find((run) => run.runId === runId);
    if (waiting === undefined) throw new Error(`run '${runId}' waits for nothing`);
    if (!waiting.goesOn.includes(goesOn)) throw new Error(`run '${runId}' cannot go on that way`);
    for (const answer of answers) {
      const asked = waiting.pending.find(({ id }) => id === answer?.id);
      if (asked !== undefined && needsApprover(answer)) this.#parts.person.check(asked);
    }
    if (goesOn === 'here') return this.#resume(waiting, answers);
    const { registry, options, person } = this.#parts;
    const { store, stateSecret } = options;
    const { owner } = waiting;
    if (goesOn === 'conversation') {
      const conversationId = conversationIdOf(runId);
      if (!keepsConversations(store) || conversationId === undefined)
        throw new Error('there is no conversation');
      const by = withoutUndefined({ answeredBy: person.name, owner });
      const content = { kind: 'answers', answers, ...by } as const;
      // Edits are checked with the tools of the process that takes the turn.
      const check = () => checkAnswers({ conversationId, content, store, config: {} });
      await enterAnswers({ runId, conversationId, content, store }, check);
      return;
    }
    await answerStoredRun({ store: store as CheckpointStore, runId }, answers, {
      answeredBy: person.name,
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
    const { registry, runs, options, person } = this.#parts;
    const { provider, model, stateSecret, scopeOf: scopeOfOwner } = options;
    const seen = runs.get(runId);
    const configured = { ...withoutUndefined({ provider, model, stateSecret }), tools: registry };
    const { signal: _1, runId: _2, ...config } = seen?.run.config ?? (configured as ResumeConfig);
    const ofOwner = withoutUndefined({ owner });
    const scope = seen ? scopeOf(seen) : { ...(await scopeOfOwner?.(owner)), ...ofOwner };
    const given = { scope, answeredBy: person.name };
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
