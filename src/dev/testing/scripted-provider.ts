import {
  type FinishReason,
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type LLMStreamPart,
  REQUEST,
  type ReplyAttachment,
  type ToolCall,
  type Usage,
} from '../../core/contract/llm-provider.js';
import {
  checkArguments,
  type InvalidOption,
  invalidOptions,
  refuseOptions,
} from '../../core/errors/author-fault.js';
import { unlessAborted } from '../../core/kernel/async.js';
import { counted } from '../../core/kernel/counted.js';
import { ANY_VALUE, listOf, objectOf, optionTable } from '../../core/kernel/options.js';

/** A call in a script. Without `id` the framework assigns one; without `arguments` there are none. */
export interface ScriptedCall {
  readonly id?: string;
  readonly name: string;
  readonly arguments?: ToolCall['arguments'];
}

/** A reply in a script. */
export interface ScriptedReply {
  readonly content?: string;
  readonly toolCalls?: readonly ScriptedCall[];
  /** Default: `tool_calls` if there are calls, otherwise `stop`. */
  readonly finishReason?: FinishReason;
  readonly usage?: Usage;
  readonly attachments?: readonly ReplyAttachment[];
}

/** The answer to one request: a reply, an error to throw, or a function of the request that returns either. */
export type ScriptedStep =
  | ScriptedReply
  | Error
  | ((request: LLMRequest) => ScriptedReply | Error | Promise<ScriptedReply | Error>);

/** The model's data may be invalid, in order to test that; the fields of the script itself are validated. */
const CALL = objectOf<ScriptedCall>(
  { id: ANY_VALUE, name: ANY_VALUE, arguments: ANY_VALUE },
  {
    fix: "{ name: 'find_orders', arguments: { … } }",
    meant: {
      args: 'arguments: { … }',
      input: 'arguments: { … }',
      parameters: 'arguments: { … }',
      function: "name: '…', arguments: { … }",
    },
  },
);
const REPLY = optionTable<ScriptedReply>(
  'a scripted reply',
  {
    content: ANY_VALUE,
    toolCalls: listOf(CALL, "[{ name: 'find_orders', arguments: { … } }]"),
    finishReason: ANY_VALUE,
    usage: ANY_VALUE,
    attachments: ANY_VALUE,
  },
  { tool_calls: 'toolCalls: [{ name, arguments }]', text: "content: '…'" },
);

function replyFaults(reply: unknown, index: number): readonly InvalidOption[] {
  const where = `ScriptedProvider, reply #${index}`;
  return invalidOptions(reply, REPLY).map((fault) => ({ ...fault, where }));
}

/**
 * A scripted model for tests: one step per request, in order. It records its requests, throws if there are more
 * requests than steps, and `assertUsedUp()` throws if there were fewer.
 *
 * @example
 * ```ts
 * const provider = new ScriptedProvider([
 *   { toolCalls: [{ name: 'find_orders', arguments: { customerId: 'cus_1' } }] },
 *   { content: 'Two orders.' },
 * ]);
 * const run = await runToolLoop({ provider, model: 'test', tools }, [{ role: 'user', content: 'Orders?' }]);
 * provider.assertUsedUp();
 * expect(provider.requests[1]?.messages.at(-1)).toMatchObject({ role: 'tool' });
 * ```
 */
export class ScriptedProvider implements LLMProvider {
  readonly #steps: readonly ScriptedStep[];
  readonly #requests: LLMRequest[] = [];

  constructor(steps: readonly ScriptedStep[]) {
    if (!Array.isArray(steps)) {
      const problem = 'steps must be a list of replies';
      refuseOptions([
        { where: 'ScriptedProvider', option: 'steps', problem, fix: "[{ content: 'Hello' }, …]" },
      ]);
    }
    refuseOptions(
      steps.flatMap((step: unknown, index) =>
        typeof step === 'function' || step instanceof Error ? [] : replyFaults(step, index),
      ),
    );
    this.#steps = [...steps];
  }

  /** The requests so far, each with its messages at that time. */
  get requests(): readonly LLMRequest[] {
    return this.#requests;
  }

  /** Returns the next step's reply, or throws its error; throws the reason of an aborted signal. */
  async chat(request: LLMRequest): Promise<LLMResponse> {
    checkArguments({ of: 'ScriptedProvider.chat', given: { request }, rules: { request: REQUEST } });
    // A real client would not send the request, so it uses no step.
    request.signal?.throwIfAborted();
    const step = this.#steps[this.#requests.length];
    this.#requests.push({ ...request, messages: [...request.messages] });
    if (step === undefined) {
      const { length } = this.#requests;
      throw new Error(
        `there is no reply for request ${length}: the script has ${counted(this.#steps.length, 'scripted reply')}`,
      );
    }
    let reply: ScriptedReply | Error;
    if (typeof step === 'function') {
      // Ends a step on abort, as real clients drop their request then.
      const played = step(request);
      reply = await (request.signal ? unlessAborted(played, request.signal) : played);
    } else reply = step;
    if (reply instanceof Error) throw reply;
    if (typeof step === 'function') refuseOptions(replyFaults(reply, this.#requests.length - 1));
    const { content = '', toolCalls = [], usage, attachments } = reply;
    const finishReason = reply.finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop');
    return {
      content,
      toolCalls: toolCalls.map((call) => ({
        id: call.id ?? '',
        name: call.name,
        arguments: call.arguments ?? {},
      })),
      finishReason,
      ...(usage ? { usage } : {}),
      ...(attachments ? { attachments } : {}),
    };
  }

  /** The same as a stream, word by word. */
  async *stream(request: LLMRequest): AsyncGenerator<LLMStreamPart, void, undefined> {
    const response = await this.chat(request);
    for (const text of response.content.match(/\s*\S+|\s+/g) ?? []) {
      request.signal?.throwIfAborted();
      yield { type: 'text-delta', text };
    }
    for (const attachment of response.attachments ?? []) yield { type: 'attachment', attachment };
    request.signal?.throwIfAborted();
    yield { type: 'response', response };
  }

  /** Throws if steps of the script were not used. */
  assertUsedUp(): void {
    const left = this.#steps.length - this.#requests.length;
    if (left > 0)
      throw new Error(`${left} of ${counted(this.#steps.length, 'scripted reply')} were not requested`);
  }
}
