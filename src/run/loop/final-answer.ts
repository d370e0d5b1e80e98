import type { CallRecord } from '../../core/contract/call.js';
import type { JsonObject, SchemaSource } from '../../core/contract/json-schema.js';
import type {
  LLMProvider,
  LLMResponse,
  Message,
  ResponseForm,
  ResponseFormat,
  ToolCall,
  ToolSchema,
} from '../../core/contract/llm-provider.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { refuseOptions } from '../../core/errors/author-fault.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isRecord } from '../../core/kernel/json.js';
import { readArguments } from '../../tools/checking/read-arguments.js';
import { toDefinition } from '../../tools/discovery/define-tool.js';
import { ToolRegistry } from '../call/tool-registry.js';
import { toolToSchema } from '../call/tool-to-schema.js';
import type { LoopEnd } from './events.js';
import { isTruncated } from './messages.js';
import type { Reveal } from './run-masks.js';

/** The tool that the model calls to answer, if its provider does not support response schemas. */
export const FINAL_ANSWER = 'final_answer';

const REQUEST = `Give your final answer now, by calling the tool '${FINAL_ANSWER}' and nothing else.`;
const REJECTED = `Validation failed for tool '${FINAL_ANSWER}':`;
const NO_OBJECT = 'The answer is not a JSON object.';

interface AnsweringRun {
  readonly toolCalls: readonly CallRecord[];
  readonly messages: Message[];
  isAnswerAsked: boolean;
}

/** The part of a request that makes its reply a possible answer: one of these. */
interface OfferedAnswer {
  readonly tool?: ToolSchema;
  readonly format?: ResponseFormat;
}

/**
 * The final answer of a run as data of a schema. If the provider supports response schemas, the request contains the
 * schema; otherwise the model is offered an additional tool, whose arguments are the answer.
 */
export class FinalAnswer {
  readonly #tool: ToolDefinition;
  readonly #registry: ToolRegistry;
  /** The form in which the last request asked for a text; `undefined` if it asked for a call. */
  #form: ResponseForm | undefined;
  readonly #reveal: Reveal | undefined;

  /**
   * `reveal` is applied before the check, as masks of arguments are replaced.
   *
   * @throws ToolDeclarationError for a schema that does not describe an object; InvalidOptionsError (521) if a tool of
   * the run has the name of the answer's tool.
   */
  constructor(source: SchemaSource, tools: ToolRegistry, reveal?: Reveal) {
    this.#reveal = reveal;
    if (tools.offered(FINAL_ANSWER) !== undefined)
      refuseOptions([
        {
          where: 'the config of the loop',
          option: 'output',
          problem: `a tool of the run is named '${FINAL_ANSWER}', which is the tool of the answer`,
          fix: 'another name for the tool',
        },
      ]);
    const description =
      'Gives the final answer and ends the conversation. Call it once, when all else is done.';
    this.#tool = toDefinition(
      { name: FINAL_ANSWER, description, parameters: source, execute: () => 'Noted.' },
      { by: 'output of the loop’s config', wrong: [] },
    );
    this.#registry = new ToolRegistry().register(this.#tool);
  }

  offer(provider: LLMProvider, model: string): OfferedAnswer {
    this.#form = undefined;
    if (provider.supportsResponseFormat?.(model) !== true) return { tool: toolToSchema(this.#tool) };
    const { parameters } = this.#tool;
    const form = provider.responseForm?.(parameters) ?? { schema: parameters, restore: (value) => value };
    if (!isRecord(form.schema) || typeof form.restore !== 'function')
      throw new TypeError('`responseForm` of the provider must return { schema, restore } or undefined');
    this.#form = form;
    return { format: { type: 'json', schema: form.schema, name: FINAL_ANSWER } };
  }

  /** The calls of a reply; those that are the answer get their record. */
  async answered<Call extends ToolCall>(calls: readonly Call[]): Promise<readonly Call[]> {
    return Promise.all(
      calls.map(async (call) =>
        call.name === FINAL_ANSWER ? { ...call, record: await this.#call(call.id, call.arguments) } : call,
      ),
    );
  }

  /**
   * The end of a run whose model has answered in text; if that is not a valid answer, the model is asked again once.
   */
  async endWithText(run: AnsweringRun, { content, finishReason }: LLMResponse): Promise<LoopEnd | undefined> {
    let problem = `The reply was cut off (${finishReason}). Send it again, shorter.`;
    if (!isTruncated(finishReason)) {
      let args: ToolCall['arguments'] = content;
      const read = readArguments(content);
      try {
        if (this.#form !== undefined && read.ok) args = this.#form.restore(read.value) as JsonObject;
      } catch (cause) {
        const message = `The provider could not convert the answer: ${errorMessage(cause)}`;
        return {
          status: 'failed',
          content,
          error: new ToolwrightError('ProviderFailed', message, { cause }),
        };
      }
      const record = await this.#call(FINAL_ANSWER, args);
      const [end] = endOf(record);
      if (end !== undefined) return { ...end, content };
      problem = record.result.forLLM;
      // The model was offered no tool.
      if (this.#form !== undefined)
        problem = read.ok ? problem.replace(REJECTED, 'The answer is not valid:') : NO_OBJECT;
    }
    if (run.isAnswerAsked) return { status: 'failed', content, error: noAnswer(problem) };
    run.isAnswerAsked = true;
    const request = this.#form ? `${problem}\nSend the whole answer again, as JSON only.` : REQUEST;
    run.messages.push({ role: 'user', content: request });
    return undefined;
  }

  /** The end with the answer as the schema outputs it, with its transforms. */
  async parsed(end: LoopEnd): Promise<LoopEnd> {
    if (end.output === undefined) return end;
    try {
      const hydrated = await this.#tool.hydrate?.(end.output as JsonObject);
      return hydrated?.ok ? { ...end, output: hydrated.value } : end;
    } catch (cause) {
      return { status: 'failed', content: end.content, error: noAnswer(errorMessage(cause)) };
    }
  }

  async #call(id: string, args: ToolCall['arguments']): Promise<CallRecord> {
    const given = { arguments: args };
    const answer = this.#reveal?.(given) ?? given;
    return (await this.#registry.invoke({ id, name: FINAL_ANSWER, ...answer })).record;
  }

  /** The error of a run whose retries are used up: another one if the last rejected call was of the answer's tool. */
  exhausted(error: ToolwrightError, records: readonly CallRecord[]): ToolwrightError {
    const last = records.find(({ result }) => result.error === error.cause);
    return last?.name === FINAL_ANSWER ? noAnswer(last.result.forLLM, error) : error;
  }

  /** The end of a run whose last calls gave the answer. */
  endWithCalls({ toolCalls }: AnsweringRun, calls: number): LoopEnd | undefined {
    return toolCalls.slice(-calls).flatMap(endOf)[0];
  }
}

function noAnswer(problem: string, cause?: ToolwrightError): ToolwrightError {
  const message = `The model gave no answer that fits the schema. ${problem}`;
  return new ToolwrightError('InvalidOutput', message, cause && { cause });
}

function endOf({ name, status, arguments: answer }: CallRecord): readonly LoopEnd[] {
  if (name !== FINAL_ANSWER || status !== 'success') return [];
  return [{ status: 'completed', content: JSON.stringify(answer), output: answer }];
}
