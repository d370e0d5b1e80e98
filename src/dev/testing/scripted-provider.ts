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
import { ANY_VALUE, listOf, objectOf, optionTable } from '../../core/kernel/options.js';

/** A call in a script; without `id` the framework numbers it, without `arguments` there are none. */
export interface ScriptedCall {
  readonly id?: string;
  readonly name: string;
  readonly arguments?: ToolCall['arguments'];
}

/** One reply of a script. */
export interface ScriptedReply {
  readonly content?: string;
  readonly toolCalls?: readonly ScriptedCall[];
  /** Default: `tool_calls` where there are calls, otherwise `stop`. */
  readonly finishReason?: FinishReason;
  readonly usage?: Usage;
  readonly attachments?: readonly ReplyAttachment[];
}

/** What answers one request: a reply, an error to throw, or a function of the request that gives either. */
export type ScriptedStep =
  | ScriptedReply
  | Error
  | ((request: LLMRequest) => ScriptedReply | Error | Promise<ScriptedReply | Error>);

/** What a model says may be anything, for a test of what becomes of it; where it says it is to be right. */
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

function scriptFaults(steps: unknown): readonly InvalidOption[] {
  const where = 'ScriptedProvider';
  const fix = "[{ content: 'Hello' }, …]";
  if (!Array.isArray(steps))
    return [{ where, option: 'steps', problem: 'it was given no list of replies', fix }];
  return steps.flatMap((step: unknown, index) => {
    if (typeof step === 'function' || step instanceof Error) return [];
    return replyFaults(step, index);
  });
}

function replyFaults(reply: unknown, index: number): readonly InvalidOption[] {
  const where = `ScriptedProvider, reply #${index}`;
  return invalidOptions(reply, REPLY).map((fault) => ({ ...fault, where }));
}

/**
 * A model that says what a test wrote down: one step per request, in order. It keeps what it was asked,
 * throws where it is asked more than was written, and `assertUsedUp()` tells whether it was asked less.
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
    refuseOptions(scriptFaults(steps));
    this.#steps = [...steps];
  }

  /** The requests so far, each with the messages that it had when it was made. */
  get requests(): readonly LLMRequest[] {
    return this.#requests;
  }

  /** Gives the next step's reply, or throws its error; an aborted signal throws its reason. */
  async chat(request: LLMRequest): Promise<LLMResponse> {
    checkArguments({ of: 'ScriptedProvider.chat', given: { request }, rules: { request: REQUEST } });
    // As a real client would, which never sends the request; so it takes no step.
    request.signal?.throwIfAborted();
    const step = this.#steps[this.#requests.length];
    this.#requests.push({ ...request, messages: [...request.messages] });
    if (step === undefined) {
      const { length } = this.#requests;
      throw new Error(`request ${length} is beyond the script, which has ${countOf(this.#steps.length)}`);
    }
    const reply = typeof step === 'function' ? await play(step, request) : step;
    if (reply instanceof Error) throw reply;
    if (typeof step === 'function') refuseOptions(replyFaults(reply, this.#requests.length - 1));
    return toResponse(reply);
  }

  /** The same, with the content word by word first. */
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

  /** Throws where replies of the script were never asked for. */
  assertUsedUp(): void {
    const left = this.#steps.length - this.#requests.length;
    if (left > 0) throw new Error(`${left} of ${countOf(this.#steps.length)} were never asked for`);
  }
}

function toResponse(reply: ScriptedReply): LLMResponse {
  const { content = '', toolCalls = [], finishReason, usage, attachments } = reply;
  return {
    content,
    toolCalls: toolCalls.map((call) => ({
      id: call.id ?? '',
      name: call.name,
      arguments: call.arguments ?? {},
    })),
    finishReason: finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop'),
    ...(usage ? { usage } : {}),
    ...(attachments ? { attachments } : {}),
  };
}

/** A step that never ends must not outlive an abort: real clients drop their request then. */
async function play(
  step: Exclude<ScriptedStep, ScriptedReply | Error>,
  request: LLMRequest,
): Promise<ScriptedReply | Error> {
  return request.signal ? unlessAborted(step(request), request.signal) : step(request);
}

function countOf(replies: number): string {
  return replies === 1 ? '1 scripted reply' : `${replies} scripted replies`;
}
