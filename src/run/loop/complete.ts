import type { JsonObject, JsonSchema } from '../../core/contract/json-schema.js';
import {
  type FinishReason,
  type LLMProvider,
  type LLMRequest,
  type Message,
  MODEL,
  PROVIDER,
  type Usage,
} from '../../core/contract/llm-provider.js';
import { TELEMETRY, type Telemetry } from '../../core/contract/telemetry.js';
import { invalidOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { LIST, optionTable, RECORD, required, SIGNAL, TEXT } from '../../core/kernel/options.js';
import { readArguments } from '../../tools/checking/read-arguments.js';
import { toolToSchema } from '../call/tool-to-schema.js';
import { numberCalls } from './ask-model.js';
import { historyFaults } from './given-history.js';
import { SentMessages } from './messages.js';
import { askRecorded } from './request.js';

/** A tool for `complete`: only the parts that a model is offered. */
export interface BareTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
}

/** The request to the model. */
export interface CompletionRequest {
  readonly messages: readonly Message[];
  readonly systemPrompt?: string;
  readonly tools?: readonly BareTool[];
}

/** A block of a reply. */
export type CompletionBlock =
  | { readonly type: 'text'; readonly content: string }
  | {
      readonly type: 'toolCall';
      readonly toolCallId: string;
      readonly name: string;
      /** An object; the raw text if it is not a JSON object. */
      readonly arguments: JsonObject | string;
    };

/** A reply. */
export interface Completion {
  readonly content: readonly CompletionBlock[];
  readonly finishReason: FinishReason;
  readonly usage?: Usage;
}

/** The provider and model of the request. */
export interface CompletionModel {
  readonly provider: LLMProvider;
  readonly model: string;
  readonly llmOptions?: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
  /** Records the request: `openTelemetry()`. */
  readonly telemetry?: Telemetry;
}

const MODEL_OPTIONS = optionTable<CompletionModel>('complete', {
  provider: required(PROVIDER),
  model: required(MODEL),
  llmOptions: RECORD,
  signal: SIGNAL,
  telemetry: TELEMETRY,
});

const REQUEST = optionTable<CompletionRequest>('the request of complete', {
  messages: required(LIST),
  systemPrompt: TEXT,
  tools: LIST,
});

/**
 * Sends one request to a model and returns the reply with its calls; nothing is executed. A failed request is repeated
 * up to twice, as in a run.
 *
 * @throws InvalidOptionsError for invalid options; ToolwrightError `ProviderFailed` with the provider's error as
 * `cause`; on abort, the signal's reason.
 *
 * @example
 * ```ts
 * const { content } = await complete({ provider, model: 'gpt-5' }, { messages, tools: [search] });
 * const calls = content.filter((block) => block.type === 'toolCall');
 * ```
 */
export async function complete(model: CompletionModel, request: CompletionRequest): Promise<Completion> {
  refuseOptions([
    ...invalidOptions(model, MODEL_OPTIONS),
    ...invalidOptions(request, REQUEST),
    ...(Array.isArray(request?.messages) ? historyFaults(request.messages) : []),
  ]);
  const { messages, systemPrompt, tools = [] } = request;
  const { provider } = model;
  const sent = new SentMessages(messages, undefined).for(provider.itemKey?.(model.model));
  const asked: LLMRequest = withoutUndefined({
    model: model.model,
    messages: systemPrompt === undefined ? [...sent] : [{ role: 'system', content: systemPrompt }, ...sent],
    options: model.llmOptions ?? {},
    tools: tools.length > 0 ? tools.map(toolToSchema) : undefined,
    signal: model.signal,
  });
  const reply = await askRecorded(model.telemetry, { provider, request: asked });
  if (!reply.ok) throw reply.reason === 'failed' ? reply.error : model.signal?.reason;
  const { content, toolCalls, finishReason, usage } = reply.response;
  const calls = numberCalls(toolCalls, { messages }).map(({ id, name, arguments: given }) => {
    const read = readArguments(given);
    const args = read.ok ? read.value : given;
    return { type: 'toolCall' as const, toolCallId: id, name, arguments: args };
  });
  const text = content === '' ? [] : [{ type: 'text' as const, content }];
  return { content: [...text, ...calls], finishReason, usage };
}
