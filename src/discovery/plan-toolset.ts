import type { ClassType } from '../contract/class-type.js';
import type { JsonSchema } from '../contract/json-schema.js';
import type { Hydrate } from '../contract/tool-definition.js';
import type { ToolOptions } from '../contract/tool-options.js';
import type { AuthorFault } from '../errors/author-fault.js';
import { readRecord } from '../metadata/class-record.js';
import { type InheritedMethod, toolMethods } from '../metadata/tool-methods.js';
import { type ArgumentBinding, createCaller, type MethodCaller } from './argument-binding.js';
import { bindExplicit } from './bind-explicit.js';
import {
  type DescribedMethod,
  describeMethod,
  type MethodSignature,
  type ParameterFault,
} from './describe-method.js';
import { describeSchemas, type ToolSchemas } from './describe-schemas.js';
import { gatherParameters, type MethodFunction, type ParameterFacts } from './parameter-facts.js';
import { illegalName, TOOL_NAME, toSnakeCase } from './tool-name.js';

/** One tool of a class, complete but for the instance. */
export interface PlannedTool {
  readonly class: ClassType;
  readonly key: string | symbol;
  readonly name: string;
  readonly options: ToolOptions;
  readonly parameters: JsonSchema;
  readonly output?: JsonSchema;
  readonly hydrate?: Hydrate;
  readonly call: MethodCaller;
  /** What of the call the method is given besides its arguments. */
  readonly injected: ReadonlySet<'context' | 'signal'>;
}

/** The tools of one class, and everything that is wrong with its declarations. */
export interface ToolsetPlan {
  readonly tools: readonly PlannedTool[];
  readonly faults: readonly AuthorFault[];
}

/** Understands all tool methods of a class; every fault of every method is collected. */
export function planToolset(toolset: ClassType): ToolsetPlan {
  const tools: PlannedTool[] = [];
  const faults: AuthorFault[] = (readRecord(toolset)?.misplaced ?? []).map((place) => ({
    where: toolset.name,
    problem: `a parameter decorator stands at ${place}`,
    fix: '@Param, @Args and @Context on the parameters of tool methods; constructors are injected by type or @inject',
  }));
  const methods = toolMethods(toolset);
  if (!methods.some(({ record }) => record.tool !== undefined)) {
    faults.push({
      where: toolset.name,
      problem: 'it has no @Tool method',
      fix: '@Tool(…) before at least one method',
    });
  }
  for (const method of methods) {
    const planned = planMethod(toolset, method);
    if ('tool' in planned) tools.push(planned.tool);
    else
      faults.push(
        ...planned.faults.map((fault) => ({
          where: `${toolset.name}.${String(method.record.key)}`,
          ...fault,
        })),
      );
  }
  return { tools, faults };
}

type PlannedMethod = { readonly tool: PlannedTool } | { readonly faults: readonly ParameterFault[] };

function planMethod(toolset: ClassType, method: InheritedMethod): PlannedMethod {
  const { record, declaredIn } = method;
  const options = record.tool;
  if (options === undefined)
    return only('its parameters are decorated, but it is no tool', '@Tool(…) before the method');
  if (record.isStatic) {
    return only(
      'a static method has no instance to inject into',
      'an instance method, or registerFunction(…) for a plain function',
    );
  }
  const fn: unknown = Object.getOwnPropertyDescriptor(declaredIn.prototype, record.key)?.value;
  if (typeof fn !== 'function')
    return only('@Tool stands on something that is no method', 'an ordinary method');
  const name = nameOf(toolset, record.key, options);
  const nameFaults = TOOL_NAME.test(name) ? [] : [illegalName(name)];
  const understood = understand({ method, fn: fn as MethodFunction, options });
  if (!understood.ok) return { faults: [...nameFaults, ...understood.faults] };
  if (nameFaults.length > 0) return { faults: nameFaults };
  const { schemas, signature } = understood;
  const { parameters, output, hydrate } = schemas;
  return {
    tool: {
      class: toolset,
      key: record.key,
      name,
      options,
      parameters,
      output,
      hydrate,
      call: createCaller(record.key, signature.bindings),
      injected: injectedBy(signature.bindings),
    },
  };
}

type UnderstoodMethod =
  | { readonly ok: true; readonly schemas: ToolSchemas; readonly signature: MethodSignature }
  | { readonly ok: false; readonly faults: readonly ParameterFault[] };

interface ReadableMethod {
  readonly method: InheritedMethod;
  readonly fn: MethodFunction;
  readonly options: ToolOptions;
}

/** An explicit schema comes first, because it says what the parameters are; otherwise they say what it is. */
function understand({ method, fn, options }: ReadableMethod): UnderstoodMethod {
  if (options.parameters !== undefined) {
    const schemas = describeSchemas(options, { properties: [] });
    if (!schemas.ok) return schemas;
    const signature = readSignature(method, fn, (facts) => bindExplicit(facts, schemas.parameters));
    return signature.ok ? { ok: true, schemas, signature: signature.signature } : signature;
  }
  const signature = readSignature(method, fn, describeMethod);
  if (!signature.ok) return signature;
  const schemas = describeSchemas(options, signature.signature);
  return schemas.ok ? { ok: true, schemas, signature: signature.signature } : schemas;
}

function readSignature(
  method: InheritedMethod,
  fn: MethodFunction,
  describe: (facts: readonly ParameterFacts[]) => DescribedMethod,
): DescribedMethod {
  const facts = gatherParameters(method, fn);
  if (facts.ok) return describe(facts.parameters);
  return {
    ok: false,
    faults: [
      {
        problem: facts.problem,
        causes: [
          'another decorator replaced the method',
          'the compile target turns async methods into generators (use ES2017 or newer)',
        ],
        fix: '@Param({ name: … }) on every parameter, or @Tool as the decorator nearest to the method',
      },
    ],
  };
}

function nameOf(toolset: ClassType, key: string | symbol, options: ToolOptions): string {
  if (options.name !== undefined) return options.name;
  const derived = toSnakeCase(typeof key === 'symbol' ? (key.description ?? '') : key);
  const prefix = readRecord(toolset)?.toolset?.prefix;
  return prefix ? `${prefix}_${derived}` : derived;
}

function only(problem: string, fix: string): PlannedMethod {
  return { faults: [{ problem, fix }] };
}

function injectedBy(bindings: readonly ArgumentBinding[]): ReadonlySet<'context' | 'signal'> {
  return new Set(bindings.flatMap(({ from }) => (from === 'context' || from === 'signal' ? [from] : [])));
}
