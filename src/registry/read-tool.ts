import { authorSchemaFaults, describeSchemaFault } from '../checking/author-schema.js';
import { schemaDoubts } from '../checking/schema-doubts.js';
import type { ClassType } from '../contract/class-type.js';
import type { JsonSchema } from '../contract/json-schema.js';
import type { ToolDefinition } from '../contract/tool-definition.js';
import { adaptAgentTool } from '../discovery/agent-tool.js';
import { isFinishedTool } from '../discovery/freeze-tool.js';
import { illegalName, TOOL_NAME } from '../discovery/tool-name.js';
import { type AuthorFault, ToolDeclarationError, undescribed } from '../errors/author-fault.js';
import { errorMessage } from '../invocation/error-message.js';
import { isRecord } from '../kernel/is-record.js';
import { toolMethods } from '../metadata/tool-methods.js';
import { behaviourFaults } from '../metadata/tool-option-faults.js';
import { unloadedParts } from '../schema/unloaded-parts.js';
import type { RegisteredTool, ToolEntry } from './tool-table.js';

/** A registrable thing understood, or why it is none. */
export type ReadTool =
  | { readonly name: string; readonly entry: ToolEntry; readonly doubts?: readonly AuthorFault[] }
  | { readonly faults: readonly AuthorFault[] };

/** Checks what is to be registered. A function is asked for one tool, to learn what it offers. */
export function readTool(registered: RegisteredTool): ReadTool {
  if (isFinishedTool(registered))
    return { name: registered.name, entry: { open: () => registered, offered: registered } };
  let offered: unknown = registered;
  if (typeof registered === 'function') {
    try {
      offered = registered();
    } catch (error) {
      return { faults: [factoryFault(registered.name, error)] };
    }
  }
  try {
    offered = adaptAgentTool(offered);
  } catch (error) {
    if (error instanceof ToolDeclarationError) return { faults: error.faults };
    throw error;
  }
  const faults = faultsOf(offered);
  if (faults.length > 0) return { faults };
  const tool = offered as ToolDefinition;
  const open =
    typeof registered === 'function' ? () => adaptAgentTool(registered()) as ToolDefinition : () => tool;
  // Frozen ones were made by discovery, `defineTool` or a bridge, which have had their say.
  const doubts = Object.isFrozen(tool) ? [] : doubtsAbout(tool);
  return { name: tool.name, entry: { open, offered: tool }, doubts };
}

function doubtsAbout({ name, description, parameters }: ToolDefinition): readonly AuthorFault[] {
  const where = `register(${JSON.stringify(name)})`;
  const ofSchema = schemaDoubts(parameters, 'author').map((doubt) =>
    describeSchemaFault(doubt, 'parameters'),
  );
  return [
    ...(description?.trim() ? [] : [undescribed(where, DESCRIBE)]),
    ...ofSchema.map((doubt) => ({ where, ...doubt })),
  ];
}

const DESCRIBE = 'a `description` that says what it does, and when';

function factoryFault(name: string, error: unknown): AuthorFault {
  return {
    where: `register(${name || 'a function'})`,
    problem: `as a function it must return a tool, and it threw: ${errorMessage(error)}`,
    causes: ['it is a class; a toolset class is discovered'],
    fix: '`() => tool`, or `...discoverTools({ toolsets: [TheClass] })`',
  };
}

function faultsOf(tool: unknown): readonly AuthorFault[] {
  const mistaken = mistakenFor(tool);
  if (mistaken !== undefined) return [mistaken];
  if (typeof tool !== 'object' || tool === null) {
    return [
      {
        where: `register(${String(tool)})`,
        problem: 'it is no tool',
        fix: 'an object with name, description, parameters and execute',
      },
    ];
  }
  const { name, description, parameters, execute } = tool as Partial<ToolDefinition>;
  const where = `register(${typeof name === 'string' ? JSON.stringify(name) : 'a tool without a name'})`;
  const faults: AuthorFault[] = [];
  const must = (holds: boolean, problem: string, fix: string) =>
    holds || faults.push({ where, problem, fix });
  if (typeof name === 'string' && !TOOL_NAME.test(name)) faults.push({ where, ...illegalName(name) });
  must(typeof name === 'string', 'it has no name', 'a `name` that is a string');
  must(
    description === undefined || typeof description === 'string',
    'its description is no text',
    'a `description` that is a string',
  );
  must(parameters !== undefined && parameters !== null, 'it has no parameters', PARAMETERS);
  must(typeof execute === 'function', 'it cannot be executed', 'an `execute(args, context)` method');
  faults.push(...behaviourFaults(tool).map((fault) => ({ where, ...fault })));
  faults.push(...malformedSchemas(tool as Partial<ToolDefinition>).map((fault) => ({ where, ...fault })));
  return faults;
}

const PARAMETERS = '`parameters` as a JSON Schema object';

function malformedSchemas({
  parameters,
  output,
}: Partial<ToolDefinition>): readonly Omit<AuthorFault, 'where'>[] {
  const given = Object.entries({ parameters, output }).filter(
    ([, schema]) => schema !== undefined && schema !== null,
  );
  return given.flatMap(([what, schema]) =>
    isRecord(schema)
      ? malformed(schema, what)
      : [{ problem: `its \`${what}\` are no JSON Schema object`, fix: PARAMETERS }],
  );
}

function malformed(schema: JsonSchema, what: string): readonly Omit<AuthorFault, 'where'>[] {
  const unloaded = unloadedParts(schema);
  if (unloaded !== undefined) return [{ ...unloaded, problem: `its \`${what}\` ${unloaded.problem}` }];
  return authorSchemaFaults(schema).map((fault) => describeSchemaFault(fault, what));
}

/** Things that are often given instead of a tool. */
function mistakenFor(tool: unknown): AuthorFault | undefined {
  if (Array.isArray(tool))
    return { where: 'register([…])', problem: 'it is a list of tools', fix: 'register(...tools)' };
  if (typeof tool !== 'object' || tool === null || 'execute' in tool) return undefined;
  if ('function' in tool)
    return {
      where: 'register({ type, function })',
      problem: 'it is a definition for a provider',
      fix: 'the tool itself',
    };
  if (toolMethods(tool.constructor as ClassType).length === 0) return undefined;
  const { name } = tool.constructor;
  return {
    where: `register(new ${name}())`,
    problem: 'it is an instance of a toolset class',
    fix: `register(...discoverTools({ toolsets: [${name}] }))`,
  };
}
