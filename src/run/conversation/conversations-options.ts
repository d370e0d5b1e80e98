import type { CallScope } from '../../core/contract/call.js';
import { CONVERSATION_LOG, type ConversationLog } from '../../core/contract/conversation-log.js';
import type { JobEngine } from '../../core/contract/job-engine.js';
import type { Message } from '../../core/contract/llm-provider.js';
import type { Logger } from '../../core/contract/ports.js';
import { CHECKPOINT_STORE, type CheckpointStore } from '../../core/contract/run-checkpoint.js';
import {
  BOOLEAN,
  COUNT_LIMIT,
  FUNCTION,
  MILLISECONDS,
  oneOf,
  optionTable,
  protecting,
  TEXT,
  WHOLE,
} from '../../core/kernel/options.js';
import type { OnUnknown } from '../call/invocation.js';
import type { RunJobsOptions } from '../jobs/run-jobs.js';
import { LOOP_ALIASES, LOOP_RULES, type ToolLoopConfig } from '../loop/options.js';

/** The config of the runs of conversations, without their owner and store. */
export interface ConversationsConfig
  extends Omit<ToolLoopConfig, 'store' | 'engine' | 'signal' | 'runId' | 'leaseMs' | 'checkpoint'> {
  /** Put before the history in each request, and no part of `messages`. */
  readonly systemPrompt?: string;
  /** When a turn is stored while it runs; default `step`. */
  readonly checkpoint?: 'step' | 'call';
}

/** Whose turn it is. */
export interface TurnOwner {
  readonly conversationId: string;
  /** As the prompt named it. */
  readonly owner?: unknown;
}

/** A turn that is about to run, or goes on. */
export interface NextTurn extends TurnOwner {
  /** The messages before it: the same whenever the turn goes on. */
  readonly messages: readonly Message[];
}

/** A store of conversations and their runs. */
export interface ConversationsStore extends CheckpointStore {
  readonly conversations: ConversationLog;
}

/** What {@link Conversations} are made from. */
export interface ConversationsOptions {
  /** `PostgresRunStore` where several machines share it, `SqliteRunStore` for one, `MemoryRunStore` for one process. */
  readonly store: ConversationsStore;
  /** How turns are run: the same for all, or for each conversation. */
  readonly config:
    | ConversationsConfig
    | ((turn: NextTurn) => ConversationsConfig | Promise<ConversationsConfig>);
  /** Does the work that turns start (`@Tool({ background: … })`), in any process; the store keeps its jobs. */
  readonly engine?: JobEngine;
  /** The tools of jobs, where `config` is a function; default: those of `config`. */
  readonly jobTools?: RunJobsOptions['tools'];
  /** The scope of a turn or a job, in the process that runs it: `data`, `container`, … */
  readonly scope?: (turn: TurnOwner) => CallScope | Promise<CallScope>;
  /** Whether this process takes turns; with `false` it only prompts and reads, and others do. Default true. */
  readonly takesTurns?: boolean;
  /** Conversations whose turns run here at the same time; default 16. */
  readonly maxConcurrency?: number;
  /** Jobs of each queue of the engine that run here at the same time; default 10. `0`: none. */
  readonly jobConcurrency?: number;
  /** What becomes of a call whose process died and whose outcome is unknown, as for `recoverRuns`; default `ask`. */
  readonly onUnknown?: OnUnknown;
  /** Milliseconds after which another process goes on with a conversation whose process died; default 30,000. */
  readonly leaseMs?: number;
  /** Milliseconds between two looks for conversations that were left, and for schedules; default: a third of the lease. */
  readonly pollMs?: number;
  readonly logger?: Logger;
}

/** What a prompt brings along. */
export interface PromptOptions {
  /** The same key means the same prompt: sent again, it changes nothing. Default: a new one. */
  readonly key?: string;
  /** On whose behalf, any JSON: kept with the turn, and needed again for answers. */
  readonly owner?: unknown;
  /** Refuses the prompt where the conversation has another owner, who is that of its first prompt. Default false. */
  readonly onlyOwner?: boolean;
  /**
   * Key of an earlier prompt in the history (`history` of a snapshot): its turn and all after it are removed when this
   * prompt's turn has ended, and the model is not shown them.
   */
  readonly replaces?: string;
}

/** How a conversation is deleted. */
export interface ConversationDeleteOptions extends Pick<PromptOptions, 'owner' | 'onlyOwner'> {
  /**
   * Removes all that the store has of it. Default `false`: it cannot be listed, read or continued, and its history and
   * events stay in the database.
   */
  readonly erase?: boolean;
}

/** What answers bring along. */
export interface AnswersOptions extends Pick<PromptOptions, 'key' | 'owner'> {
  /** Who answered, where that is not the owner: any JSON. */
  readonly answeredBy?: unknown;
}

/** Which events are read. */
export interface EventsOptions {
  /** Number of the last event that is known, such as `Last-Event-ID`; default 0: from the first that is kept. */
  readonly after?: number;
  /** Number of an event after which the reading ends; also where events up to it are no longer kept. */
  readonly upTo?: number;
  /** Ends the reading. */
  readonly signal?: AbortSignal;
}

/** How long is waited. */
export interface ConversationIdleOptions {
  /** Ends the waiting; its reason is thrown. */
  readonly signal?: AbortSignal;
}

/** How conversations are closed. */
export interface ConversationsCloseOptions {
  /**
   * Milliseconds after which the calls of turns and jobs that still run here are aborted, and the turns are left to other
   * processes. Default: no limit.
   */
  readonly timeoutMs?: number;
}

/** Whether a store keeps conversations, and the runs of their turns. */
export function keepsConversations(store: unknown): store is ConversationsStore {
  return (
    CHECKPOINT_STORE.accepts(store) && CONVERSATION_LOG.accepts((store as ConversationsStore).conversations)
  );
}

const { store: _1, engine: _2, signal: _3, runId: _4, leaseMs: _5, ...RUN_RULES } = LOOP_RULES;

/** What each option of the config of turns may be. */
export const TURN_RULES = { ...RUN_RULES, checkpoint: oneOf('step', 'call'), systemPrompt: TEXT };

const BESIDE = 'beside config: new Conversations({ store, config, … })';

/** No turn runs without a guard that its author believes in: what a function gives is checked at each turn. */
export const TURN_CONFIG = optionTable<ConversationsConfig>('the config of Conversations', TURN_RULES, {
  ...LOOP_ALIASES,
  store: `store ${BESIDE}`,
  engine: `engine ${BESIDE}`,
  leaseMs: `leaseMs ${BESIDE}`,
  scope: `scope ${BESIDE}`,
  onUnknown: `onUnknown ${BESIDE}`,
  runId: 'nothing: runs are called after their conversation and their turn',
  signal: 'nothing; a turn is ended with conversations.abort(conversationId)',
  messages:
    'nothing; conversations.prompt(conversationId, content) says more, and the store keeps what was said',
  id: 'nothing; a conversation is named where it is prompted: conversations.prompt(conversationId, content)',
});

/** What of the config of a run turns are run with; the rest stands beside it. */
export function turnConfigOf(config: ToolLoopConfig): ConversationsConfig {
  const { store: _s, engine: _e, signal: _g, runId: _r, leaseMs: _l, checkpoint, ...given } = config;
  return checkpoint === 'call' ? { ...given, checkpoint } : given;
}

/** What each option may be that says how turns are taken. */
export const TAKING_RULES = {
  scope: protecting(FUNCTION),
  takesTurns: BOOLEAN,
  maxConcurrency: COUNT_LIMIT,
  jobConcurrency: WHOLE,
  onUnknown: oneOf('ask', 'error', 'rerun'),
  leaseMs: MILLISECONDS,
  pollMs: MILLISECONDS,
};
