import type { CallScope } from '../../core/contract/call.js';
import type { Approval, ToolAnnotations } from '../../core/contract/declaration.js';
import type { JsonObject, SchemaSource } from '../../core/contract/json-schema.js';
import type { Message } from '../../core/contract/llm-provider.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { cached } from '../../core/kernel/cached.js';
import { plainJson, withoutUndefined } from '../../core/kernel/json.js';
import {
  ANY_VALUE,
  COUNT,
  FILLED_TEXT,
  FUNCTION,
  MILLISECONDS,
  optionTable,
  type RulesOf,
  required,
  TEXT,
} from '../../core/kernel/options.js';
import { type ArgumentsOf, defineTool } from '../../tools/discovery/define-tool.js';
import { bothPolicies } from '../call/allow.js';
import { RunIds } from '../call/effect-key.js';
import { failedResult } from '../call/result-text.js';
import { registryOf, ToolRegistry } from '../call/tool-registry.js';
import { type ChildRuns, childRuns, leftSuspended, toolsOfAgents } from './child-runs.js';
import type { EventSink, ToolLoopResult } from './events.js';
import { LOOP_RULES, type ToolLoopConfig } from './options.js';
import { driveChild, driveRun } from './run.js';

/** The loop options that an agent may set itself; the enclosing run has the others. */
const LOOP_OPTIONS = [
  ...(['provider', 'model', 'tools', 'output', 'maxIterations', 'llmOptions', 'maxRetries'] as const),
  ...(['maxConcurrency', 'toolTimeoutMs', 'onLimit', 'policy', 'fallback', 'compactHistory'] as const),
  ...(['answerWithinMs', 'logger', 'budget', 'hooks'] as const),
] as const;

type AgentConfig = Pick<ToolLoopConfig, (typeof LOOP_OPTIONS)[number]>;

/** An agent's information about the call that it runs in. */
export type AgentContext = Pick<
  ToolContext,
  'channel' | 'chatId' | 'conversationId' | 'data' | 'scopes' | 'signal' | 'messages'
>;

/** Options of {@link agentAsTool}. */
export interface AgentAsToolOptions<Source extends SchemaSource = SchemaSource> extends AgentConfig {
  readonly name: string;
  /** The purpose of the agent, and when to call it. */
  readonly description: string;
  readonly systemPrompt?: string;
  /** Default: `{ task: string }`. */
  readonly parameters?: Source;
  /** Returns the agent's user message; default: the `task`, or the arguments as JSON. */
  readonly prompt?: (args: ArgumentsOf<Source>) => string;
  /** Returns the messages before it, such as the conversation of the call; default: no messages. */
  readonly earlier?: (context: AgentContext) => readonly Message[];
  /** The most agents nested in each other, including this one; default: 4. */
  readonly maxDepth?: number;
  /** Milliseconds for a whole run of the agent; default: no limit except those of its requests and calls. */
  readonly timeoutMs?: number;
  readonly approval?: Approval;
  readonly annotations?: ToolAnnotations;
}

const RULES = {
  name: required(FILLED_TEXT),
  description: required(FILLED_TEXT),
  ...Object.fromEntries(LOOP_OPTIONS.map((option) => [option, LOOP_RULES[option]])),
  systemPrompt: TEXT,
  parameters: ANY_VALUE,
  prompt: FUNCTION,
  earlier: FUNCTION,
  maxDepth: COUNT,
  timeoutMs: MILLISECONDS,
  approval: ANY_VALUE,
  annotations: ANY_VALUE,
} as RulesOf<AgentAsToolOptions>;

const OPTIONS = optionTable<AgentAsToolOptions>('agentAsTool', RULES, {
  store: '`store` on the run that calls the agent: the run of the agent is stored there, too',
});

const TASK = {
  type: 'object',
  properties: {
    task: { type: 'string', description: 'The task, with all the information that it needs' },
  },
  required: ['task'],
} as const;

const DEFAULT_DEPTH = 4;

/**
 * A tool that is an agent: each call is a separate run with its own model, tools and prompt. Its answer is the
 * result: its text, or data of its `output`.
 *
 * The run belongs to the owner of the calling run. The calling run's policy and hooks also apply, and its log shows
 * no more than that of the calling run. Waits of the agent are in the `pending` of the calling run, with their
 * `path`; answered there, the agent continues. Its usage counts for the calling run, and its events are reported
 * there as `call-event`.
 *
 * @throws InvalidOptionsError (521) for invalid options, ToolDeclarationError (502) for invalid tools.
 *
 * @example
 * ```ts
 * const research = agentAsTool({
 *   name: 'research',
 *   description: 'Finds out what is known about a company',
 *   provider,
 *   model: 'gpt-5-mini',
 *   tools,
 *   systemPrompt: 'Answer in three sentences.',
 * });
 * const run = await runToolLoop({ provider, model: 'gpt-5', tools: [research] }, messages);
 * ```
 */
export function agentAsTool<Source extends SchemaSource = typeof TASK>(
  options: AgentAsToolOptions<Source>,
): ToolDefinition {
  checkOptions(options, OPTIONS as unknown as Parameters<typeof checkOptions>[1]);
  const { tools = [], name, description, timeoutMs = Number.POSITIVE_INFINITY, ...others } = options;
  const registry = registryOf(tools);
  const { parameters = TASK, approval, annotations } = others;
  const ready = { ...(options as unknown as AgentAsToolOptions), tools: registry };
  const tool = defineTool({
    name,
    description,
    parameters: parameters as SchemaSource,
    timeoutMs,
    ...withoutUndefined({ approval, annotations }),
    execute: (args: unknown, context: ToolContext) => runAgent(ready, args as JsonObject, { context }),
  });
  toolsOfAgents.set(tool, () => registry);
  agents.set(tool, ready);
  return tool;
}

const agents = new WeakMap<object, AgentAsToolOptions>();

/** The call that an agent runs in, and the signal that ends the agent, if it differs from that of the call. */
interface AgentCall {
  readonly context: ToolContext;
  readonly signal?: AbortSignal;
}

export async function runAgentOf(
  tool: ToolDefinition,
  args: JsonObject,
  call: AgentCall,
): Promise<ToolResult> {
  const options = agents.get(tool);
  if (options === undefined) throw new TypeError(`'${tool.name}' is not an agent`);
  return runAgent(options, args, call);
}

/** Records the tools of the agent that runs in calls of a tool. */
export function noteAgents(
  tool: ToolDefinition,
  agentOf: (args: JsonObject) => ToolDefinition | undefined,
): void {
  toolsOfAgents.set(tool, (args) => {
    const agent = agentOf(args);
    return agent && toolsOfAgents.get(agent)?.(args);
  });
}

async function runAgent(
  options: AgentAsToolOptions,
  args: JsonObject,
  { context, signal = context.signal }: AgentCall,
): Promise<ToolResult> {
  const { name, maxDepth = DEFAULT_DEPTH } = options;
  const outer = childRuns.getStore();
  if (outer !== undefined && outer.depth > maxDepth)
    return failedResult(
      'AgentsTooDeep',
      `The agent '${name}' was not run: agents called each other ${maxDepth} levels deep.`,
    );
  const ids = cached(runIds, context, () => new RunIds(context.idempotencyKey ?? crypto.randomUUID()));
  const config = { ...configIn(outer, options), runId: ids.next([name, args]) };
  const { systemPrompt, parameters, prompt, earlier } = options;
  const task = parameters === undefined && prompt === undefined ? String(args.task) : undefined;
  const system: Message[] = systemPrompt === undefined ? [] : [{ role: 'system', content: systemPrompt }];
  const content = task ?? prompt?.(args as never) ?? JSON.stringify(args);
  const start = { messages: [...system, ...(earlier?.(context) ?? []), { role: 'user', content } as const] };
  // The scope of the call: the same owner, data and container.
  const { channel, chatId, conversationId, data, scopes } = context;
  const { owner, container, onLog } = outer?.scope ?? {};
  const given = { channel, chatId, conversationId, data, scopes, signal, owner, container, onLog };
  const scope: CallScope = withoutUndefined(given);
  const sink = outer?.run.sink;
  if (outer === undefined) return resultOf(name, await driveRun(config, start, { scope }));
  const { call, run } = outer;
  // After the call was answered, its later events are not reported; its completion is.
  const forward: EventSink = (event) =>
    outer.isClosed ? undefined : sink?.({ type: 'call-event', callId: call.id, tool: call.name, event });
  const watched = sink === undefined ? {} : { sink: forward, hasReader: run.hasReader ?? (() => true) };
  // The enclosing state contains it; after the call was answered, it could not be continued.
  const resultsOf = { ...run.resultsOf, isShared: false };
  const deps = { scope, ...watched, save: () => {}, resultsOf };
  return resultOf(name, await driveChild(outer, config, { start, deps, isCounted: true }));
}

const runIds = new WeakMap<ToolContext, RunIds>();

/** The policy and the hooks of the calling run apply to the agent, too. */
function configIn(outer: ChildRuns | undefined, options: AgentAsToolOptions): ToolLoopConfig {
  const own = Object.fromEntries(LOOP_OPTIONS.map((option) => [option, options[option]]));
  const { logger, store, hooks: outerHooks = [], policy: outerPolicy } = outer?.run.config ?? {};
  const policy = bothPolicies(outerPolicy, options.policy);
  const registry = options.tools as ToolRegistry;
  let tools = registry;
  if (outer !== undefined) {
    const known = cached(within, registry, () => new WeakMap<ToolRegistry, ToolRegistry>());
    tools = cached(known, outer.run.tools, () => registry.within(outer.run.tools));
  }
  const all = new Set([...outerHooks, ...(options.hooks ?? [])]);
  const hooks = [...all].filter((hook) => !tools.hooks.includes(hook));
  return {
    logger,
    // For standing approvals: the run itself is part of the state of the enclosing run.
    store,
    ...(withoutUndefined(own) as unknown as ToolLoopConfig),
    tools,
    hooks: hooks.length > 0 ? hooks : undefined,
    policy,
  };
}

/** Cached by the registry of an agent and that of the calling run, so that derived data is computed once. */
const within = new WeakMap<ToolRegistry, WeakMap<ToolRegistry, ToolRegistry>>();

/** The result for the calling model; the application finds the rest in `details`. */
function resultOf(name: string, run: ToolLoopResult): ToolResult {
  const { status, content, output, iterations, usage, error, state } = run;
  if (state !== undefined) return leftSuspended(name, state);
  const details = { status, iterations, usage, toolCalls: run.toolCalls.length };
  if (status !== 'completed') {
    const reason = error?.message ?? status;
    const failed = failedResult(
      'ToolExecutionFailed',
      `The agent '${name}' did not finish: ${reason}`,
      error,
    );
    return new ToolResult({ ...failed, details });
  }
  const json = plainJson(output);
  return new ToolResult({ forLLM: json === undefined ? content : JSON.stringify(json), details });
}
