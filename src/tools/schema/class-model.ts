import type { ClassType, ParamOptions } from '../../core/contract/declaration.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { OrFaults } from '../../core/errors/author-fault.js';
import { type Fields, filterFields, isRecord, withoutUndefined } from '../../core/kernel/json.js';
import { isBundled } from '../../core/kernel/optional-package.cjs';
import {
  lineage,
  loadedDtoClasses,
  nearest,
  readDescription,
  readRecord,
} from '../../core/metadata/class-record.js';
import {
  classTransforms,
  copiedProperties,
  isOutOfReach,
  type ValidationRule,
  validatedProperties,
  validationRules,
} from '../validators/dto-rules.js';
import { isJsonScalar, type TypeHint, type ValueRules } from './class-validator-rules.js';
import { type ApiProperty, type DecoratedProperty, fromProperty } from './from-declaration.js';
import { BOUNDS, regularExpression } from './keywords.js';
import type { ClassModel, PropertyModel, ValueType } from './value-type.js';
import {
  enumValues,
  fromGenerated,
  isEnumObject,
  type PropertyFault,
  resolveTypeReference,
} from './value-type.js';

/** The model of a class, or all properties that cannot be described. */
type ClassModelResult = OrFaults<{ readonly model: ClassModel }, PropertyFault>;

// By reference, not by name: many tool inputs are called `Input` or `Args`.
const models = new WeakMap<ClassType, Map<string, ClassModelResult>>();

/** Names that would change an object's prototype instead of the object. */
const UNSAFE: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

const NO_GROUPS: readonly string[] = [];

/**
 * The model of a DTO class, from class-validator, class-transformer, `@Param`, the generated file and decorator
 * metadata of the class and its bases; properties of bases come first. The class is never instantiated. The same
 * class and groups return the same object.
 *
 * @example
 * ```ts
 * const read = classModel(CreateOrderDto, ['create']);
 * if (!read.ok) throw new Error(read.faults.map(({ problem }) => problem).join('; '));
 * ```
 */
export function classModel(target: ClassType, groups = NO_GROUPS): ClassModelResult {
  const key = groups.length === 0 ? '' : JSON.stringify([...new Set(groups)].sort());
  const ofClass = models.get(target) ?? new Map<string, ClassModelResult>();
  const before = ofClass.get(key);
  if (before !== undefined) return before;
  const result = buildModel(target, groups);
  // A failure is not stored: with circular imports, the class may be complete later.
  if (result.ok) models.set(target, ofClass.set(key, result));
  return result;
}

function buildModel(target: ClassType, groups: readonly string[]): ClassModelResult {
  const rules = validationRules(target, groups);
  const properties = new Map<string, PropertyModel>();
  const remaining: ClassModel['remaining'][] = [];
  const disagreements: string[] = [];
  const faults: PropertyFault[] = [];
  const decorated = decoratedProperties(target, groups, rules);
  for (const property of decorated) {
    const where = `property ${target.name}.${property.key}`;
    const result = fromProperty(property);
    if (!result.ok) {
      const { problem, causes, fix } = result;
      faults.push({ property: property.key, problem: `${where}: ${problem}`, causes, fix });
      continue;
    }
    // If two properties have the same JSON name, the later declaration wins.
    properties.set(result.property.name, result.property);
    remaining.push(result.remaining);
    if (result.disagreement !== undefined) disagreements.push(`${where}: ${result.disagreement}`);
  }
  if (decorated.length === 0)
    faults.push({
      property: '',
      problem: `the properties of class ${target.name} are unknown`,
      causes: [
        'no property of the class has a decorator',
        'its decorators come from a second copy of class-validator or class-transformer',
        'it is a mapped type (PartialType, PickType, …) of a class with nothing but @Param: mapped types contain only properties with a decorator of class-validator, of class-transformer or @ApiProperty',
      ],
      fix: '@Param, or a decorator of class-validator, on every property of the class',
    });
  if (rules.size > 0 && isOutOfReach())
    faults.push({
      property: '',
      problem: `the class-validator of class ${target.name} is inside a bundle, where it cannot be accessed`,
      fix: isBundled()
        ? "import 'toolwright/dto' before the class, which makes it accessible"
        : 'class-validator, class-transformer and toolwright in the bundle, or all of them external',
    });
  if (faults.length > 0) return { ok: false, faults };
  const single = remaining.flatMap((ofProperty) => (typeof ofProperty === 'string' ? [] : ofProperty));
  const rest = single.length === 0 ? 'none' : single;
  const model: ClassModel = {
    properties: [...properties.values()],
    remaining: remaining.includes('all') ? 'all' : rest,
  };
  return { ok: true, model: disagreements.length > 0 ? { ...model, disagreements } : model };
}

/** The decorated properties that arguments may set. */
function decoratedProperties(
  target: ClassType,
  groups: readonly string[],
  rules: ReadonlyMap<string, readonly ValidationRule[]>,
): readonly DecoratedProperty[] {
  const ancestors = lineage(target);
  const transforms = classTransforms(target);
  const mapped = ancestors.map(mappedProperties);
  const sources = new Map(mapped.flatMap((sourcesOf) => [...sourcesOf]));
  const keys = ancestors.flatMap((ancestor, index) =>
    [
      Object.keys(readDescription(ancestor)?.properties ?? {}),
      apiProperties(ancestor),
      validatedProperties(ancestor),
      transforms.ownProperties(ancestor),
      [...propertyOptions(ancestor).keys()],
      [...(mapped[index]?.keys() ?? [])],
    ].reduce<readonly string[]>(mergeOrders, []),
  );
  const options = inheritedOptions(target);
  const rulesOfAnyGroup = groups.length > 0 ? validationRules(target) : rules;
  const reflect = Reflect as { getMetadata?(name: string, of: object, key: string): unknown };
  const found: DecoratedProperty[] = [];
  for (const key of new Set(keys)) {
    if (typeof key !== 'string' || UNSAFE.has(key) || transforms.withholds(key)) continue;
    const source = sources.get(key) ?? target;
    // Without a type if reflect-metadata is not loaded or the build tool emits none.
    const designType = (owner: ClassType): unknown =>
      reflect.getMetadata?.('design:type', owner.prototype, key);
    found.push({
      key,
      options: options.get(key) ?? {},
      rules: rules.get(key),
      rulesOfAnyGroup: rulesOfAnyGroup.get(key),
      transform: transforms.ruleOf(key),
      designType: designType(target) ?? designType(source),
      groups: groups.length > 0 ? groups : undefined,
      // The class's own description, or that of the nearest base that has one.
      generated: nearest(target, (ancestor) => {
        const { properties, $defs } = readDescription(ancestor) ?? {};
        if (properties === undefined || !Object.hasOwn(properties, key)) return undefined;
        const property = properties[key];
        return property && { ...fromGenerated(property.schema, $defs), optional: property.optional ?? false };
      }),
      api: apiProperty(target, key) ?? apiProperty(source, key),
    });
  }
  return found;
}

/**
 * Merges partial orders of declaration: each decorator package has its own list of decorated properties. A
 * name is inserted before the next name that both lists contain, otherwise at the end.
 */
function mergeOrders(known: readonly string[], added: readonly string[]): readonly string[] {
  if (added.length === 0) return known;
  if (known.length === 0) return [...new Set(added)];
  const merged = [...known];
  for (const [index, name] of added.entries()) {
    if (merged.includes(name)) continue;
    const next = added.slice(index + 1).find((later) => known.includes(later));
    merged.splice(next === undefined ? merged.length : merged.indexOf(next), 0, name);
  }
  return merged;
}

/**
 * The properties of a class that a mapped type created (`PartialType`, `PickType`, …), with the class that each was
 * taken from. Such a class has no base class and no `@Param` records. Its source is found by the class-validator
 * rules that were copied, or by its name if it has no rules.
 */
function mappedProperties(target: ClassType): ReadonlyMap<string, ClassType> {
  const copied = copiedProperties(target);
  const named = namedSource(target);
  if (copied.size === 0 && named.length === 0) return copied;
  const sources = new Map(copied);
  for (const source of new Set([...copied.values(), ...named])) {
    const known = [...validatedProperties(target), ...apiProperties(target)];
    // Whether it took every property, also those without rules, according to its name.
    const { name } = target;
    const takesAll =
      name === `Partial${source.name}` || (name.startsWith('Intersection') && name.includes(source.name));
    for (const ancestor of lineage(source))
      for (const key of [...propertyOptions(ancestor).keys(), ...apiProperties(ancestor)])
        if (!sources.has(key) && (takesAll || known.includes(key))) sources.set(key, source);
  }
  return sources;
}

/**
 * The `@Param` options of a class's properties; a subclass that decorates a property again overrides single options.
 */
function inheritedOptions(target: ClassType): ReadonlyMap<string, ParamOptions> {
  const options = new Map<string, ParamOptions>();
  const add = (key: string, more: ParamOptions) => options.set(key, { ...options.get(key), ...more });
  for (const ancestor of lineage(target)) {
    for (const [key, source] of mappedProperties(ancestor)) {
      const said = inheritedOptions(source).get(key);
      const isUnruled = ancestor.name.startsWith('Partial') && !validatedProperties(ancestor).includes(key);
      const isMarked = (owner: ClassType): boolean =>
        validationRules(owner)
          .get(key)
          ?.some(({ role }) => role === 'conditional') === true;
      if (isUnruled || (isMarked(ancestor) && !isMarked(source))) add(key, { ...said, required: false });
      else if (said !== undefined) add(key, said);
    }
    for (const [key, own] of propertyOptions(ancestor)) add(key, own);
  }
  return options;
}

/** The source of a mapped class without rules: the class whose name is part of its own. */
function namedSource(target: ClassType): readonly ClassType[] {
  const mapped = MAPPED_NAME.exec(target.name)?.[1];
  if (mapped === undefined || !MAPPED_CLASS.test(Function.prototype.toString.call(target))) return [];
  const named = loadedDtoClasses().filter(({ name }) => mapped.startsWith(name));
  const longest = Math.max(0, ...named.map(({ name }) => name.length));
  const meant = named.filter(({ name }) => name !== '' && name.length === longest);
  return meant.length === 1 ? meant : [];
}

/** The beginning of the constructors of all mapped types. */
const MAPPED_CLASS = /inheritPropertyInitializers\)?\(this\b/;
const MAPPED_NAME = /^(?:Partial|Pick|Omit)(.+)$/;

const NO_PROPERTIES: ReadonlyMap<string, ParamOptions> = new Map();

/** The `@Param` options of this class's own properties, in declaration order. */
function propertyOptions(target: ClassType): ReadonlyMap<string, ParamOptions> {
  return readRecord(target)?.properties ?? NO_PROPERTIES;
}

/** The metadata keys of `@nestjs/swagger`; the package itself is not loaded. */
const PROPERTIES = 'swagger/apiModelPropertiesArray';
const PROPERTY = 'swagger/apiModelProperties';
const OPERATION = 'swagger/apiOperation';

/** The properties of this class with `@ApiProperty`, without inherited and response-only properties. */
function apiProperties(target: ClassType): readonly string[] {
  const keys = metadata(PROPERTIES, target.prototype);
  if (!Array.isArray(keys)) return [];
  return keys
    .map((key) => String(key).slice(1))
    .filter((key) => readMetadata(target, key)?.readOnly !== true);
}

/** The facts from `@ApiProperty` on a property of a class or its bases. */
function apiProperty(target: ClassType, key: string): ApiProperty | undefined {
  const said = readMetadata(target, key);
  if (said === undefined) return undefined;
  const { isArray, type } = typeOf(said);
  const keywords = saidKeywords(said);
  const { items: nested } = said;
  const ofItems = isArray && isRecord(nested) ? { ...said, ...nested } : said;
  const isMoved = (name: string): boolean => MOVED_TO_ITEMS.includes(name);
  const { enum: source } = ofItems;
  const listed = Array.isArray(source) || isEnumObject(source) ? enumValues(source).filter(isJsonScalar) : [];
  const values: ValueRules = {
    hint: hintOf(type),
    values: listed.length === 0 ? undefined : listed,
    keywords: isArray ? filterFields(keywords, isMoved) : keywords,
  };
  const array: ValueRules = { hint: 'array', keywords: filterFields(keywords, (name) => !isMoved(name)) };
  const hint = isArray ? 'array' : hintOf(type);
  const { default: initial } = said;
  const isOfType =
    (hint === 'array' && Array.isArray(initial)) ||
    (hint === 'integer' && Number.isInteger(initial)) ||
    hint === undefined ||
    typeof initial === hint;
  return {
    description: textOf(said.description),
    required: flagOf(said.required),
    nullable: flagOf(said.nullable),
    // A documented default may have any type.
    default: isOfType ? initial : undefined,
    own: isArray ? array : values,
    items: isArray ? values : { keywords: {} },
    type: hintOf(type) === undefined ? type : undefined,
  };
}

/** The summary or description in `@ApiOperation` of a method, or both. */
export function apiDescription(method: unknown): string | undefined {
  if (typeof method !== 'function') return undefined;
  const said = metadata(OPERATION, method);
  if (!isRecord(said)) return undefined;
  const texts = [said.summary, said.description].filter((text) => typeof text === 'string' && text !== '');
  return texts.length === 0 ? undefined : [...new Set(texts)].join('\n');
}

function typeOf(said: Fields): { readonly isArray: boolean; readonly type?: ValueType } {
  const { items } = said;
  const isList = said.isArray === true || said.type === 'array';
  const reference = said.type === 'array' ? (isRecord(items) ? items.type : undefined) : said.type;
  if (reference === undefined || reference === Array || reference === 'file') return { isArray: isList };
  if (isRecord(reference) && !isEnumObject(reference)) return { isArray: isList };
  const resolved = resolveTypeReference(reference);
  if (!resolved.ok) return { isArray: isList };
  if (resolved.type.kind === 'array') return { isArray: true, type: resolved.type.items };
  return { isArray: isList, type: resolved.type };
}

function hintOf(type: ValueType | undefined): TypeHint | undefined {
  if (type?.kind === 'scalar') return type.name;
  if (type?.kind === 'date') return 'date';
  return type?.kind === 'schema' ? 'object' : undefined;
}

/** Other formats (`int64`, `password`, `binary`) are OpenAPI's own and cannot be checked. */
const FORMATS: ReadonlySet<unknown> = new Set([
  ...['date-time', 'date', 'time', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uri', 'uuid'],
]);

/** On an array, `@nestjs/swagger` applies these to the items. */
const MOVED_TO_ITEMS = ['format', 'maximum', 'maxLength', 'minimum', 'minLength', 'pattern'];

function saidKeywords(said: Fields): JsonSchema {
  const { title, format, pattern, exclusiveMinimum, exclusiveMaximum, uniqueItems, deprecated } = said;
  const bounds = BOUNDS.filter((name) => Number.isFinite(said[name])).map((name) => [name, said[name]]);
  const { minimum, maximum, ...others } = Object.fromEntries(bounds);
  const shown = said.example === undefined ? said.examples : [said.example];
  const examples = isRecord(shown)
    ? Object.values(shown).map((each) => (isRecord(each) && 'value' in each ? each.value : each))
    : shown;
  return withoutUndefined({
    title: textOf(title),
    format: FORMATS.has(format) ? String(format) : undefined,
    pattern: typeof pattern === 'string' && regularExpression(pattern) ? pattern : undefined,
    // OpenAPI 3.0 writes `exclusiveMinimum: true` beside `minimum`; JSON Schema has the number itself.
    [exclusiveMinimum === true ? 'exclusiveMinimum' : 'minimum']: minimum,
    [exclusiveMaximum === true ? 'exclusiveMaximum' : 'maximum']: maximum,
    ...others,
    uniqueItems: uniqueItems === true || undefined,
    deprecated: deprecated === true || undefined,
    examples: Array.isArray(examples) && examples.length > 0 ? examples : undefined,
  });
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function flagOf(value: unknown): boolean | undefined {
  return typeof value === 'boolean' ? value : undefined;
}

function readMetadata(target: ClassType, key: string): Fields | undefined {
  return nearest(target, ({ prototype }) => {
    const said = metadata(PROPERTY, prototype, key);
    return isRecord(said) ? said : undefined;
  });
}

/** `undefined` if reflect-metadata is not loaded. */
function metadata(name: string, of: object, key?: string): unknown {
  const reflect = Reflect as { getOwnMetadata?(name: string, of: object, key?: string): unknown };
  return key === undefined ? reflect.getOwnMetadata?.(name, of) : reflect.getOwnMetadata?.(name, of, key);
}
