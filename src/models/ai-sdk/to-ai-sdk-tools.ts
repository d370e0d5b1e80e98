import type { JSONValue, LanguageModelV4ToolResultOutput } from '@ai-sdk/provider';
import {
  type CallScope,
  type CallStatus,
  SCOPE,
  scopeFields,
  type ToolPolicy,
} from '../../core/contract/call.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { Content } from '../../core/contract/tool-result.js';
import { checkArguments, checkOptions } from '../../core/errors/author-fault.js';
import { anySignal } from '../../core/kernel/async.js';
import { copyOfJson, isRecord, plainJson } from '../../core/kernel/json.js';
import {
  FUNCTION,
  instanceOf,
  MILLISECONDS,
  oneOf,
  optionTable,
  protecting,
} from '../../core/kernel/options.js';
import { decisionIn } from '../../run/call/allow.js';
import type { Invocation, InvokeOptions } from '../../run/call/invocation.js';
import { SILENT_LOGGER } from '../../run/call/log.js';
import { refuseUnknownScopes } from '../../run/call/required-scopes.js';
import { answerText } from '../../run/call/result-text.js';
import { ToolRegistry } from '../../run/call/tool-registry.js';
import { answerWait, approvalNeed } from '../../run/call/waits.js';
import { toOutput } from './to-prompt.js';

/** The AI SDK's information about a call that it makes. */
export interface AiSdkExecution {
  readonly toolCallId: string;
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly abortSignal?: AbortSignal;
  readonly context?: unknown;
}

/** A call with its output. */
interface ModelOutputOf {
  readonly toolCallId: string;
  readonly input: unknown;
  readonly output: unknown;
}

/**
 * A tool for `generateText` and `streamText`: an entry of their `ToolSet`. The type is declared here, because the
 * types of the package `ai` require browser types.
 */
export interface AiSdkTool {
  readonly description?: string;
  readonly strict?: boolean;
  readonly inputSchema: AiSdkSchema;
  readonly outputSchema?: AiSdkSchema;
  /** Absent if the client executes the tool. */
  readonly execute?: (
    input: unknown,
    of: AiSdkExecution,
  ) => AsyncIterable<AiSdkToolOutput> | Promise<AiSdkToolOutput>;
  readonly needsApproval?: (input: unknown, of: AiSdkExecution) => Promise<boolean>;
  readonly toModelOutput: (of: ModelOutputOf) => LanguageModelV4ToolResultOutput;
}

/**
 * JSON Schema that the AI SDK passes on unchanged. The registry checks and repairs the arguments, so the AI SDK does
 * not.
 */
export interface AiSdkSchema {
  readonly jsonSchema: JsonSchema;
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => { readonly value: unknown };
  };
}

/** Adds the marker of the AI SDK's `jsonSchema`; without it, the AI SDK would change the schema. */
function inputSchema(jsonSchema: JsonSchema): AiSdkSchema {
  const marked = { [Symbol.for('vercel.ai.schema')]: true, _type: undefined, validate: undefined };
  const validate = (value: unknown) => ({ value });
  return { ...marked, jsonSchema, '~standard': { version: 1, vendor: 'toolwright', validate } };
}

/** A provider's own tool, created by its package: `anthropic.tools.webSearch_20250305()`. */
export interface AiSdkProviderTool {
  readonly type: 'provider';
  readonly id: `${string}.${string}`;
  readonly args: Record<string, unknown>;
}

/** The output of a call in the AI SDK's results and streams; plain JSON. */
export interface AiSdkToolOutput {
  /** How the call ended; `progress` in preliminary results. */
  readonly status: CallStatus | 'progress';
  readonly isError: boolean;
  /** The text for the model. */
  readonly text: string;
  /** Images and files, which the model also receives. */
  readonly attachments?: Content;
  /** Text for the user, if the result has one and is not silent. */
  readonly forUser?: string;
  /** In a preliminary result: the tool's update. */
  readonly update?: unknown;
}

/** The output of a finished call, for the AI SDK. */
function writeOutput({ status, record, result }: Invocation): AiSdkToolOutput {
  const { content, silent, forUser, isError } = result;
  const attachments = content?.filter(({ type }) => type !== 'text') ?? [];
  return {
    status: status === 'suspended' ? status : record.status,
    isError,
    text: answerText(record),
    ...(attachments.length > 0 && { attachments }),
    ...(forUser && !silent && { forUser }),
  };
}

/** A call of the AI SDK, for scope functions. */
export interface AiSdkCall {
  readonly toolCallId: string;
  readonly tool: string;
  /** The value of the tool in `toolsContext` of `generateText`. */
  readonly context: unknown;
}

/** The scope of all calls, or a function that returns the scope of each call. */
export type AiSdkScope = CallScope | ((call: AiSdkCall) => CallScope | Promise<CallScope>);

/** Options of {@link toAiSdkTools}. */
export interface AiSdkToolsOptions extends Pick<InvokeOptions, 'policy' | 'toolTimeoutMs' | 'onAsyncResult'> {
  /**
   * How calls of tools with `approval` are approved. `response`: by a user's approval in the messages. `application`:
   * by the fact that the AI SDK executes the call, if your own `toolApproval` decides. Default: `response`.
   */
  readonly approvals?: 'response' | 'application';
}

const OPTIONS = optionTable<AiSdkToolsOptions>('toAiSdkTools', {
  policy: protecting(FUNCTION),
  toolTimeoutMs: MILLISECONDS,
  onAsyncResult: FUNCTION,
  approvals: protecting(oneOf('response', 'application')),
});

/**
 * The tools of a registry for `generateText`, `streamText` and the agents of the AI SDK 7. The registry reads, checks
 * and coerces arguments, and writes the error texts for the model; errors of a tool never end the run. Progress of
 * tools is streamed as preliminary results. Tools with `approval` use the approvals of the AI SDK.
 *
 * The result contains the tools that are registered now; call the function again after registering others. Throws
 * InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * import { anthropic } from '@ai-sdk/anthropic';
 * import { generateText, isStepCount } from 'ai';
 *
 * const { text } = await generateText({
 *   model: anthropic('claude-sonnet-5'),
 *   tools: toAiSdkTools(registry, { data: { userId } }),
 *   stopWhen: isStepCount(10),
 *   prompt: 'What have I ordered?',
 * });
 * ```
 */
export function toAiSdkTools(
  registry: ToolRegistry,
  scope: AiSdkScope = {},
  options: AiSdkToolsOptions = {},
): Record<string, AiSdkTool> {
  const rules = { registry: instanceOf(ToolRegistry, 'a ToolRegistry') };
  checkArguments({ of: 'toAiSdkTools', given: { registry }, rules });
  checkOptions(options, OPTIONS);
  if (typeof scope !== 'function') {
    checkOptions(scope, SCOPE);
    refuseUnknownScopes(registry.tools(), { scope, where: 'toAiSdkTools' });
  }
  const calls = new AiSdkCalls(registry, scope, options);
  const tools = registry
    .toProviderDefs()
    .map(({ function: { name, description, parameters } }): [string, AiSdkTool] => [
      name,
      {
        ...(description && { description }),
        inputSchema: inputSchema(parameters),
        ...calls.behaviourOf(name),
      },
    ]);
  return Object.fromEntries(tools);
}

/** A call of the AI SDK with its tool. */
interface Calling extends AiSdkExecution {
  readonly tool: string;
  readonly input: unknown;
}

class AiSdkCalls {
  readonly #invoking: InvokeOptions;
  readonly #approvals: AiSdkToolsOptions['approvals'];
  /** All of them decide about each call. */
  readonly #policies: readonly ToolPolicy[];

  constructor(
    private readonly registry: ToolRegistry,
    private readonly scope: AiSdkScope,
    { approvals, ...invoking }: AiSdkToolsOptions,
  ) {
    this.#invoking = invoking;
    this.#approvals = approvals;
    const { policy } = invoking;
    this.#policies = [...registry.policies, ...(policy ? [policy] : [])];
  }

  behaviourOf(tool: string): Omit<AiSdkTool, 'description' | 'inputSchema'> {
    const { approval, execution, ignoresContext, strict, output } = this.registry.offered(tool) ?? {};
    const mayNeedYes = approvalNeed(approval) !== false || this.#policies.length > 0;
    return {
      ...(strict !== undefined && { strict }),
      ...(mayNeedYes && {
        needsApproval: (input: unknown, of: AiSdkExecution) => this.#needsApproval({ ...of, input, tool }),
      }),
      // If the client executes the tool, its output has another form.
      toModelOutput: ({ output }) => {
        if (isRecord(output) && typeof output.text === 'string' && typeof output.isError === 'boolean') {
          const { text, isError, attachments } = output as unknown as AiSdkToolOutput;
          return toOutput(text, { parts: attachments, isError });
        }
        // A client's output of its own call is sent as JSON.
        return typeof output === 'string'
          ? { type: 'text', value: output }
          : { type: 'json', value: (plainJson(output) ?? null) as JSONValue };
      },
      ...(execution === 'client'
        ? { outputSchema: inputSchema(output ?? {}) }
        : {
            execute: (input: unknown, of: AiSdkExecution) =>
              // Without the context, the tool cannot report progress.
              ignoresContext
                ? this.#outputOf({ ...of, input, tool })
                : this.#outputsOf({ ...of, input, tool }),
          }),
    };
  }

  /** Runs the call up to the approval, without logging it: a call that cannot run anyway needs no approval. */
  async #needsApproval(call: Calling): Promise<boolean> {
    let isNeeded = false;
    const asking: ToolPolicy = async (request) => {
      for (const policy of this.#policies) {
        const decided = decisionIn(await policy(request));
        isNeeded ||= typeof decided === 'object';
        if (typeof decided === 'string') {
          isNeeded = false;
          return false;
        }
      }
      if (isNeeded) return false;
      const need = approvalNeed(request.tool.approval);
      try {
        isNeeded =
          typeof need === 'function' ? (await need(request.arguments, request.context)) !== false : need;
      } catch {
        // As in the call itself.
        isNeeded = true;
      }
      return false;
    };
    await this.registry.invoke(requestOf(call), await this.#scopeOf(call), {
      ...this.#invoking,
      policy: asking,
      logger: SILENT_LOGGER,
    });
    return isNeeded;
  }

  async #outputOf(call: Calling): Promise<AiSdkToolOutput> {
    return writeOutput(await this.#invoke(call, await this.#scopeOf(call)));
  }

  /** Yields the tool's progress, then its result. */
  async *#outputsOf(call: Calling): AsyncGenerator<AiSdkToolOutput, void, undefined> {
    const { onUpdate, ...scope } = await this.#scopeOf(call);
    const updates: unknown[] = [];
    let news = Promise.withResolvers<void>();
    let isRunning = true;
    const invoked = this.#invoke(call, {
      ...scope,
      onUpdate: (update, of) => {
        updates.push(update);
        news.resolve();
        return onUpdate?.(update, of);
      },
    }).finally(() => {
      isRunning = false;
      news.resolve();
    });
    while (isRunning) {
      await news.promise;
      news = Promise.withResolvers();
      for (const update of updates.splice(0))
        yield { status: 'progress', isError: false, text: '', update: plainJson(update) ?? null };
    }
    yield writeOutput(await invoked);
  }

  /** Makes the call; if it waits for an approval that was given, makes it again with the approval. */
  async #invoke(call: Calling, scope: CallScope): Promise<Invocation> {
    const first = await this.registry.invoke(requestOf(call), scope, this.#invoking);
    if (first.status !== 'suspended') return first;
    const { waits, journal } = first.suspension;
    const wait = waits.find(({ kind }) => kind === 'approval');
    const isApproved = this.#approvals === 'application' || hasApproval(call.messages, call.toolCallId);
    if (wait === undefined || !isApproved) return first;
    const answered = answerWait({ wait, journal }, { approved: true });
    if (!answered.ok) return first;
    return this.registry.invoke({ ...requestOf(call), journal: answered.journal }, scope, this.#invoking);
  }

  async #scopeOf({ toolCallId, tool, context, abortSignal }: Calling): Promise<CallScope> {
    const scope =
      typeof this.scope === 'function' ? await this.scope({ toolCallId, tool, context }) : this.scope;
    return { channel: 'ai-sdk', ...scopeFields(scope), signal: anySignal(scope.signal, abortSignal) };
  }
}

/** A method may change its arguments, but the AI SDK stores them in its messages. */
function requestOf({ toolCallId, tool, input }: Calling) {
  return { id: toolCallId, name: tool, arguments: copyOfJson(input) };
}

/** Whether a user approved a call in the last message. */
function hasApproval(messages: AiSdkExecution['messages'], toolCallId: string): boolean {
  const asked = new Set<unknown>();
  for (const part of messages.flatMap(partsOf))
    if (part.type === 'tool-approval-request' && part.toolCallId === toolCallId) asked.add(part.approvalId);
  const last = messages.at(-1);
  if (last?.role !== 'tool') return false;
  const response = partsOf(last).find(
    (part) => part.type === 'tool-approval-response' && asked.has(part.approvalId),
  );
  return response?.approved === true;
}

function partsOf({ content }: { readonly content: unknown }): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(content) ? content.filter(isRecord) : [];
}
