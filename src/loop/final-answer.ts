import type { Invoker } from '../call/invocation.js';
import { ToolRegistry } from '../call/tool-registry.js';
import { readArguments } from '../checking/read-arguments.js';
import type { CallRecord } from '../contract/call.js';
import type { JsonObject, JsonSchema, SchemaSource } from '../contract/json-schema.js';
import type { LLMProvider, Message, ResponseFormat, ToolCall, ToolSchema } from '../contract/llm-provider.js';
import { toDefinition } from '../discovery/define-tool.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { strictSchema } from '../schema/strict/strict-schema.js';

/** What the model calls to answer, where its provider has no format for replies. */
const NAME = 'final_answer';

const REQUEST = `Give your final answer now, by calling the tool '${NAME}' and nothing else.`;

/**
 * The final answer of a run as data of a schema. A provider that has a format for replies is asked for it; any other
 * model is offered one more tool, whose arguments are the answer.
 */
export class FinalAnswer {
  readonly #invoke: Invoker;
  readonly #definition: ToolSchema;
  readonly #schema: JsonSchema;
  /** Whether the last request asked for a text in its format, and not for a call. */
  #isFormat = false;

  /** @throws ToolDeclarationError for a schema that describes no object. */
  constructor(source: SchemaSource) {
    const description =
      'Gives the final answer and ends the conversation. Call it once, when all else is done.';
    const tool = toDefinition(
      { name: NAME, description, parameters: source, execute: () => 'Noted.' },
      { by: 'output of the loop’s config', wrong: [] },
    );
    const registry = new ToolRegistry().register(tool);
    this.#invoke = registry.invoker();
    [this.#definition] = registry.toProviderDefs() as [ToolSchema];
    this.#schema = tool.parameters;
  }

  /** What a request carries so that its reply can be the answer. */
  offer(
    provider: LLMProvider,
    model: string,
  ): { readonly tool: ToolSchema } | { readonly format: ResponseFormat } {
    this.#isFormat = provider.supportsResponseFormat?.(model) ?? false;
    if (!this.#isFormat) return { tool: this.#definition };
    const strict = strictSchema(this.#schema);
    return { format: { type: 'json', schema: strict.isStrict ? strict.schema : this.#schema, name: NAME } };
  }

  /** What a model is told whose text was no answer. */
  requestAfter({ result }: CallRecord): string {
    return this.#isFormat ? `${result.forLLM}\nSend the whole answer again, as JSON only.` : REQUEST;
  }

  /** The calls of a reply, of which those that are the answer have their record. */
  async answered<Call extends ToolCall>(calls: readonly Call[]): Promise<readonly Call[]> {
    return Promise.all(
      calls.map(async (call) => (call.name === NAME ? { ...call, record: await this.#record(call) } : call)),
    );
  }

  /** A text as the answer; a rejected record where it is not one. */
  read(text: string): Promise<CallRecord> {
    return this.#record({ id: NAME, name: NAME, arguments: this.#isFormat ? this.#restored(text) : text });
  }

  /** From the strict form, in which the text was asked for, to what the schema says. */
  #restored(text: string): ToolCall['arguments'] {
    const strict = strictSchema(this.#schema);
    const read = readArguments(text);
    return strict.isStrict && read.ok ? (strict.restore(read.value) as JsonObject) : text;
  }

  async #record(call: ToolCall): Promise<CallRecord> {
    const invocation = await this.#invoke(call, {});
    if (invocation.status !== 'suspended') return invocation.record;
    throw new TypeError('The final answer cannot wait.');
  }
}

/** What of a run has to do with its answer. */
interface AnsweringRun {
  readonly output: FinalAnswer | undefined;
  readonly toolCalls: readonly CallRecord[];
  readonly messages: Message[];
  isAnswerAsked: boolean;
}

/** How a run ends that was to give data. */
interface AnswerEnd {
  readonly status: 'completed' | 'failed';
  readonly content: string;
  readonly output?: unknown;
  readonly error?: Error;
}

/** The end of a run whose last calls gave the answer. */
export function endWithAnswer({ toolCalls }: AnsweringRun, calls: number): AnswerEnd | undefined {
  return toolCalls.slice(-calls).flatMap(endOf)[0];
}

function endOf({ name, status, arguments: answer }: CallRecord): readonly AnswerEnd[] {
  if (name !== NAME || status !== 'success') return [];
  return [{ status: 'completed', content: JSON.stringify(answer), output: answer }];
}

/**
 * What becomes of a run whose model has answered in text: the answer where it is one, otherwise the model is asked
 * once more.
 */
export async function answerFromText(
  run: AnsweringRun,
  final: FinalAnswer,
  text: string,
): Promise<AnswerEnd | undefined> {
  const record = await final.read(text);
  const [end] = endOf(record);
  if (end !== undefined) return { ...end, content: text };
  const { result } = record;
  if (run.isAnswerAsked) {
    const message = `The model gave no answer that fits the schema. ${result.forLLM}`;
    return { status: 'failed', content: text, error: new ToolwrightError('InvalidOutput', message) };
  }
  run.isAnswerAsked = true;
  run.messages.push({ role: 'user', content: final.requestAfter(record) });
  return undefined;
}
