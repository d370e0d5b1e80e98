import type { ToolOptions } from '../contract/declaration.js';
import type { SchemaSource } from '../contract/json-schema.js';
import type {
  AgentToolResult,
  AgentToolUpdateCallback,
  ToolDefinition,
  ToolExecutionContext,
} from '../contract/tool.js';
import { isRecord } from '../kernel/json.js';
import { agentToolFaults, givenOptions, unloadedSchemaFaults } from '../metadata/tool-option-faults.js';
import { type ArgumentsOf, toDefinition } from './define-tool.js';

/** An agent tool: `label` is its title, `details` go to the application only. */
export interface AgentTool<Source extends SchemaSource = SchemaSource, Details = unknown>
  extends Omit<
    ToolOptions,
    'parameters' | 'name' | 'description' | 'reconcile' | 'compensate' | 'touches' | 'preview'
  > {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly parameters: Source;
  execute(
    toolCallId: string,
    params: ArgumentsOf<Source>,
    signal?: AbortSignal,
    onUpdate?: AgentToolUpdateCallback<Details>,
    context?: ToolExecutionContext,
  ): Promise<AgentToolResult<Details>>;
}

/**
 * Makes a tool from an agent tool, whose `execute` gets the call's id, the checked arguments, a signal,
 * a callback for partial results, and the call's context with the read-only history.
 *
 * @throws ToolDeclarationError (502) when the name is illegal or the schema cannot be read.
 *
 * @example
 * ```ts
 * const greet = agentTool({
 *   name: 'greet',
 *   label: 'Greeting',
 *   description: 'Greets somebody',
 *   parameters: Type.Object({ name: Type.String() }),
 *   execute: async (_id, { name }) => ({ content: [{ type: 'text', content: `Hello, ${name}!` }], details: {} }),
 * });
 * ```
 */
export function agentTool<Source extends SchemaSource, Details = unknown>(
  tool: AgentTool<Source, Details>,
): ToolDefinition {
  if (!isRecord(tool)) return toDefinition(tool as never, { by: 'agentTool', wrong: agentToolFaults(tool) });
  const { label, execute, annotations } = tool;
  const options = givenOptions(tool);
  const noBody = typeof execute === 'function' ? [] : [NO_BODY];
  const wrong = [...noBody, ...agentToolFaults(tool), ...unloadedSchemaFaults(tool)];
  const definition = toDefinition<Source>(
    {
      ...options,
      annotations: { title: label, ...annotations },
      execute: (params, context) =>
        execute.call(
          tool,
          context.callId,
          params,
          context.signal,
          (partial) => context.progress(partial),
          context,
        ),
    },
    { by: 'agentTool', wrong },
  );
  return Object.freeze({ ...definition, observesSignal: true, returnsContent: true });
}

const NO_BODY = {
  problem: 'it has no execute',
  fix: 'execute: async (toolCallId, params) => ({ content: […], details: … })',
};

/** The tools that were made of objects in the form of an agent tool: the same for the same. */
const adapted = new WeakMap<object, ToolDefinition>();

/**
 * What is given as a tool, as a tool of the contract: an object in the form of {@link agentTool} becomes one,
 * anything else stays what it is.
 *
 * @throws ToolDeclarationError (502) where the object has the form, and something in it is wrong.
 */
export function adaptAgentTool(given: unknown): unknown {
  if (!isAgentTool(given)) return given;
  const known = adapted.get(given);
  if (known !== undefined) return known;
  const tool = agentTool(given);
  adapted.set(given, tool);
  return tool;
}

/** It has a label, and its `execute` is not that of the contract, which takes the arguments first. */
function isAgentTool(given: unknown): given is AgentTool {
  if (typeof given !== 'object' || given === null || !('label' in given) || !('execute' in given))
    return false;
  const { label, execute } = given;
  if (typeof label !== 'string' || typeof execute !== 'function' || execute.length === 1) return false;
  return !('setContext' in given || 'setCallback' in given);
}
