import type { JSONValue, LanguageModelV4ToolResultOutput } from '@ai-sdk/provider';
import { type CallScope, type CallStatus, SCOPE, type ToolPolicy } from '../../core/contract/call.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { Logger } from '../../core/contract/ports.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { Content } from '../../core/contract/tool-result.js';
import { checkArguments, checkOptions } from '../../core/errors/author-fault.js';
import { anySignal } from '../../core/kernel/async.js';
import { copyOfJson, isRecord, plainJson } from '../../core/kernel/json.js';
import {
  FUNCTION,
  instanceOf,
  MILLISECONDS,
  type OptionRule,
  oneOf,
  optionTable,
  protecting,
} from '../../core/kernel/options.js';
import type { Invocation, InvokeOptions } from '../../run/call/invocation.js';
import { refuseUnknownScopes } from '../../run/call/required-scopes.js';
import { answerText } from '../../run/call/result-text.js';
import { ToolRegistry } from '../../run/call/tool-registry.js';
import { answerWait, approvalNeed } from '../../run/call/waits.js';
import { toOutput } from './to-prompt.js';

/** What the AI SDK says of a call that it makes. */
export interface AiSdkExecution {
  readonly toolCallId: string;
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly abortSignal?: AbortSignal;
  readonly context?: unknown;
}

/** A call that has its output. */
interface ModelOutputOf {
  readonly toolCallId: string;
  readonly input: unknown;
  readonly output: unknown;
}

/**
 * A tool as `generateText` and `streamText` take it: an entry of their `ToolSet`. Its own type, because the types of
 * the package `ai` need those of a browser.
 */
export interface AiSdkTool {
  readonly description?: string;
  readonly strict?: boolean;
  readonly inputSchema: AiSdkSchema;
  readonly outputSchema?: AiSdkSchema;
  /** Nothing where the client executes it. */
  readonly execute?: (
    input: unknown,
    of: AiSdkExecution,
  ) => AsyncIterable<AiSdkToolOutput> | Promise<AiSdkToolOutput>;
  readonly needsApproval?: (input: unknown, of: AiSdkExecution) => Promise<boolean>;
  readonly toModelOutput: (of: ModelOutputOf) => LanguageModelV4ToolResultOutput;
}

/** JSON Schema that the AI SDK hands on as it is. It checks nothing: the registry does, which knows how to repair. */
export interface AiSdkSchema {
  readonly jsonSchema: JsonSchema;
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => { readonly value: unknown };
  };
}

/** The schema with the mark of what `jsonSchema` of the AI SDK makes; only by that it is left as it is. */
function inputSchema(jsonSchema: JsonSchema): AiSdkSchema {
  const marked = { [Symbol.for('vercel.ai.schema')]: true, _type: undefined, validate: undefined };
  const validate = (value: unknown) => ({ value });
  return { ...marked, jsonSchema, '~standard': { version: 1, vendor: 'toolwright', validate } };
}

/** A tool of the provider's own, as its package makes it: `anthropic.tools.webSearch_20250305()`. */
export interface AiSdkProviderTool {
  readonly type: 'provider';
  readonly id: `${string}.${string}`;
  readonly args: Record<string, unknown>;
}

/** What a call gives to whoever reads the AI SDK's results and streams; plain JSON. */
export interface AiSdkToolOutput {
  /** How the call ended; `progress` in preliminary results. */
  readonly status: CallStatus | 'progress';
  readonly isError: boolean;
  /** What the model gets. */
  readonly text: string;
  /** Images and files, which the model gets too. */
  readonly attachments?: Content;
  /** Text for the user, where the result has one and is not silent. */
  readonly forUser?: string;
  /** Of a preliminary result: what the tool reported. */
  readonly update?: unknown;
}

/** How a call ended, for the AI SDK. */
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

/** An output as the model gets it; one that a client made of its own call as JSON. */
function modelOutput(output: unknown): LanguageModelV4ToolResultOutput {
  if (!isRecord(output) || typeof output.text !== 'string' || typeof output.isError !== 'boolean')
    return typeof output === 'string'
      ? { type: 'text', value: output }
      : { type: 'json', value: (plainJson(output) ?? null) as JSONValue };
  const { text, isError, attachments } = output as unknown as AiSdkToolOutput;
  return toOutput(text, { parts: attachments, isError });
}

/** A call that the AI SDK makes, as a scope may depend on it. */
export interface AiSdkCall {
  readonly toolCallId: string;
  readonly tool: string;
  /** What `toolsContext` of `generateText` has for the tool. */
  readonly context: unknown;
}

/** The surroundings of the calls, or what gives those of each. */
export type AiSdkScope = CallScope | ((call: AiSdkCall) => CallScope | Promise<CallScope>);

/** Options of {@link toAiSdkTools}. */
export interface AiSdkToolsOptions extends Pick<InvokeOptions, 'policy' | 'toolTimeoutMs' | 'onAsyncResult'> {
  /**
   * What counts as the yes that a tool with `approval` needs: `response`, a person's in the messages (default), or
   * `application`: that the AI SDK executes the call at all, where your own `toolApproval` decides on it.
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
 * The tools of a registry for `generateText`, `streamText` and the agents of the AI SDK 7. Arguments are read, checked
 * and coerced by the registry, whose texts the model gets for whatever goes wrong; nothing that a tool throws ends the
 * run. What a tool reports is streamed as preliminary results. A tool with `approval` asks for it as the AI SDK does.
 *
 * The tools are those of now; call it again when others are registered. Throws InvalidOptionsError (521).
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
  checkArguments({ of: 'toAiSdkTools', given: { registry }, rules: { registry: REGISTRY } });
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

const REGISTRY: OptionRule = instanceOf(ToolRegistry, 'a ToolRegistry');

/** A call of the AI SDK and the tool that it is for. */
interface Calling extends AiSdkExecution {
  readonly tool: string;
  readonly input: unknown;
}

class AiSdkCalls {
  readonly #registry: ToolRegistry;
  readonly #scope: AiSdkScope;
  readonly #invoking: InvokeOptions;
  readonly #approvals: AiSdkToolsOptions['approvals'];

  constructor(registry: ToolRegistry, scope: AiSdkScope, { approvals, ...invoking }: AiSdkToolsOptions) {
    this.#registry = registry;
    this.#scope = scope;
    this.#invoking = invoking;
    this.#approvals = approvals;
  }

  behaviourOf(tool: string): Omit<AiSdkTool, 'description' | 'inputSchema'> {
    const { approval, execution, ignoresContext, strict, output } = this.#registry.offered(tool) ?? {};
    const mayNeedYes = approvalNeed(approval) !== false || this.#invoking.policy !== undefined;
    return {
      ...(strict !== undefined && { strict }),
      ...(mayNeedYes && {
        needsApproval: (input: unknown, of: AiSdkExecution) => this.#needsApproval({ ...of, input, tool }),
      }),
      // Whoever executes it at the client's side gives what is no output of ours.
      toModelOutput: ({ output }) => modelOutput(output),
      ...(execution === 'client'
        ? { outputSchema: inputSchema(output ?? {}) }
        : {
            execute: (input: unknown, of: AiSdkExecution) =>
              // It never sees what it would report with.
              ignoresContext
                ? this.#outputOf({ ...of, input, tool })
                : this.#outputsOf({ ...of, input, tool }),
          }),
    };
  }

  /** Asks as a call would, up to where it would ask somebody: what cannot run anyway needs nobody's yes. */
  async #needsApproval(call: Calling): Promise<boolean> {
    let isNeeded = false;
    const given = this.#invoking.policy;
    const asking: ToolPolicy = async (request) => {
      const decision = given === undefined ? true : await given(request);
      const asks = isRecord(decision) && 'ask' in decision && decision.ask === true;
      const allows =
        decision === true || (isRecord(decision) && 'allow' in decision && decision.allow === true);
      isNeeded = asks || (allows && (await wantsApproval(request)));
      return false;
    };
    await this.#registry.invoke(requestOf(call), await this.#scopeOf(call), {
      ...this.#invoking,
      policy: asking,
      logger: SILENT,
    });
    return isNeeded;
  }

  async #outputOf(call: Calling): Promise<AiSdkToolOutput> {
    return writeOutput(await this.#invoke(call, await this.#scopeOf(call)));
  }

  /** What the tool reports while it runs, and its result. */
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

  /** Makes the call; one that waits for a yes is made again with it, where it was given. */
  async #invoke(call: Calling, scope: CallScope): Promise<Invocation> {
    const first = await this.#registry.invoke(requestOf(call), scope, this.#invoking);
    if (first.status !== 'suspended') return first;
    const { waits, journal } = first.suspension;
    const wait = waits.find(({ kind }) => kind === 'approval');
    if (wait === undefined || !this.#isApproved(call)) return first;
    const answered = answerWait({ wait, journal }, { approved: true });
    if (!answered.ok) return first;
    return this.#registry.invoke({ ...requestOf(call), journal: answered.journal }, scope, this.#invoking);
  }

  #isApproved({ messages, toolCallId }: Calling): boolean {
    return this.#approvals === 'application' || hasApproval(messages, toolCallId);
  }

  async #scopeOf({ toolCallId, tool, context, abortSignal }: Calling): Promise<CallScope> {
    const scope =
      typeof this.#scope === 'function' ? await this.#scope({ toolCallId, tool, context }) : this.#scope;
    return { channel: 'ai-sdk', ...scope, signal: anySignal(scope.signal, abortSignal) };
  }
}

/** A method may change its arguments, and the AI SDK keeps them in its messages. */
function requestOf({ toolCallId, tool, input }: Calling) {
  return { id: toolCallId, name: tool, arguments: copyOfJson(input) };
}

/** Fails closed, as the call itself does. */
async function wantsApproval({
  tool,
  arguments: args,
  context,
}: Parameters<ToolPolicy>[0]): Promise<boolean> {
  const { approval }: Pick<ToolDefinition, 'approval'> = tool;
  const need = approvalNeed(approval);
  if (typeof need !== 'function') return need;
  try {
    return (await need(args, context)) !== false;
  } catch {
    return true;
  }
}

/** The question whether somebody has to be asked is no call, and not logged as one. */
const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {}, isLevelEnabled: () => false };

/** Whether a person has said yes to a call, as the last word of the messages that the AI SDK goes on with. */
function hasApproval(messages: AiSdkExecution['messages'], toolCallId: string): boolean {
  const asked = new Set(
    messages
      .flatMap(partsOf)
      .filter((part) => part.type === 'tool-approval-request' && part.toolCallId === toolCallId)
      .map(({ approvalId }) => approvalId),
  );
  const response = messages
    .slice(-1)
    .flatMap((message) => (message.role === 'tool' ? partsOf(message) : []))
    .find((part) => part.type === 'tool-approval-response' && asked.has(part.approvalId));
  return response?.approved === true;
}

function partsOf({ content }: { readonly content: unknown }): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(content) ? content.filter(isRecord) : [];
}
