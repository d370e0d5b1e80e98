import { type ClassType, COMPANIONS, type Companion } from '../../core/contract/declaration.js';
import type { InstanceResolver, Logger } from '../../core/contract/ports.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import {
  type AuthorFault,
  refuseOptions,
  ToolDeclarationError,
  warnAuthor,
} from '../../core/errors/author-fault.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isObject } from '../../core/kernel/json.js';
import {
  BOOLEAN,
  LOGGER,
  type OptionFault,
  optionFaults,
  optionTable,
  withMethods,
} from '../../core/kernel/options.js';
import { lineage, loadedToolClasses, loadedToolsets, readRecord } from '../../core/metadata/class-record.js';
import { bindMethod, methodPlace } from './bound-method.js';
import { type InstanceSource, toolsetHost } from './containers/toolset-host.js';
import { freezeTool } from './define-tool.js';
import { NAMING, type PlannedTool, planToolset } from './plan-toolset.js';

/** Options of {@link discoverTools}. */
export interface DiscoverOptions {
  /** Default: every `@Toolset` class loaded so far. */
  readonly toolsets?: readonly ClassType[];
  /** A tsyringe container or an `InstanceResolver`; default: tsyringe's global container. */
  readonly container?: InstanceResolver;
  /** A generated description that no longer matches its class is an error; default: a warning. */
  readonly strict?: boolean;
  /** Receives warnings; default: `process.emitWarning`. */
  readonly logger?: Logger;
}

/**
 * Turns toolset classes into tools with injected instances. It reads the classes and checks the container before it
 * creates anything. Singletons are created now; scoped and transient toolsets at each call.
 *
 * @throws InvalidOptionsError (521) for unknown options.
 * @throws ToolDeclarationError (502) with every mistake of every class together: unknown types, illegal and duplicate
 * names, missing providers, singletons that would keep scoped dependencies.
 *
 * @example
 * ```ts
 * const tools = new ToolRegistry();
 * tools.register(...discoverTools({ toolsets: [ShopTools, MailTools] }));
 * ```
 */
export function discoverTools(options: DiscoverOptions = {}): ToolDefinition[] {
  const misused = misuses(options);
  if (misused.length > 0) refuseOptions(misused.map((fault) => ({ where: OPTIONS.of, ...fault })));
  const { toolsets = loadedToolsets(), strict = false, logger } = options;
  const host = toolsetHost(options.container);
  const classes = [...new Set(toolsets)];
  const plans = classes.map((toolset) => planToolset(toolset));
  const tools = plans.flatMap((plan) => plan.tools);
  const misfits = plans.flatMap((plan) => plan.misfits);
  const warnings = plans.flatMap((plan) => plan.warnings);
  if (options.toolsets === undefined) {
    // Classes with tools that the container has registered, that have no subclass, and that no `@Toolset` offers.
    const bases = new Set(classes.flatMap(lineage));
    for (const declaring of loadedToolClasses())
      if (!bases.has(declaring) && host.knows(declaring))
        warnings.push({
          where: declaring.name,
          problem: 'it has @Tool methods and is in the container, but its tools are not offered',
          fix: '@Toolset() before the class, or discoverTools({ toolsets: [TheClass, …] })',
        });
  }
  for (const warning of [...(strict ? [] : misfits), ...warnings]) warnAuthor(warning, logger);
  const required = plans.flatMap((plan) => plan.required);
  warnOfUnknownOptionality(required, logger);
  const faults = plans.flatMap((plan) => plan.faults);
  const unprovided = classes.flatMap((toolset) => host.inspect(hosted(toolset)));
  refuse([...(strict ? misfits : []), ...faults, ...duplicates(tools), ...unprovided]);
  const failed: AuthorFault[] = [];
  const sources = new Map<ClassType, ReturnType<typeof host.open>>();
  for (const toolset of classes) {
    try {
      sources.set(toolset, host.open(hosted(toolset)));
    } catch (error) {
      failed.push({
        where: toolset.name,
        problem: `it could not be created: ${errorMessage(error)}`,
        fix: 'fix its constructor, or that of a dependency',
      });
    }
  }
  refuse(failed);
  return tools.map((planned) => {
    const source = sources.get(planned.class);
    if (source === undefined) throw new TypeError(`${methodPlace(planned)} has no instance`);
    return hostedTool(planned, source, host.resolver);
  });
}

/** The tool of a planned method, called on the one instance of its class or on one for each call. */
function hostedTool(
  planned: PlannedTool,
  source: InstanceSource,
  container: InstanceResolver,
): ToolDefinition {
  const { call, bindings } = planned;
  if (source.kind === 'per-call') {
    const { open } = source;
    const execute: ToolDefinition['execute'] = (args, context) => call(open(context))(args, context);
    return toolOfMethod(planned, { container, withInstance: (context, use) => use(open(context)), execute });
  }
  const isInjected = bindings.some(({ from }) => from === 'context' || from === 'signal');
  return toolOfMethod(planned, {
    container,
    ignoresContext: !isInjected || undefined,
    withInstance: (_context, use) => use(source.instance),
    execute: call(source.instance),
  });
}

/** The tools of existing toolset instances, without a container. */
export function toolsOfInstances(...instances: readonly object[]): ToolDefinition[] {
  const resolve = <Instance>(toolset: unknown): Instance =>
    instances.find((instance) => instance.constructor === toolset) as Instance;
  const toolsets = instances.map((instance) => instance.constructor as ClassType);
  return discoverTools({ toolsets, container: { resolve } });
}

const OPTIONS = optionTable<DiscoverOptions>(
  'discoverTools',
  {
    toolsets: { accepts: Array.isArray, fix: '[ShopTools, …]' },
    container: withMethods(['resolve'], 'a container of tsyringe, or an object with resolve(token)'),
    strict: BOOLEAN,
    logger: LOGGER,
  },
  { classes: 'toolsets: [ShopTools, …]' },
);

/** Frequent mistakes instead of options or classes. */
function misuses(options: DiscoverOptions): readonly OptionFault[] {
  const fix = 'discoverTools({ toolsets: [ShopTools, …] })';
  if (Array.isArray(options)) return [{ option: '', problem: 'it expects options, not a list', fix }];
  const faults = optionFaults(options, OPTIONS);
  const toolsets: unknown = options?.toolsets;
  if (!Array.isArray(toolsets)) return faults;
  const others: OptionFault[] = [];
  for (const [index, toolset] of toolsets.entries()) {
    if (typeof toolset === 'function') continue;
    const found = isObject(toolset)
      ? `an instance of ${toolset.constructor?.name ?? 'nothing'}`
      : String(toolset);
    others.push({ option: `toolsets[${index}]`, problem: `${found} is not a class`, fix });
  }
  return [...faults, ...others];
}

function refuse(faults: readonly AuthorFault[]): void {
  if (faults.length > 0) throw new ToolDeclarationError(faults);
}

/** Loggers that already received the warning; it is the same for all classes of one build. */
const warnedOfOptionality = new WeakSet<object>();

function warnOfUnknownOptionality(parameters: readonly string[], logger: Logger | undefined): void {
  const [first] = parameters;
  const receiver = logger ?? process;
  if (first === undefined || warnedOfOptionality.has(receiver)) return;
  warnedOfOptionality.add(receiver);
  const others = parameters.length === 1 ? '' : ` and ${parameters.length - 1} more`;
  const message =
    `${first}${others}: required, because decorator metadata does not contain whether a parameter has a \`?\` ` +
    '(npx toolwright generate reads the types: import the generated file; or @Param({ required }))';
  if (logger === undefined)
    process.emitWarning(message, { type: 'ToolwrightWarning', code: 'TOOLWRIGHT_OPTIONALITY' });
  else logger.info(message);
}

function hosted(toolset: ClassType) {
  return { class: toolset, scope: readRecord(toolset)?.toolset?.scope };
}

function duplicates(tools: readonly PlannedTool[]): readonly AuthorFault[] {
  const first = new Map<string, PlannedTool>();
  const faults: AuthorFault[] = [];
  for (const tool of tools) {
    const kind = tool.served?.kind ?? 'tool';
    const key = `${kind} ${tool.name}`;
    const other = first.get(key);
    if (other === undefined) first.set(key, tool);
    else
      faults.push({
        where: methodPlace(tool),
        problem: `its name "${tool.name}" is also the name of ${methodPlace(other)}`,
        fix: `${NAMING[kind]} on one of them, or @Toolset({ prefix })`,
      });
  }
  return faults;
}

/** How the method of a tool is called. */
interface MethodCalling extends Pick<ToolDefinition, 'container' | 'ignoresContext' | 'execute'> {
  /** Passes the instance that a call of the tool has to `use`, which calls a companion method. */
  readonly withInstance: (context: ToolContext, use: (instance: object) => unknown) => unknown;
}

/** Creates the tool of a planned method; its host determines how it is called. */
export function toolOfMethod(
  planned: PlannedTool,
  { withInstance, ...calling }: MethodCalling,
): ToolDefinition {
  const { class: owner, key, options, call: _, bindings, facts: __, ...parts } = planned;
  const companions: Partial<Record<Companion, unknown>> = {};
  for (const role of COMPANIONS) {
    const name = options[role];
    if (name !== undefined)
      companions[role] = async (effect: unknown, context: ToolContext): Promise<unknown> =>
        withInstance(context, (instance) =>
          (instance as Readonly<Record<string, (...args: unknown[]) => unknown>>)[name]?.(effect, context),
        );
  }
  const tool = freezeTool(options, {
    ...parts,
    ...(companions as Pick<ToolDefinition, Companion>),
    observesSignal: bindings.some(({ from }) => from === 'signal') || undefined,
    ...calling,
    ...(parts.served && {
      // A prompt or resource returns a value and not text for a model: it is passed on unchanged.
      execute: async (args, context) => {
        const value: unknown = await calling.execute(args, context);
        const isFailure = value instanceof ToolResult && value.isError;
        return isFailure ? value : new ToolResult({ forLLM: 'ok', details: value });
      },
    }),
  });
  bindMethod(tool, { class: owner, key });
  return tool;
}
