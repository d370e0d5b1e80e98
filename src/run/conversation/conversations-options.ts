import type { CallScope } from '../../core/contract/call.js';
import { CONVERSATION_LOG, type ConversationLog } from '../../core/contract/conversation-log.js';
import type { JobEngine } from '../../core/contract/job-engine.js';
import type { Message } from '../../core/contract/llm-provider.js';
import type { Logger } from '../../core/contract/ports.js';
import { CHECKPOINT_STORE, type CheckpointStore } from '../../core/contract/run-checkpoint.js';
import { omitFields } from '../../core/kernel/json.js';
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
  /** Added before the history in each request; not part of `messages`. */
  readonly systemPrompt?: string;
  /** When a running turn is stored; default: `step`. */
  readonly checkpoint?: 'step' | 'call';
}

/** The conversation and owner of a turn. */
export interface TurnOwner {
  readonly conversationId: string;
  /** The owner of its prompt. */
  readonly owner?: unknown;
}

/** A turn that is about to start or continue. */
export interface NextTurn extends TurnOwner {
  /** The messages before it: the same each time that the turn continues. */
  readonly messages: readonly Message[];
}

/** A store of conversations and their runs. */
export interface ConversationsStore extends CheckpointStore {
  readonly conversations: ConversationLog;
}

/** Options of {@link Conversations}. */
export interface ConversationsOptions {
  /** `PostgresRunStore` for several machines, `SqliteRunStore` for one machine, `MemoryRunStore` for one process. */
  readonly store: ConversationsStore;
  /** The config of turns. */
  readonly config:
    | ConversationsConfig
    | ((turn: NextTurn) => ConversationsConfig | Promise<ConversationsConfig>);
  /** Runs the work that turns start. The store contains its jobs. */
  readonly engine?: JobEngine;
  /** The tools of jobs, if `config` is a function; default: those of `config`. */
  readonly jobTools?: RunJobsOptions['tools'];
  /** Returns the scope of a turn or a job. */
  readonly scope?: (turn: TurnOwner) => CallScope | Promise<CallScope>;
  /** Whether this process takes turns, not only prompts and reads. Default: `true`. */
  readonly takesTurns?: boolean;
  /** The most turns that run here at the same time; default: 100. */
  readonly maxConcurrency?: number;
  /** The most jobs of each queue that run here at the same time; default: 10. `0`: none. */
  readonly jobConcurrency?: number;
  /** What happens to an interrupted call whose outcome is unknown; default: `ask`. */
  readonly onUnknown?: OnUnknown;
  /** Milliseconds until another process continues after a crash; default: 30,000. */
  readonly leaseMs?: number;
  /** Milliseconds between searches for abandoned conversations and due schedules; default: a third of the lease. */
  readonly pollMs?: number;
  readonly logger?: Logger;
}

/** Options of a prompt. */
export interface PromptOptions {
  /** A prompt with the same key is the same prompt. Default: a new key. */
  readonly key?: string;
  /** The owner of the turn: any JSON. It is stored with the turn, and required again for answers. */
  readonly owner?: unknown;
  /** Refuses the prompt if the conversation has another owner. Default: `false`. */
  readonly onlyOwner?: boolean;
  /**
   * Key of an earlier prompt in the history (`history` of a snapshot). Its turn and all later turns are removed when
   * this prompt's turn has ended, and the model does not receive them.
   */
  readonly replaces?: string;
}

/** Options to delete a conversation. */
export interface ConversationDeleteOptions extends Pick<PromptOptions, 'owner' | 'onlyOwner'> {
  /**
   * Removes all its data from the store. Default: `false`: it can no longer be listed, read or continued, and its
   * history and events stay in the database.
   */
  readonly erase?: boolean;
}

/** Options of answers. */
export interface AnswersOptions extends Pick<PromptOptions, 'key' | 'owner'> {
  /** Who answered, if not the owner: any JSON. */
  readonly answeredBy?: unknown;
}

/** Selects events. */
export interface EventsOptions {
  /** Number of the last event that the reader has, such as `Last-Event-ID`; default: 0, from the first stored event. */
  readonly after?: number;
  /** Number of an event after which the reading ends, even if events up to it are no longer stored. */
  readonly upTo?: number;
  /** Ends the reading. */
  readonly signal?: AbortSignal;
}

/** Options of the waiting. */
export interface ConversationIdleOptions {
  /** Ends the waiting; its reason is thrown. */
  readonly signal?: AbortSignal;
}

/** How conversations are closed. */
export interface ConversationsCloseOptions {
  /**
   * Milliseconds after which running calls of turns and jobs are aborted here; the turns are left to other processes.
   * Default: no limit.
   */
  readonly timeoutMs?: number;
}

/** Whether a store supports conversations and the runs of their turns. */
export function keepsConversations(store: unknown): store is ConversationsStore {
  return (
    CHECKPOINT_STORE.accepts(store) && CONVERSATION_LOG.accepts((store as ConversationsStore).conversations)
  );
}

const RUN_RULES = omitFields(LOOP_RULES, 'store', 'engine', 'signal', 'runId', 'leaseMs');

/** The rules for the config of turns. */
export const TURN_RULES = { ...RUN_RULES, checkpoint: oneOf('step', 'call'), systemPrompt: TEXT };

const BESIDE = 'next to config: new Conversations({ store, config, … })';

/** A misspelled guard must not be ignored: the result of a config function is checked at each turn. */
export const TURN_CONFIG = optionTable<ConversationsConfig>('the config of Conversations', TURN_RULES, {
  ...LOOP_ALIASES,
  store: `store ${BESIDE}`,
  engine: `engine ${BESIDE}`,
  leaseMs: `leaseMs ${BESIDE}`,
  scope: `scope ${BESIDE}`,
  onUnknown: `onUnknown ${BESIDE}`,
  runId: 'nothing: the id of a run is made of its conversation and its turn',
  signal: 'nothing; conversations.abort(conversationId) ends a turn',
  messages:
    'nothing; conversations.prompt(conversationId, content) adds a message, and the store has the history',
  id: 'nothing; the id is an argument of conversations.prompt(conversationId, content)',
});

/** The options of a run's config that apply to turns; the other options are separate. */
export function turnConfigOf(config: ToolLoopConfig): ConversationsConfig {
  const { store: _s, engine: _e, signal: _g, runId: _r, leaseMs: _l, checkpoint, ...given } = config;
  return checkpoint === 'call' ? { ...given, checkpoint } : given;
}

/** The rules for the options of taking turns. */
export const TAKING_RULES = {
  scope: protecting(FUNCTION),
  takesTurns: BOOLEAN,
  maxConcurrency: COUNT_LIMIT,
  jobConcurrency: WHOLE,
  onUnknown: oneOf('ask', 'error', 'rerun'),
  leaseMs: MILLISECONDS,
  pollMs: MILLISECONDS,
};
