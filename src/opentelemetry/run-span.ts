import type { Attributes, Context, Counter } from '@opentelemetry/api';
import type { LLMRequest, LLMResponse, Usage } from '../contract/llm-provider.js';
import type { RequestTrace, TracedRequest, TracedRequestEnd } from '../contract/telemetry.js';
import { ContentWriter, type RecordedContent } from './content.js';
import {
  COMMON,
  EXCEPTION,
  type Failure,
  GEN_AI,
  given,
  OpenSpan,
  OWN,
  type Recorder,
  typeOfError,
} from './spans.js';

/** How requests are recorded. */
interface RequestSpanOptions {
  readonly content: RecordedContent;
  /** Default: what is active. */
  readonly parent?: Context | undefined;
}

/** Contents of a request and its reply, as attributes. */
type RequestContents = Readonly<Record<string, string>>;

/** `chat {model}`: one request to a model, with the times that it is made again. */
export class RequestSpan extends OpenSpan<TracedRequestEnd> implements RequestTrace {
  readonly #metricAttributes: Attributes;
  readonly #writer: ContentWriter | undefined;
  readonly #isStreamed: boolean;
  #sent: LLMRequest | undefined;
  #reply: LLMResponse | undefined;
  #firstPart: number | undefined;
  #lastPart: number | undefined;

  constructor(
    recorder: Recorder,
    { provider, request, isStreamed, redaction }: TracedRequest,
    { content, parent }: RequestSpanOptions,
  ) {
    const { model } = request;
    const identity = provider.identity?.(model);
    const about = given({
      [GEN_AI.operation]: 'chat',
      [GEN_AI.provider]: identity?.name ?? 'unknown',
      [GEN_AI.requestModel]: model,
      [COMMON.serverAddress]: identity?.address,
      [COMMON.serverPort]: identity?.port,
    });
    super(recorder, {
      name: `chat ${model}`,
      kind: recorder.api.SpanKind.CLIENT,
      attributes: about,
      parent,
    });
    this.#metricAttributes = about;
    this.#isStreamed = isStreamed;
    this.#writer = content.messages && redaction ? new ContentWriter(redaction) : undefined;
    if (!this.span.isRecording()) return;
    this.span.setAttributes(requestAttributes(request, isStreamed));
  }

  /** Written at the end: of a request that is made again, what went out last is told. */
  sent(request: LLMRequest): void {
    if (!this.span.isRecording()) return;
    const { maxOutputTokens } = request;
    if (maxOutputTokens !== undefined) this.span.setAttribute(GEN_AI.maxTokens, maxOutputTokens);
    if (this.#writer !== undefined) this.#sent = request;
  }

  /** What went out, and came. */
  get contents(): RequestContents | undefined {
    const { messages, tools = [] } = this.#sent ?? {};
    const writer = this.#writer;
    if (writer === undefined || messages === undefined) return undefined;
    return {
      [GEN_AI.inputMessages]: writer.input(messages),
      ...(tools.length > 0 ? { [GEN_AI.toolDefinitions]: writer.definitions(tools) } : {}),
      ...(this.#reply === undefined ? {} : { [GEN_AI.outputMessages]: writer.output(this.#reply) }),
    };
  }

  part(): void {
    const now = this.seconds;
    this.#firstPart ??= now;
    if (this.#lastPart !== undefined)
      this.recorder.instruments.timePerChunk.record(
        now - this.#lastPart,
        this.#metricAttributes,
        this.context,
      );
    this.#lastPart = now;
  }

  protected conclude(end: TracedRequestEnd, seconds: number): Failure | undefined {
    const failure = failureOf(end);
    const { inferenceDuration, timeToFirstChunk } = this.recorder.instruments;
    const attributes = this.#metricAttributes;
    const outcome = failure === undefined ? attributes : { ...attributes, [COMMON.errorType]: failure.type };
    inferenceDuration.record(seconds, outcome, this.context);
    if (this.#isStreamed && this.#firstPart !== undefined)
      timeToFirstChunk.record(this.#firstPart, attributes, this.context);
    if (end.how === 'replied') this.#count(end.response.usage, end.cost);
    if (this.span.isRecording()) this.#describe(end);
    return failure;
  }

  #describe(end: TracedRequestEnd): void {
    if (this.#firstPart !== undefined) this.span.setAttribute(GEN_AI.firstChunk, this.#firstPart);
    if (end.how === 'replied') {
      this.#reply = end.response;
      this.span.setAttributes(responseAttributes(end.response));
      this.span.setAttributes(given({ [OWN.requestCost]: end.cost }));
    } else this.span.setAttribute(GEN_AI.finishReasons, ['error']);
    this.span.setAttributes(this.contents ?? {});
  }

  #count(usage: Usage | undefined, cost: number | undefined): void {
    const { instruments } = this.recorder;
    const about = this.#metricAttributes;
    if (cost) instruments.inferenceCost.add(cost, about, this.context);
    if (usage === undefined) return;
    // Providers tell of all tokens together.
    const counted = { ...about, [GEN_AI.modality]: 'unknown' };
    const count = (counter: Counter, tokens: number | undefined) =>
      tokens ? counter.add(tokens, counted, this.context) : undefined;
    const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage;
    count(instruments.inputTokens, inputTokens);
    count(instruments.outputTokens, outputTokens);
    count(instruments.cacheRead, cacheReadTokens);
    count(instruments.cacheWrite, cacheWriteTokens);
    count(instruments.reasoning, reasoningTokens);
    instruments.inputPerRequest.record(inputTokens, about, this.context);
    instruments.outputPerRequest.record(outputTokens, about, this.context);
  }
}

/** Provider errors have messages that repeat what was sent: only the type is told. */
function failureOf(end: TracedRequestEnd): Failure | undefined {
  if (end.how === 'replied') return undefined;
  if (end.how === 'aborted') return { type: 'aborted' };
  return { type: typeOfError(end.error), event: EXCEPTION.request };
}

/** What a request says of itself: options go by the names that most providers have for them. */
function requestAttributes(
  { options, metadata, responseFormat }: LLMRequest,
  isStreamed: boolean,
): Attributes {
  const number = (...names: readonly string[]) => firstOf(options, names, isNumber);
  const seed = number('seed');
  const choices = number('n');
  const { stop = options.stop_sequences ?? options.stopSequences } = options;
  const form = responseFormat?.type === 'json' ? 'json' : undefined;
  return given({
    [GEN_AI.stream]: isStreamed ? true : undefined,
    [GEN_AI.conversation]: metadata?.conversationId,
    [GEN_AI.outputType]: form ?? (responseFormat?.type === 'text' ? 'text' : undefined),
    [GEN_AI.maxTokens]: number('max_tokens', 'max_completion_tokens', 'max_output_tokens', 'maxOutputTokens'),
    [GEN_AI.temperature]: number('temperature'),
    [GEN_AI.topP]: number('top_p', 'topP'),
    [GEN_AI.topK]: number('top_k', 'topK'),
    [GEN_AI.seed]: seed,
    [GEN_AI.frequencyPenalty]: number('frequency_penalty', 'frequencyPenalty'),
    [GEN_AI.presencePenalty]: number('presence_penalty', 'presencePenalty'),
    [GEN_AI.choices]: choices === 1 ? undefined : choices,
    [GEN_AI.stopSequences]: typeof stop === 'string' ? [stop] : isTexts(stop) ? [...stop] : undefined,
    [GEN_AI.reasoningLevel]: reasoningLevel(options),
    [GEN_AI.previousResponse]: firstOf(options, ['previous_response_id'], isText),
  });
}

function reasoningLevel(options: LLMRequest['options']): string | undefined {
  const { reasoning } = options;
  const effort = (reasoning as { readonly effort?: unknown } | undefined | null)?.effort;
  return isText(effort) ? effort : firstOf(options, ['reasoning_effort', 'reasoningEffort'], isText);
}

function firstOf<Value>(
  options: LLMRequest['options'],
  names: readonly string[],
  is: (value: unknown) => value is Value,
): Value | undefined {
  for (const name of names) {
    const value = options[name];
    if (is(value)) return value;
  }
  return undefined;
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(isText);
}

function responseAttributes({ finishReason, rawFinishReason, usage, origin }: LLMResponse): Attributes {
  return given({
    [GEN_AI.responseId]: origin?.id,
    [GEN_AI.responseModel]: origin?.model,
    [GEN_AI.finishReasons]: [rawFinishReason ?? WORDS[finishReason] ?? finishReason],
    [GEN_AI.inputTokens]: usage?.inputTokens,
    [GEN_AI.outputTokens]: usage?.outputTokens,
    [GEN_AI.cacheRead]: usage?.cacheReadTokens,
    [GEN_AI.cacheWrite]: usage?.cacheWriteTokens,
    [GEN_AI.reasoning]: usage?.reasoningTokens,
  });
}

/** The word of the conventions for it. */
const WORDS: Readonly<Record<string, string>> = { tool_calls: 'tool_call' };
