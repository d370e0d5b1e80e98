import type {
  AssistantMessage,
  Message,
  MessageToolCall,
  ResponseFormat,
  ToolChoice,
  ToolMessage,
  Usage,
} from '../../core/contract/llm-provider.js';
import { refuseOptions } from '../../core/errors/author-fault.js';
import { isRecord } from '../../core/kernel/json.js';
import {
  either,
  FILLED_TEXT,
  LIST,
  listOf,
  type OptionRule,
  objectOf,
  oneOf,
  optionFaults,
  optionTable,
  RECORD,
  required,
} from '../../core/kernel/options.js';
import { historyFaults, type RepairedHistory, repairHistory } from './given-history.js';

/** What is known before a request is made. */
export interface StepContext {
  /** Number of the request in its run, from 1. */
  readonly step: number;
  /** The history so far. */
  readonly messages: readonly Message[];
  /** Of the requests so far. */
  readonly usage: Usage;
  /** The model that the run asks. */
  readonly model: string;
  readonly signal?: AbortSignal;
}

/** What one request is made with; what is left out is the run's. */
export interface StepSettings {
  readonly model?: string;
  /** Names of the tools that are offered, out of the run's. */
  readonly tools?: readonly string[];
  readonly toolChoice?: ToolChoice;
  readonly responseFormat?: ResponseFormat;
  /** In place of the history, for this request only; calls without answers and answers without calls are repaired. */
  readonly messages?: readonly Message[];
  readonly llmOptions?: Readonly<Record<string, unknown>>;
}

/** Decides what the next request of a run is made with; nothing leaves it as it would be. */
export type PrepareStep = (
  context: StepContext,
) => StepSettings | undefined | Promise<StepSettings | undefined>;

const TOOL = "'find_orders'";
const TOOL_CHOICE_FORM = objectOf<{ tool: string; tools: readonly string[]; mode: string }>(
  { tool: FILLED_TEXT, tools: listOf(FILLED_TEXT, `[${TOOL}]`), mode: oneOf('auto', 'required') },
  { fix: `'required', { tool: ${TOOL} }` },
);

export const TOOL_CHOICE: OptionRule = either(oneOf('auto', 'none', 'required'), {
  ...TOOL_CHOICE_FORM,
  accepts: (value) =>
    TOOL_CHOICE_FORM.accepts(value) && isRecord(value) && 'tool' in value !== 'tools' in value,
  schema: { ...TOOL_CHOICE_FORM.schema, oneOf: [{ required: ['tool'] }, { required: ['tools'] }] },
});

const RESPONSE_FORMAT = objectOf<{ type: string; schema: unknown; name: string }>(
  { type: required(oneOf('text', 'json')), schema: RECORD, name: FILLED_TEXT },
  { fix: "{ type: 'json', schema: { … } }" },
);

const STEP_SETTINGS = optionTable<StepSettings>('what prepareStep returns', {
  model: FILLED_TEXT,
  tools: listOf(FILLED_TEXT, `[${TOOL}]`),
  toolChoice: TOOL_CHOICE,
  responseFormat: RESPONSE_FORMAT,
  messages: LIST,
  llmOptions: RECORD,
});

/**
 * The settings of the run's `prepareStep` for its next request.
 *
 * @throws InvalidOptionsError (521) for invalid settings.
 */
export async function settingsOf(
  prepareStep: PrepareStep,
  context: StepContext,
): Promise<StepSettings | undefined> {
  const settings = await prepareStep(context);
  if (settings === undefined || settings === null) return undefined;
  const { messages } = settings;
  refuseOptions([
    ...optionFaults(settings, STEP_SETTINGS).map((fault) => ({ where: STEP_SETTINGS.of, ...fault })),
    ...(Array.isArray(messages) ? historyFaults(messages, 'repair') : []),
  ]);
  return messages === undefined ? settings : { ...settings, messages: repairHistory(messages).messages };
}

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
export function compactedHistory(returned: readonly Message[], history: readonly Message[]): RepairedHistory {
  const where = 'what compactHistory returns';
  refuseOptions(historyFaults(returned, 'repair').map((fault) => ({ ...fault, where })));
  return repairHistory(returned, (call, message) => answerIn(history, message, call));
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
