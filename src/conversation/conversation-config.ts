import type { CallScope } from '../contract/call-scope.js';
import type { Message } from '../contract/message.js';
import type { ToolLoopConfig } from '../loop/loop-config.js';

/** What a `Conversation` is made from: the config of its runs, and what stays the same from turn to turn. */
export interface ConversationConfig extends ToolLoopConfig {
  /** Put before the history in each request, and no part of `messages`. */
  readonly systemPrompt?: string;
  /** Also the `conversationId` that tools see, and that tells its work from that of others. Default: a UUID. */
  readonly id?: string;
  /** What was said before; every call in it must have its answer. */
  readonly messages?: readonly Message[];
  /** The surroundings of every turn; `conversationId` is the conversation's own. */
  readonly scope?: CallScope;
}

/** What one turn brings along. */
export interface TurnOptions {
  /** Aborts the turn. A prompt that is still waiting then is withdrawn, and leaves no trace. */
  readonly signal?: AbortSignal;
  /** Wins over the conversation's scope; also in the turns of completions of work that this turn starts. */
  readonly scope?: CallScope;
}

/** What answers bring along. */
export interface AnswerOptions extends TurnOptions {
  /** Who answered, where that is not the owner of the run: any JSON. It is recorded with the calls. */
  readonly answeredBy?: unknown;
}

/** What `idle` waits for. */
export interface IdleOptions {
  /** Also for the work that tools have started, and the turns that its completions lead to. */
  readonly tasks?: boolean;
}
