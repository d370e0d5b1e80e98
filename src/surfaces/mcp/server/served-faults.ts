import { UriTemplate } from '@modelcontextprotocol/server';
import type { JsonSchema } from '../../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import type { AuthorFault, UnplacedFault } from '../../../core/errors/author-fault.js';
import { isRecord } from '../../../core/kernel/json.js';
import type { ToolRegistry } from '../../../run/call/tool-registry.js';
import { toolPlace } from '../../../tools/discovery/bound-method.js';
import { findReference } from '../../../tools/schema/find-reference.js';
import { servedAs, servedCompletion } from './resource-uris.js';

/** All mistakes in the prompts, resources and completions of a registry. */
export function servedFaults(registry: ToolRegistry): readonly AuthorFault[] {
  const prompts = registry.part('prompt').tools();
  const resources = registry.part('resource').tools();
  const completions = registry.part('completion').tools();
  const targets = new Map([
    ...prompts.map(({ name, parameters }) => [name, argumentsOf(parameters)] as const),
    ...resources.map((resource) => [servedAs(resource).uri, variablesOf(servedAs(resource).uri)] as const),
  ]);
  return [
    ...prompts.flatMap((prompt) => placed(prompt, promptFaults(prompt))),
    ...resources.flatMap((resource) => placed(resource, resourceFaults(resource))),
    ...sameFaults(resources, (resource) => shapeOf(servedAs(resource).uri), {
      problem: 'its URI or URI template means the same as that of',
      fix: 'another URI, or one method for both',
    }),
    ...completions.flatMap((completion) => placed(completion, completionFaults(completion, targets))),
    ...sameFaults(completions, (completion) => JSON.stringify(servedCompletion(completion)), {
      problem: 'it completes the same argument as',
      fix: 'one method for both',
    }),
  ];
}

function placed(tool: ToolDefinition, faults: readonly UnplacedFault[]): readonly AuthorFault[] {
  return faults.map((fault) => ({ where: toolPlace(tool), ...fault }));
}

/** Definitions that only one of them can answer for. */
function sameFaults(
  tools: readonly ToolDefinition[],
  keyOf: (tool: ToolDefinition) => string,
  { problem, fix }: UnplacedFault,
): readonly AuthorFault[] {
  return [...Map.groupBy(tools, keyOf).values()].flatMap(([first, ...others]) =>
    others.map((other) => ({
      where: toolPlace(other),
      problem: `${problem} ${first && toolPlace(first)}`,
      fix,
    })),
  );
}

function argumentsOf({ properties = {} }: JsonSchema): readonly string[] {
  return Object.keys(properties);
}

/** Clients send the arguments of prompts as texts. */
function promptFaults({ parameters }: ToolDefinition): readonly UnplacedFault[] {
  return Object.entries(parameters.properties ?? {}).flatMap(([parameter, schema]) =>
    takesText(schema, parameters)
      ? []
      : {
          parameter,
          problem: 'it is an object or a list, and arguments of prompts are texts',
          fix: 'a string, a number, a boolean or an enum',
        },
  );
}

const MAX_DEPTH = 16;

/** Whether a text, or a value that a text is converted to, may fit a schema. */
function takesText(schema: unknown, root: JsonSchema, depth = 0): boolean {
  if (!isRecord(schema) || depth > MAX_DEPTH) return true;
  if (typeof schema.$ref === 'string') return takesText(findReference(schema.$ref, root), root, depth + 1);
  const branches = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(branches)) return branches.some((branch) => takesText(branch, root, depth + 1));
  return [schema.type].flat().some((type) => !['object', 'array', 'null'].includes(String(type)));
}

/** An expression of a URI template that has a variable. */
const EXPRESSION = /\{[+#./?&]?[^{}\s+#./?&,*][^{}\s]*\}/g;

function isUri(uri: string): boolean {
  return /^[a-z][a-z\d+.-]*:/i.test(uri) && !/[{}]/.test(uri.replace(EXPRESSION, ''));
}

function variablesOf(uri: string): readonly string[] {
  return isUri(uri) ? new UriTemplate(uri).variableNames : [];
}

/** A URI template without the names of variables, which do not change what it matches. */
function shapeOf(uri: string): string {
  return isUri(uri) ? uri.replace(/\{([+#./]?)[^{}?&]+\}/g, '{$1}') : uri;
}

function resourceFaults(resource: ToolDefinition): readonly UnplacedFault[] {
  const { uri } = servedAs(resource);
  if (!isUri(uri))
    return [
      {
        problem: `${JSON.stringify(uri)} is neither a URI nor a URI template`,
        fix: "a scheme, and closed braces around variables: 'orders://{orderId}'",
      },
    ];
  const { properties, required = [] } = resource.parameters;
  const variables = variablesOf(uri);
  const unread = variables.filter((name) => properties !== undefined && !Object.hasOwn(properties, name));
  return [
    ...unread.map((name) => ({
      problem: `${uri} has {${name}}, and the method has no parameter of this name`,
      fix: `${name}: string`,
    })),
    ...required
      .filter((name) => !variables.includes(name))
      .map((parameter) => ({
        parameter,
        problem: `it is required, and ${uri} has no {${parameter}}`,
        fix: `{${parameter}} in the URI template; or a parameter that is optional or has a default`,
      })),
  ];
}

function completionFaults(
  completion: ToolDefinition,
  targets: ReadonlyMap<string, readonly string[]>,
): readonly UnplacedFault[] {
  const { of, argument } = servedCompletion(completion);
  const { properties = {}, required = [] } = completion.parameters;
  const faults: UnplacedFault[] = [];
  if (!takesString(properties.value))
    faults.push({
      problem: 'it has no parameter `value` that is a string: the text so far',
      fix: 'value: string',
    });
  const known = targets.get(of);
  if (known === undefined)
    return [
      ...faults,
      {
        problem: `it completes an argument of '${of}', and there is no prompt of this name, and no resource of this URI template`,
        fix: 'the name of the prompt as clients see it, or the URI template of the resource',
      },
    ];
  const one = known.length === 0 ? 'no completion: it has no arguments' : `one of ${known.join(', ')}`;
  if (!known.includes(argument)) faults.push({ problem: `'${of}' has no argument '${argument}'`, fix: one });
  for (const parameter of required)
    if (parameter !== 'value' && !known.includes(parameter))
      faults.push({ parameter, problem: `it is required, and '${of}' has no such argument`, fix: one });
  return faults;
}

function takesString(schema: unknown): boolean {
  if (!isRecord(schema)) return schema === true;
  return schema.type === undefined || [schema.type].flat().includes('string');
}
