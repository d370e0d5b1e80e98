import type { Invocation, InvokeOptions } from '../call/invocation.js';
import { ToolRegistry } from '../call/tool-registry.js';
import { answerWait, approvalNeed } from '../call/waits.js';
import { type CallScope, SCOPE, type ToolPolicy } from '../contract/call.js';
import type { Logger } from '../contract/ports.js';
import type { ToolDefinition } from '../contract/tool.js';
import { checkArguments, checkOptions } from '../errors/author-fault.js';
import { anySignal } from '../kernel/async.js';
import { copyOfJson, isRecord, plainJson } from '../kernel/json.js';
import {
  FUNCTION,
  instanceOf,
  MILLISECONDS,
  type OptionRule,
  oneOf,
  optionTable,
  protecting,
} from '../kernel/options.js';
import {
  type AiSdkExecution,
  type AiSdkTool,
  type AiSdkToolOutput,
  inputSchema,
  modelOutput,
  writeOutput,
} from './ai-sdk-tool.js';

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
  if (typeof scope !== 'function') checkOptions(scope, SCOPE);
  checkOptions(options, OPTIONS);
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
