import type { CallScope } from '../../core/contract/call.js';
import type { Message } from '../../core/contract/llm-provider.js';
import { isRecord } from '../../core/kernel/json.js';
import { FILLED_TEXT, type OptionRule } from '../../core/kernel/options.js';
import type { ToolLoopConfig } from '../loop/options.js';

/** The config of a `Conversation`: the config of its runs, and settings that stay the same from turn to turn. */
export interface ConversationConfig extends Omit<ToolLoopConfig, 'checkpoint' | 'leaseMs' | 'runId'> {
  /** Added before the history in each request; not part of `messages`. */
  readonly systemPrompt?: string;
  /** Also the `conversationId` of tool contexts, which identifies its work. Default: a UUID. */
  readonly id?: string;
  /** Earlier messages. A call without an answer is answered with an error. */
  readonly messages?: readonly Message[];
  /** The scope of every turn. `conversationId` is the conversation's own. */
  readonly scope?: CallScope;
}

/** The settings of a conversation that can be changed between turns; absent settings do not change. */
export interface ConversationChanges
  extends Partial<Pick<ConversationConfig, 'provider' | 'model' | 'tools'>> {
  /** `''`: removes it. */
  readonly systemPrompt?: string;
}

/** Options of one turn. */
export interface TurnOptions {
  /** Aborts the turn. A prompt that is still waiting is withdrawn and leaves no trace. */
  readonly signal?: AbortSignal;
  /** Overrides the conversation's scope, also for work that this turn starts. */
  readonly scope?: CallScope;
}

/** Options of answers. */
export interface AnswerOptions extends TurnOptions {
  /** Who answered, if not the owner of the run: any JSON. It is recorded with the calls. */
  readonly answeredBy?: unknown;
}

/** Options of `idle`. */
export interface IdleOptions {
  /** Also waits for work that tools have started, and the turns of its completions. */
  readonly tasks?: boolean;
}

/** The rule for the content of a prompt. */
export const CONTENT: OptionRule = {
  accepts: (value) => {
    if (!Array.isArray(value)) return FILLED_TEXT.accepts(value);
    let saysSomething = false;
    for (const part of value) {
      if (!isRecord(part) || typeof part.type !== 'string') return false;
      // Providers accept parts of unknown types, but a part with only a type is never valid.
      const isValid = part.type === 'text' ? typeof part.text === 'string' : Object.keys(part).length > 1;
      if (!isValid) return false;
      saysSomething ||= part.type !== 'text' || FILLED_TEXT.accepts(part.text);
    }
    return saysSomething;
  },
  fix: "a non-empty string, or a list of non-empty parts: [{ type: 'text', text: 'Hi' }]",
};
