import type { ArgsOptions } from '../contract/args-options.js';
import type { ClassType } from '../contract/class-type.js';
import type { ParamOptions } from '../contract/param-options.js';
import type { AuthorFault } from '../errors/author-fault.js';
import { argsOptionFaults } from '../metadata/tool-option-faults.js';
import { describeValue } from '../schema/describe-value.js';
import type { PropertyModel, ValueType } from '../schema/value-type.js';
import type { ArgumentBinding } from './argument-binding.js';
import { isContextType, isInjectedType, type ParameterFacts } from './parameter-facts.js';

/** A method's signature, understood: the schema's properties and where each parameter gets its value. */
export interface MethodSignature {
  readonly bindings: readonly ArgumentBinding[];
  readonly properties: readonly PropertyModel[];
  /** The DTO class that takes the whole arguments object, instead of `properties`. */
  readonly argumentsClass?: { readonly class: ClassType; readonly groups?: readonly string[] };
  /** The described type that takes it, where that is no class. */
  readonly argumentsType?: ValueType;
}

/** A fault within one method; the caller knows class and method. */
export type ParameterFault = Omit<AuthorFault, 'where'>;

/** The signature, or every fault of its parameters. */
export type DescribedMethod =
  | { readonly ok: true; readonly signature: MethodSignature }
  | { readonly ok: false; readonly faults: readonly ParameterFault[] };

type DescribedParameter =
  | {
      readonly binding: ArgumentBinding;
      readonly property?: PropertyModel;
      readonly class?: MethodSignature['argumentsClass'];
      readonly type?: ValueType;
    }
  | { readonly fault: ParameterFault };

/** Understands a method's parameters. Collects every fault instead of stopping at the first. */
export function describeMethod(parameters: readonly ParameterFacts[]): DescribedMethod {
  const takesAll = parameters.filter((facts) => !isInjected(facts)).length === 1;
  const described = parameters.map((facts) => describeParameter(facts, takesAll));
  const bindings = described.flatMap((one) => ('binding' in one ? [one.binding] : []));
  const properties = described.flatMap((one) => ('property' in one && one.property ? [one.property] : []));
  const classes = described.flatMap((one) => ('class' in one && one.class ? [one.class] : []));
  const types = described.flatMap((one) => ('type' in one && one.type ? [one.type] : []));
  const faults = [
    ...described.flatMap((one) => ('fault' in one ? [one.fault] : [])),
    ...clashes({
      contexts: parameters.filter(receivesContext).length,
      properties,
      classes: classes.length + types.length,
    }),
  ];
  if (faults.length > 0) return { ok: false, faults };
  return {
    ok: true,
    signature: { bindings, properties, argumentsClass: classes[0], argumentsType: types[0] },
  };
}

function describeParameter(facts: ParameterFacts, takesAll: boolean): DescribedParameter {
  const [record, second] = facts.records;
  if (second !== undefined) {
    return fault(facts, {
      problem: 'it has two decorators that contradict each other',
      fix: 'one of @Param, @Args and @Context',
    });
  }
  if (record?.role === 'context') return { binding: { from: 'context' } };
  if (record === undefined && isInjected(facts)) {
    return { binding: { from: facts.designType === AbortSignal ? 'signal' : 'context' } };
  }
  if (record?.role === 'arguments') return describeArguments(facts, record.options);
  if (record === undefined && takesAll && isDtoClass(facts.designType) && !facts.parsed?.isRest) {
    return { binding: { from: 'arguments' }, class: { class: facts.designType } };
  }
  return describeProperty(facts, record?.options ?? {});
}

function describeArguments(facts: ParameterFacts, options: ArgsOptions): DescribedParameter {
  const [wrong] = argsOptionFaults(options);
  if (wrong !== undefined) return fault(facts, wrong);
  const { groups } = options;
  if (isDtoClass(facts.designType)) {
    return { binding: { from: 'arguments' }, class: { class: facts.designType, groups } };
  }
  const type = facts.described?.type;
  if (type?.kind === 'described') return { binding: { from: 'arguments' }, type };
  return fault(facts, {
    problem: '@Args needs the type of the parameter to be a class at run time',
    causes: [
      'the class is imported with `import type`',
      'the type is an interface, which does not exist at run time',
      'the build tool emits no decorator metadata (esbuild, tsx): run `npx toolwright generate` and import the file that it writes',
    ],
    fix: '@Args() args: SomeDto',
  });
}

function describeProperty(facts: ParameterFacts, options: ParamOptions): DescribedParameter {
  const name = options.name ?? facts.parsed?.name;
  if (name === undefined) {
    return fault(facts, {
      problem: 'it has no name that can be read',
      causes: [
        'it is destructured',
        'the method is native or bound, or a decorator below @Tool has put another function in its place',
      ],
      fix: "@Param({ name: '…' }), which needs no name in the source; or @Tool next to the method, below other decorators",
    });
  }
  if (name === '__proto__')
    return fault(facts, { problem: 'a property cannot be called __proto__', fix: 'another name' });
  const isRest = facts.parsed?.isRest ?? false;
  const described = describeValue({
    options: isRest ? restOptions(options, facts.described ? undefined : facts.designType) : options,
    designType: isRest ? Array : facts.designType,
    defaultValue: facts.parsed?.defaultValue,
    described: facts.described,
  });
  if (!described.ok) return { fault: { ...described, parameter: label(facts) } };
  const { type, nullable, keywords } = described;
  const required = options.required ?? described.required ?? !(isRest || facts.parsed?.hasDefault);
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
  return isKnownToken(designType) ? { ...others, items: () => designType } : options;
}

function isKnownToken(designType: unknown): designType is ClassType {
  return (
    typeof designType === 'function' &&
    ![Object, Array, Function, Promise].some((type) => type === designType)
  );
}

const VALUE_CLASSES: readonly unknown[] = [
  String,
  Number,
  Boolean,
  BigInt,
  Symbol,
  Object,
  Array,
  Function,
  Promise,
  Map,
  Set,
  RegExp,
  Date,
  URL,
  Uint8Array,
  ArrayBuffer,
];

/** Whether a design type is a class whose instances are described property by property. */
function isDtoClass(designType: unknown): designType is ClassType {
  if (typeof designType !== 'function' || VALUE_CLASSES.includes(designType)) return false;
  return !(designType.prototype instanceof Uint8Array) && designType.prototype !== undefined;
}

function isInjected({ records, designType }: ParameterFacts): boolean {
  return records.length === 0 ? isInjectedType(designType) : records[0]?.role === 'context';
}

function receivesContext({ records: [record], designType }: ParameterFacts): boolean {
  if (record === undefined) return isContextType(designType);
  return record.role === 'context' && record.isFilled !== true;
}

function clashes(of: {
  readonly contexts: number;
  readonly properties: readonly PropertyModel[];
  readonly classes: number;
}): readonly ParameterFault[] {
  const faults: ParameterFault[] = [];
  if (of.contexts > 1) {
    faults.push({ problem: 'two parameters receive the context', fix: 'one context parameter' });
  }
  if (of.classes > 0 && (of.properties.length > 0 || of.classes > 1)) {
    faults.push({
      problem: 'one parameter takes the whole arguments object, and others want properties of it',
      fix: 'either one @Args() parameter, or @Param on each',
    });
  }
  const names = of.properties.map(({ name }) => name);
  for (const name of new Set(names.filter((name, index) => names.indexOf(name) !== index))) {
    faults.push({
      problem: `two parameters are the property "${name}"`,
      fix: 'different names in @Param({ name })',
    });
  }
  return faults;
}

function fault(facts: ParameterFacts, what: Omit<ParameterFault, 'parameter'>): DescribedParameter {
  return { fault: { parameter: label(facts), ...what } };
}

function label({ index, parsed }: ParameterFacts): string {
  return parsed?.name === undefined ? `#${index}` : `${parsed.name} (#${index})`;
}
