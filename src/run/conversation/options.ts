import type { CallScope } from '../../core/contract/call.js';
import type { Message } from '../../core/contract/llm-provider.js';
import { isRecord } from '../../core/kernel/json.js';
import { FILLED_TEXT, type OptionRule } from '../../core/kernel/options.js';
import type { ToolLoopConfig } from '../loop/options.js';

/** What a `Conversation` is made from: the config of its runs, and what stays the same from turn to turn. */
export interface ConversationConfig extends Omit<ToolLoopConfig, 'checkpoint' | 'leaseMs' | 'runId'> {
  /** Put before the history in each request, and no part of `messages`. */
  readonly systemPrompt?: string;
  /** Also the `conversationId` that tools see, and that identifies its work. Default: a UUID. */
  readonly id?: string;
  /** What was said before; a call in it that has no answer is answered with an error. */
  readonly messages?: readonly Message[];
  /** The surroundings of every turn; `conversationId` is the conversation's own. */
  readonly scope?: CallScope;
}

/** What of a conversation can be changed between its turns; what is left out stays. */
export interface ConversationChanges
  extends Partial<Pick<ConversationConfig, 'provider' | 'model' | 'tools'>> {
  /** `''`: none any more. */
  readonly systemPrompt?: string;
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

/** What a prompt may be. */
export const CONTENT: OptionRule = {
  accepts: (value) =>
    FILLED_TEXT.accepts(value) || (Array.isArray(value) && value.every(isPart) && value.some(saysSomething)),
  fix: "a text that is not empty, or a list of parts that say something: [{ type: 'text', text: 'Hi' }]",
};

/** Providers take parts of types that nobody else knows; one that is nothing but a type says nothing to any of them. */
function isPart(part: unknown): boolean {
  if (!isRecord(part) || typeof part.type !== 'string') return false;
  return part.type === 'text' ? typeof part.text === 'string' : Object.keys(part).length > 1;
}

function saysSomething(part: { readonly type: string; readonly text?: string }): boolean {
  return part.type !== 'text' || FILLED_TEXT.accepts(part.text);
}
