import type { ArgsOptions, ClassType, ParamOptions } from '../../core/contract/declaration.js';
import type { JsonObject, JsonSchema } from '../../core/contract/json-schema.js';
import type { ToolContext } from '../../core/contract/tool-context.js';
import type { OrFaults, UnplacedFault } from '../../core/errors/author-fault.js';
import { listOf, optionFaults, optionTable, TEXT } from '../../core/kernel/options.js';
import { fromParameter } from '../schema/from-parameter.js';
import { NO_METADATA, resolveDesignType } from '../schema/type-reference.js';
import type { ArgumentsModel, PropertyModel } from '../schema/value-type.js';
import { isInjectedType, type ParameterFacts } from './method-facts.js';

/** The signature of a method: the source of each parameter's value, and the model of the arguments. */
interface MethodSignature {
  readonly bindings: readonly ArgumentBinding[];
  readonly arguments: ArgumentsModel;
}

/** A parameter that receives a property of the arguments, all arguments, or an injected value. */
interface BoundParameter {
  readonly binding: ArgumentBinding;
  readonly property?: PropertyModel;
  readonly whole?: ArgumentsModel;
}

/** Reads a method's parameters. Collects every fault instead of stopping at the first. */
export function bindParameters(parameters: readonly ParameterFacts[]): OrFaults<MethodSignature> {
  const isAlone = areAlone(parameters);
  const bindings: ArgumentBinding[] = [];
  const properties: PropertyModel[] = [];
  const wholes: ArgumentsModel[] = [];
  const faults: UnplacedFault[] = [];
  for (const facts of parameters) {
    const bound = bindParameter(facts, isAlone);
    if ('problem' in bound) {
      faults.push(bound);
      continue;
    }
    bindings.push(bound.binding);
    if (bound.property !== undefined) properties.push(bound.property);
    if (bound.whole !== undefined) wholes.push(bound.whole);
  }
  if (parameters.filter(receivesContext).length > 1)
    faults.push({ problem: 'two parameters receive the context', fix: 'one context parameter' });
  faults.push(...clashes(properties, wholes.length));
  if (faults.length > 0) return { ok: false, faults };
  return { ok: true, bindings, arguments: wholes[0] ?? { properties } };
}

/**
 * Binds a method's parameters to an explicit schema, which replaces their types. A parameter receives the property
 * with its name. A single parameter that matches no property receives the whole arguments object.
 */
export function bindToSchema(
  parameters: readonly ParameterFacts[],
  schema: JsonSchema,
): OrFaults<Pick<MethodSignature, 'bindings'>> {
  const names = Object.keys(schema.properties ?? {});
  const isAlone = areAlone(parameters);
  const bindings: ArgumentBinding[] = [];
  const faults: UnplacedFault[] = [];
  for (const facts of parameters) {
    const record = facts.records[0];
    const name = (record?.role === 'property' ? record.options.name : undefined) ?? facts.parsed?.name;
    const injected = injectedBinding(facts);
    if (injected !== undefined) bindings.push(injected);
    else if (record?.role === 'arguments') bindings.push({ from: 'arguments' });
    else if (name !== undefined && names.includes(name))
      bindings.push({ from: facts.parsed?.isRest ? 'rest' : 'property', name });
    else if (isAlone && record === undefined) bindings.push({ from: 'arguments' });
    else
      faults.push({
        parameter: name === undefined ? `#${facts.index}` : `${name} (#${facts.index})`,
        problem: 'the explicit schema has no property of its name',
        fix: `@Param({ name: '…' }) with one of ${names.join(', ') || 'the properties (there are none)'}, or @Args()`,
      });
  }
  if (faults.length > 0) return { ok: false, faults };
  return { ok: true, bindings };
}

/** Whether only one parameter receives arguments. */
function areAlone(parameters: readonly ParameterFacts[]): boolean {
  return parameters.filter((facts) => injectedBinding(facts) === undefined).length === 1;
}

function injectedBinding({ records, designType }: ParameterFacts): ArgumentBinding | undefined {
  const record = records[0];
  if (record?.role === 'context') return { from: 'context' };
  if (record !== undefined || !isInjectedType(designType)) return undefined;
  return { from: designType === AbortSignal ? 'signal' : 'context' };
}

function receivesContext(facts: ParameterFacts): boolean {
  const record = facts.records[0];
  const isFilled = record?.role === 'context' && record.isFilled === true;
  return injectedBinding(facts)?.from === 'context' && !isFilled;
}

function bindParameter(facts: ParameterFacts, isAlone: boolean): BoundParameter | UnplacedFault {
  const { records, designType, parsed } = facts;
  const record = records[0];
  if (records.length > 1) {
    return {
      parameter: label(facts),
      problem: 'it has two decorators that contradict each other',
      fix: 'one of @Param, @Args and @Context',
    };
  }
  const injected = injectedBinding(facts);
  if (injected !== undefined) return { binding: injected };
  if (record?.role === 'arguments') return bindWhole(facts, record.options);
  const dto = record === undefined && isAlone && !parsed?.isRest ? dtoClass(designType) : undefined;
  if (dto !== undefined) return { binding: { from: 'arguments' }, whole: { class: dto } };
  return bindProperty(facts, record?.role === 'property' ? record.options : {});
}

function bindWhole(facts: ParameterFacts, options: ArgsOptions): BoundParameter | UnplacedFault {
  const [wrong] = optionFaults(options, ARGS);
  if (wrong !== undefined) return { parameter: label(facts), ...wrong };
  const { designType, generated } = facts;
  const binding = { from: 'arguments' } as const;
  const dto = dtoClass(designType);
  if (dto !== undefined) return { binding, whole: { class: dto, groups: options.groups } };
  if (generated?.type.kind === 'described') return { binding, whole: { type: generated.type } };
  return {
    parameter: label(facts),
    problem: '@Args needs the type of the parameter to be a class at run time',
    causes: [
      'the class is imported with `import type`',
      'the type is an interface, which does not exist at run time',
      NO_METADATA,
    ],
    fix: '@Args() args: SomeDto',
  };
}

function bindProperty(facts: ParameterFacts, options: ParamOptions): BoundParameter | UnplacedFault {
  const { parsed, designType, generated } = facts;
  const name = options.name ?? parsed?.name;
  if (name === undefined) {
    return {
      parameter: label(facts),
      problem: 'it has no name that can be read',
      causes: [
        'it is destructured',
        'the method is native or bound, or a decorator below @Tool has replaced it',
      ],
      fix: "@Param({ name: '…' }), which needs no name in the source; or @Tool next to the method, below other decorators",
    };
  }
  if (name === '__proto__')
    return { parameter: label(facts), problem: 'a property cannot be called __proto__', fix: 'another name' };
  const isRest = parsed?.isRest ?? false;
  const value = fromParameter({
    options: isRest ? restOptions(options, generated ? undefined : designType) : options,
    designType: isRest ? Array : designType,
    defaultValue: parsed?.defaultValue,
    generated,
  });
  if (!value.ok) return { ...value, parameter: label(facts) };
  const { type, nullable, keywords } = value;
  const required = options.required ?? value.required ?? !(isRest || parsed?.hasDefault);
  return {
    binding: { from: isRest ? 'rest' : 'property', name },
    property: { name, type, nullable, keywords, required },
  };
}

/** The metadata of a rest parameter is its element's type. */
function restOptions(options: ParamOptions, designType: unknown): ParamOptions {
  if (options.items !== undefined || options.schema !== undefined) return options;
  const { type, ...others } = options;
  if (type !== undefined) return { ...others, items: type };
  const isKnown =
    typeof designType === 'function' &&
    ![Object, Array, Function, Promise].some((unknown) => unknown === designType);
  return isKnown ? { ...others, items: () => designType as ClassType } : options;
}

/** The class of a design type, if its properties are described. */
function dtoClass(designType: unknown): ClassType | undefined {
  const resolved = resolveDesignType(designType);
  return resolved.ok && resolved.type.kind === 'class' ? resolved.type.class : undefined;
}

function clashes(properties: readonly PropertyModel[], wholes: number): readonly UnplacedFault[] {
  const faults: UnplacedFault[] = [];
  if (wholes > 0 && (properties.length > 0 || wholes > 1)) {
    faults.push({
      problem: 'one parameter takes the whole arguments object, and others want properties of it',
      fix: 'either one @Args() parameter, or @Param on each',
    });
  }
  const names = new Set<string>();
  const doubled = new Set<string>();
  for (const { name } of properties) (names.has(name) ? doubled : names).add(name);
  for (const name of doubled) {
    faults.push({
      problem: `two parameters are the property "${name}"`,
      fix: 'different names in @Param({ name })',
    });
  }
  return faults;
}

function label({ index, parsed }: ParameterFacts): string {
  return parsed?.name === undefined ? `#${index}` : `${parsed.name} (#${index})`;
}

/** The source of a parameter's value. */
export type ArgumentBinding =
  | { readonly from: 'property'; readonly name: string }
  | { readonly from: 'rest'; readonly name: string }
  | { readonly from: 'arguments' }
  | { readonly from: 'context' }
  | { readonly from: 'signal' };

/** Calls a method of an instance with checked arguments, in the order of its parameters. */
export type MethodCaller = (instance: object) => (args: JsonObject, context: ToolContext) => unknown;

type Reader = (args: JsonObject, context: ToolContext) => unknown;
type Methods = Readonly<Record<string | symbol, (...values: unknown[]) => unknown>>;

/**
 * Creates the caller of a method; decisions are made here once and not at each call. The method itself is looked up
 * at each call, so that a subclass or a test may replace it.
 */
export function createCaller(key: string | symbol, bindings: readonly ArgumentBinding[]): MethodCaller {
  const names = bindings.flatMap(plainName);
  const [a = '', b = '', c = '', d = ''] = names;
  // Most methods receive only a few fields: a reader function for each would cost a call.
  switch (names.length === bindings.length ? names.length : undefined) {
    case 0:
      return (instance) => () => (instance as Methods)[key]?.();
    case 1:
      return (instance) => (args) => (instance as Methods)[key]?.(args[a]);
    case 2:
      return (instance) => (args) => (instance as Methods)[key]?.(args[a], args[b]);
    case 3:
      return (instance) => (args) => (instance as Methods)[key]?.(args[a], args[b], args[c]);
    case 4:
      return (instance) => (args) => (instance as Methods)[key]?.(args[a], args[b], args[c], args[d]);
  }
  const rest = bindings.findIndex(({ from }) => from === 'rest');
  const readers = bindings.map(readerOf);
  if (rest >= 0) return callWithRest(key, readers, rest);
  const [first, second, third] = readers;
  // Copying few arguments to an array would cost as much as the call.
  if (first !== undefined && second === undefined)
    return (instance) => (args, context) => (instance as Methods)[key]?.(first(args, context));
  if (first !== undefined && second !== undefined && third === undefined)
    return (instance) => (args, context) =>
      (instance as Methods)[key]?.(first(args, context), second(args, context));
  return (instance) => (args, context) =>
    (instance as Methods)[key]?.(...readers.map((read) => read(args, context)));
}

/**
 * The name of a field that can be read directly. An absent field called `toString` would be read from the prototype.
 */
function plainName(binding: ArgumentBinding): readonly string[] {
  return binding.from === 'property' && !(binding.name in Object.prototype) ? [binding.name] : [];
}

function callWithRest(key: string | symbol, readers: readonly Reader[], rest: number): MethodCaller {
  return (instance) => (args, context) => {
    const values = readers.map((read) => read(args, context));
    const others = (values[rest] as readonly unknown[] | undefined) ?? [];
    return (instance as Methods)[key]?.(...values.slice(0, rest), ...others);
  };
}

function readerOf(binding: ArgumentBinding): Reader {
  switch (binding.from) {
    case 'context':
      return (_args, context) => context;
    case 'signal':
      return (_args, context) => context.signal;
    case 'arguments':
      return (args) => args;
    default: {
      const { name } = binding;
      // An absent argument called `toString` must not be read from the prototype.
      if (name in Object.prototype) return (args) => (Object.hasOwn(args, name) ? args[name] : undefined);
      return (args) => args[name];
    }
  }
}

const ARGS = optionTable<ArgsOptions>('@Args', {
  groups: listOf(TEXT, "a list of class-validator’s groups: ['create']"),
});
