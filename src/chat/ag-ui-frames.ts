import type { AgUiEvent, AgUiMessage } from './ag-ui-messages.js';
import { AgUiTeller } from './ag-ui-teller.js';
import type { AskedChat } from './chat-request.js';
import { refusalText } from './frames.js';
import { keptTurns, openPrompt, type PastTurn, pastTurns } from './past-turns.js';
import type { DescribeError } from './shown-calls.js';
import type { ReadEvent } from './turn-readings.js';

/** The protocol of which the events are. */
const PROTOCOL_VERSION = '1.0';

/** A run as its client calls it, and what the client has. */
interface AgUiRun {
  readonly threadId: string;
  readonly runId: string;
  readonly describeError: DescribeError;
  readonly messages: readonly AgUiMessage[];
  readonly state?: unknown;
  /** Calls whose results the client has: they are not told it. */
  readonly given?: readonly string[];
  /** Everything that was said is told first, for a client that has nothing. */
  readonly isWhole?: boolean;
}

/** The events of a turn as a run of AG-UI, in frames of server-sent events. */
export async function* agUiFrames(
  events: AsyncIterable<ReadEvent>,
  run: AgUiRun,
): AsyncGenerator<string, undefined> {
  const { threadId, runId } = run;
  const teller = new AgUiTeller(run);
  const given = new Set(run.given);
  yield runStarted(run);
  if (run.isWhole) yield frame({ type: 'MESSAGES_SNAPSHOT', messages: run.messages });
  let isOver = false;
  /** How it has ended, unless more comes: a turn that is told again may have waited, and gone on. */
  let end: readonly AgUiEvent[] = [];
  for await (const { event, isNews } of events) {
    const told = teller.tell(event);
    end = [];
    if (!isNews) continue;
    if (event.type === 'answers-refused') {
      isOver = true;
      yield runRefused(refusalText(event));
    } else if (event.type === 'turn-suspended' || event.type === 'turn-end') {
      isOver = true;
      end = told;
    } else for (const each of told) if (!isGiven(each, given)) yield frame(each);
  }
  for (const each of end)
    if (!isGiven(each, given))
      yield frame(each.type === 'RUN_FINISHED' ? { ...each, threadId, runId } : each);
  // Nothing was open.
  if (!isOver && run.isWhole)
    yield frame({ type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } });
}

/** The result of a call which the client has made itself. */
function isGiven({ type, toolCallId }: AgUiEvent, given: ReadonlySet<string>): boolean {
  return type === 'TOOL_CALL_RESULT' && given.has(String(toolCallId));
}

export function runStarted({ threadId, runId }: Pick<AgUiRun, 'threadId' | 'runId'>): string {
  return frame({ type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL_VERSION });
}

/** Nothing was done for the run. */
export function runRefused(message: string): string {
  return frame({ type: 'RUN_ERROR', message, code: 'refused' });
}

function frame(event: AgUiEvent): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

/** What was said in a chat before its open turn, and what that was begun with. */
export async function agUiHistory(asked: AskedChat): Promise<readonly AgUiMessage[]> {
  const turns = keptTurns(asked, await pastTurns(asked));
  return [...turns.flatMap(messagesOfTurn), ...promptMessage(openPrompt(asked))];
}

function messagesOfTurn(turn: PastTurn): readonly AgUiMessage[] {
  const teller = new AgUiTeller({ describeError: () => '', messages: [] });
  for (const event of turn.events) teller.tell(event);
  const said = turn.events.length > 0 ? teller.messages : textsOf(turn);
  return [...promptMessage(turn), ...said];
}

/** What is left of a turn whose events are gone. Results of tools are the model's: some are not for the user. */
function textsOf({ number, messages }: PastTurn): readonly AgUiMessage[] {
  return messages.flatMap(({ role, content }, index) =>
    role === 'assistant' && content ? [{ id: `turn-${number}.${index}`, role, content }] : [],
  );
}

function promptMessage({ prompt }: Pick<PastTurn, 'prompt'>): readonly AgUiMessage[] {
  if (prompt === undefined) return [];
  const { id, content } = prompt;
  return [{ id, role: 'user', content: typeof content === 'string' ? content : textOf(content) }];
}

function textOf(content: unknown): string {
  const parts = Array.isArray(content) ? (content as readonly { readonly text?: unknown }[]) : [];
  return parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])).join('\n');
}
