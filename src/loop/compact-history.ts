import type { AssistantMessage, Message, MessageToolCall, ToolMessage } from '../contract/llm-provider.js';
import { refuseOptions } from '../errors/author-fault.js';
import { historyFaults, type MendedHistory, mendHistory } from './given-history.js';
import type { StepContext } from './step-settings.js';

/**
 * Decides what of the history the next request of a run carries. It is given all of it, each time; the history
 * itself stays whole.
 */
export type CompactHistory = (
  messages: readonly Message[],
  context: Omit<StepContext, 'messages'>,
) => readonly Message[] | Promise<readonly Message[]>;

/**
 * What a request carries where `returned` was made out of a history: a call that lost its answer gets it again, and
 * goes where it never had one; answers without their calls go.
 *
 * @throws InvalidOptionsError (521) for what is no history.
 */
export function compactedHistory(returned: readonly Message[], history: readonly Message[]): MendedHistory {
  const where = 'what compactHistory returns';
  refuseOptions(historyFaults(returned, 'mend').map((fault) => ({ ...fault, where })));
  return mendHistory(returned, (call, message) => answerIn(history, message, call));
}

/** Ids may stand in a history several times: a message that was not copied has the answers that come after it. */
function answerIn(
  history: readonly Message[],
  message: AssistantMessage,
  { id }: MessageToolCall,
): ToolMessage | undefined {
  const own = history.indexOf(message);
  const from =
    own >= 0 ? own : history.findLastIndex((other) => callsOf(other).some((call) => call.id === id));
  if (from < 0) return undefined;
  for (const other of history.slice(from + 1)) {
    if (other.role !== 'tool') return undefined;
    if (other.tool_call_id === id) return other;
  }
  return undefined;
}

function callsOf(message: Message): readonly MessageToolCall[] {
  return message.role === 'assistant' ? (message.tool_calls ?? []) : [];
}
