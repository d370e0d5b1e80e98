import type { Message, ResponseFormat, ToolChoice, Usage } from '../../core/contract/llm-provider.js';
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

/** The facts before a request is made. */
export interface StepContext {
  /** Number of the request in its run, from 1. */
  readonly step: number;
  /** The history so far. */
  readonly messages: readonly Message[];
  /** The usage of the requests so far. */
  readonly usage: Usage;
  /** The model of the run. */
  readonly model: string;
  readonly signal?: AbortSignal;
}

/** The settings of one request; absent settings are the run's. */
export interface StepSettings {
  readonly model?: string;
  /** Names of the offered tools, out of the run's. */
  readonly tools?: readonly string[];
  readonly toolChoice?: ToolChoice;
  readonly responseFormat?: ResponseFormat;
  /** Replaces the history for this request only; calls without answers and answers without calls are repaired. */
  readonly messages?: readonly Message[];
  readonly llmOptions?: Readonly<Record<string, unknown>>;
}

/** Returns the settings of the next request; `undefined` changes nothing. */
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
 * Selects the part of the history for the next request of a run. It receives the whole history each time; the history
 * itself does not change.
 */
export type CompactHistory = (
  messages: readonly Message[],
  context: Omit<StepContext, 'messages'>,
) => readonly Message[] | Promise<readonly Message[]>;

/**
 * Repairs a compacted history for a request: a call that lost its answer gets it again, and a call that never had an
 * answer is removed, as are answers without calls.
 *
 * @throws InvalidOptionsError (521) for a value that is not a history.
 */
export function compactedHistory(returned: readonly Message[], history: readonly Message[]): RepairedHistory {
  const where = 'what compactHistory returns';
  refuseOptions(historyFaults(returned, 'repair').map((fault) => ({ ...fault, where })));
  return repairHistory(returned, ({ id }, message) => {
    // Ids may occur several times in a history: a message that was not copied has the answers that follow it.
    const own = history.indexOf(message);
    const calls = (other: Message) =>
      other.role === 'assistant' && other.tool_calls?.some((call) => call.id === id);
    const from = own >= 0 ? own : history.findLastIndex(calls);
    if (from < 0) return undefined;
    for (const other of history.slice(from + 1)) {
      if (other.role !== 'tool') return undefined;
      if (other.tool_call_id === id) return other;
    }
    return undefined;
  });
}
