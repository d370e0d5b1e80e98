import type { ClassType } from '../../core/contract/declaration.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { OrFaults } from '../../core/errors/author-fault.js';
import { cached } from '../../core/kernel/cached.js';
import { freeName } from '../../core/kernel/free-name.js';
import { childPath, filterFields, pointerStep, setOwn, withoutUndefined } from '../../core/kernel/json.js';
import { readDescription } from '../../core/metadata/class-record.js';
import { classModel } from './class-model.js';
import {
  allSchemas,
  findReference,
  KEYWORDS,
  mapSubschemas,
  mergeKeywords,
  nullableSchema,
} from './keywords.js';
import type { PropertyFault } from './value-type.js';
import {
  type ArgumentsModel,
  type ClassModel,
  type DescribedType,
  type PropertyModel,
  referredDefinition,
  TEXTUAL_TYPES,
  type ValueType,
} from './value-type.js';

const taggedModels = new WeakMap<ClassModel, Map<string, ClassModel>>();

/**
 * A branch of a union, always the same object for the same tag. The tag is a property of its branch: the class's own,
 * if it has one, otherwise an additional first property.
 */
function taggedModel(model: ClassModel, name: string, value: string): ClassModel {
  const branches = cached(taggedModels, model, () => new Map<string, ClassModel>());
  return cached(branches, JSON.stringify([name, value]), () => {
    const own = model.properties.find((property) => property.name === name);
    const tag: PropertyModel = {
      name,
      type: { kind: 'scalar', name: 'string' },
      required: true,
      nullable: false,
      keywords: withoutUndefined({ const: value, description: own?.keywords.description }),
    };
    const { properties } = model;
    return {
      ...model,
      properties: own
        ? properties.map((property) => (property === own ? tag : property))
        : [tag, ...properties],
    };
  });
}

/** A schema, or all faults that prevent it. */
type WriteSchemaResult = OrFaults<WrittenSchema, PropertyFault>;

interface WrittenSchema {
  readonly schema: JsonSchema;
  /** The schema of values before they are transformed, if it differs. */
  readonly accepted?: JsonSchema;
  readonly disagreements?: readonly string[];
}

/**
 * The JSON Schema (2020-12) of an arguments object: `type`, `properties`, `required` (possibly empty) and, if a class
 * contains itself, `$defs`. The same model gives the same bytes.
 */
export function writeParameters(model: ArgumentsModel): WriteSchemaResult {
  if ('properties' in model) return write(model);
  if ('type' in model)
    // The root has `type: 'object'` itself: providers require it there, not behind a reference or in branches.
    return mapWritten(typeSchema(model.type), ({ $ref, $defs, ...schema }) => {
      const name = typeof $ref === 'string' ? $ref.replace(/^#\/\$defs\//, '') : undefined;
      const root = { type: 'object', ...(name === undefined ? {} : $defs?.[name]), ...schema };
      return $defs === undefined ? root : { ...root, $defs };
    });
  const read = classModel(model.class, model.groups);
  return read.ok ? write(read.model) : read;
}

function mapWritten(written: WriteSchemaResult, map: (schema: JsonSchema) => JsonSchema): WriteSchemaResult {
  if (!written.ok) return written;
  const { schema, accepted } = written;
  return { ok: true, schema: map(schema), accepted: accepted && map(accepted) };
}

/** The JSON Schema of a single type. */
export function typeSchema(type: ValueType): WriteSchemaResult {
  const property = { name: 'value', type, required: true, nullable: false, keywords: {} };
  return mapWritten(writeParameters({ properties: [property] }), ({ properties, $defs }) => ({
    ...properties?.value,
    ...($defs === undefined ? {} : { $defs }),
  }));
}

function write(model: Pick<ClassModel, 'properties' | 'disagreements'>): WriteSchemaResult {
  const { properties, disagreements = [] } = model;
  const found: Found = {
    faults: new Map(),
    disagreements: new Set(disagreements),
    isTransformed: false,
    classes: new Map([[model, 'open']]),
    recursive: new Set(),
  };
  const writeAs = (how: Pick<Writing, 'isAccepted' | 'isFirst'>): JsonSchema => {
    const definitions = new Definitions();
    return definitions.attachTo(writeObject(properties, { ...how, found, definitions, path: '' }));
  };
  const first = writeAs({ isFirst: true });
  if (found.faults.size > 0) return { ok: false, faults: [...found.faults.values()].flat() };
  return {
    ok: true,
    schema: found.isRepeated ? writeAs({}) : first,
    accepted: found.isTransformed ? writeAs({ isAccepted: true }) : undefined,
    disagreements: found.disagreements.size > 0 ? [...found.disagreements] : undefined,
  };
}

/** What is found while a schema is written for the first time. */
interface Found {
  /** All faults that prevent a schema, by class. */
  readonly faults: Map<ClassType, readonly PropertyFault[]>;
  /** Contradictions that do not prevent a schema. */
  readonly disagreements: Set<string>;
  /** Some values are transformed before they are checked. */
  isTransformed: boolean;
  /** Every class; open while its properties are written. */
  readonly classes: Map<unknown, 'open' | 'written'>;
  /** Some class occurs again, and was left out there. */
  isRepeated?: boolean;
  /** Classes that contain themselves and therefore need a name in `$defs`. */
  readonly recursive: Set<ClassModel>;
}

/** Shared by the parts of a schema that is being written. */
interface Writing {
  readonly found: Found;
  readonly definitions: Definitions;
  /** Writes the schema of values before they are transformed, instead of the offered one. */
  readonly isAccepted?: boolean;
  /** Each class is written once, to find those that contain themselves. */
  readonly isFirst?: boolean;
  /** The property that is being written. */
  readonly path: string;
}

/** `type`, `properties` and `required` of an object; `required` is present even if it is empty. */
function writeObject(properties: readonly PropertyModel[], writing: Writing): JsonSchema {
  const written: Record<string, JsonSchema> = {};
  const required: string[] = [];
  for (const property of properties) {
    const { name, transformedFirst, keywords } = property;
    writing.found.isTransformed ||= transformedFirst !== undefined;
    const isOpen = writing.isAccepted && transformedFirst !== undefined;
    const { default: fallback } = keywords;
    const open = fallback === undefined ? {} : { default: fallback };
    const path = childPath(writing.path, name);
    setOwn(written, name, isOpen ? open : writeProperty(property, { ...writing, path }));
    if (property.required && !(isOpen && transformedFirst === 'always')) required.push(name);
  }
  return { type: 'object', properties: written, required };
}

/** Types whose JSON form is a default that `@Param` may replace. */
const BY_DEFAULT: ReadonlySet<ValueType['kind']> = new Set(['date', 'url', 'bytes', 'buffer']);

function writeProperty({ type, nullable, keywords: said }: PropertyModel, writing: Writing): JsonSchema {
  const schema = writeValue(type, writing);
  const keywords = BY_DEFAULT.has(type.kind) ? said : keywordsBeside(schema, said);
  if (!nullable) return { ...schema, ...keywords };
  if (keywords.const === undefined) return { ...nullableSchema(schema), ...keywords };
  const { const: only, ...others } = keywords;
  return { ...nullableSchema({ ...schema, enum: [only] }), ...others };
}

/** Keywords that cannot be merged: two values must both apply. */
const FITTED: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf', 'not', 'const']);

/** The keywords to add to a schema: differing constraints are merged; later texts and defaults win. */
function keywordsBeside(schema: JsonSchema, said: JsonSchema): JsonSchema {
  const names = Object.keys(said).filter((name) => {
    const { of, validates } = KEYWORDS.get(name) ?? {};
    return schema[name] !== undefined && (FITTED.has(name) || (of !== undefined && validates === undefined));
  });
  if (names.length === 0) return said;
  // Constraints that do not fit into one keyword go into `allOf`, so both `allOf` lists are merged.
  const isMerged = (name: string, value: unknown): boolean =>
    value !== undefined && (name === 'allOf' || names.includes(name));
  return { ...said, ...mergeKeywords(filterFields(schema, isMerged), filterFields(said, isMerged)) };
}

function writeValue(type: ValueType, writing: Writing): JsonSchema {
  switch (type.kind) {
    case 'any':
      return {};
    case 'scalar':
      return { type: type.name };
    case 'enum': {
      const { values } = type;
      // `type` is added if all values share one, because some models need it.
      const types = new Set(values.filter((value) => value !== null).map((value) => typeof value));
      const [only] = types;
      if (only === undefined || types.size > 1) return { enum: values };
      return { type: values.includes(null) ? [only, 'null'] : only, enum: values };
    }
    case 'array':
      return { type: 'array', items: { ...writeValue(type.items, writing), ...type.keywords } };
    case 'record':
      return {
        type: 'object',
        additionalProperties: type.values.kind === 'any' ? true : writeValue(type.values, writing),
      };
    case 'class':
      return writeClass(type, writing);
    case 'tagged':
      return {
        anyOf: type.variants.map(({ class: target, tag }) =>
          writeClass({ class: target, groups: type.groups }, writing, {
            property: type.property,
            value: tag,
          }),
        ),
      };
    case 'schema':
      return embedSchema(type.schema, writing.definitions);
    case 'described':
      return writeDescribed(type, writing);
    default:
      return { ...TEXTUAL_TYPES.get(type.kind)?.schema };
  }
}

/** Written inline, unless it contains itself. */
function writeClass(
  { class: target, groups }: Pick<ClassValue, 'class' | 'groups'>,
  writing: Writing,
  tag?: { readonly property: string; readonly value: string },
): JsonSchema {
  const { found, definitions, path, isFirst } = writing;
  const read = classModel(target, groups);
  if (!read.ok) {
    const faults = read.faults.map((fault) => ({
      ...fault,
      property: [path, fault.property].filter((part) => part !== '').join('.'),
    }));
    if (!found.faults.has(target)) found.faults.set(target, faults);
    return {};
  }
  const model = tag ? taggedModel(read.model, tag.property, tag.value) : read.model;
  for (const disagreement of model.disagreements ?? []) found.disagreements.add(disagreement);
  // A minifier may have changed the name.
  const name = readDescription(target)?.name ?? target.name;
  const write = (): JsonSchema => writeObject(model.properties, writing);
  if (!isFirst) return found.recursive.has(model) ? definitions.refer(model, name, write) : write();
  const before = found.classes.get(model);
  if (before === 'open') found.recursive.add(model);
  if (before !== undefined) {
    found.isRepeated = true;
    return {};
  }
  found.classes.set(model, 'open');
  const schema = write();
  found.classes.set(model, 'written');
  return schema;
}

type ClassValue = ValueType & { readonly kind: 'class' };

/** The JSON Schema of a described schema: classes inline, references into the larger schema's `$defs`. */
function writeDescribed({ schema, definitions }: Omit<DescribedType, 'kind'>, writing: Writing): JsonSchema {
  const { instanceOf, $ref, ...others } = schema;
  // The DTO class of the part, if it has one.
  const isBuiltIn =
    instanceOf === Set ||
    instanceOf === Map ||
    TEXTUAL_TYPES.values().some((textual) => textual.class === instanceOf);
  const target =
    typeof instanceOf !== 'function' || isBuiltIn ? undefined : (instanceOf as unknown as ClassType);
  const written = mapSubschemas(others, (part) => writeDescribed({ schema: part, definitions }, writing));
  if (target !== undefined) return { ...writeClass({ class: target }, writing), ...written };
  const definition = $ref === undefined ? undefined : referredDefinition($ref, definitions);
  if (definition === undefined) return written;
  const { name, schema: referred } = definition;
  const write = () => writeDescribed({ schema: referred, definitions }, writing);
  return { ...writing.definitions.refer(referred, name, write), ...written };
}

/** Parameters in a form that providers accept. */
interface OfferedParameters {
  readonly schema: JsonSchema;
  /** The property that contains the arguments, if they had to be wrapped. */
  readonly wrapper?: string;
}

/** Root keywords for which providers refuse the whole request: a tool takes one object. */
const REFUSED_AT_ROOT = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref'] as const;

const offers = new WeakMap<JsonSchema, OfferedParameters>();

/**
 * The parameters to offer to a model: unchanged, unless their root is a union or similar. Then they are wrapped in a
 * property, as are the arguments that the model sends.
 */
export function offeredParameters(parameters: JsonSchema): OfferedParameters {
  return cached(offers, parameters, () => {
    if (REFUSED_AT_ROOT.every((keyword) => parameters[keyword] === undefined)) return { schema: parameters };
    const taken = new Set<string>();
    for (const { properties = {} } of allSchemas(parameters))
      for (const name of Object.keys(properties)) taken.add(name);
    // A name that the arguments themselves cannot have, so that both forms can be distinguished.
    const wrapper = freeName('input', (name) => taken.has(name), '_');
    const { $schema, ...inner } = parameters;
    const definitions = new Definitions();
    const properties = { [wrapper]: embedSchema(inner, definitions) };
    const schema = definitions.attachTo({
      ...($schema === undefined ? {} : { $schema }),
      type: 'object',
      properties,
      required: [wrapper],
    });
    return { schema, wrapper };
  });
}

/** The `$defs` of a schema that is being written. Names depend only on the order of first appearance. */
class Definitions {
  readonly #names = new Map<unknown, string>();
  readonly #schemas = new Map<string, JsonSchema>();

  /** A reference to the definition of `owner`, which is written at its first reference. */
  refer(owner: unknown, wanted: string, write: () => JsonSchema): JsonSchema {
    const before = this.#names.get(owner);
    if (before !== undefined) return reference(before);
    const name = freeName(wanted === '' ? 'Object' : wanted, (taken) => this.#schemas.has(taken));
    this.#names.set(owner, name);
    // Reserved before writing, because it may refer to itself.
    this.#schemas.set(name, {});
    this.#schemas.set(name, write());
    return reference(name);
  }

  /** The schema with `$defs`, if there are any. */
  attachTo(schema: JsonSchema): JsonSchema {
    return this.#schemas.size === 0 ? schema : { ...schema, $defs: Object.fromEntries(this.#schemas) };
  }
}

function reference(name: string): JsonSchema {
  return { $ref: `#/$defs/${pointerStep(name)}` };
}

/**
 * Embeds an explicit schema in a larger one. References into itself (`#`, `#/$defs/Node`) would point into the larger
 * schema, so their targets move to its `$defs`. A schema without such references does not change, nor does a schema
 * with an `$id`, because its references are relative to that.
 */
function embedSchema(schema: JsonSchema, definitions: Definitions): JsonSchema {
  if (typeof schema.$id === 'string' || ![...allSchemas(schema)].some((part) => localReference(part)))
    return schema;
  /** A part without its definitions, with its references moved. */
  const embed = ({ $defs: _, definitions: __, ...body }: JsonSchema): JsonSchema => moveReferences(body);
  const moveReferences = (part: JsonSchema): JsonSchema => {
    const pointer = localReference(part);
    // The anchors are no longer used, and the larger schema may have the same ones.
    const {
      $anchor: _,
      $dynamicAnchor: __,
      $recursiveAnchor: ___,
      ...body
    } = mapSubschemas(part, moveReferences);
    if (pointer === undefined) return body;
    const { $dynamicRef: ____, $recursiveRef: _____, ...others } = body;
    const target = findReference(pointer, schema);
    if (typeof target !== 'object') return { ...others, $ref: pointer };
    const name = pointer.split(/[/#]/).at(-1) || schema.title?.toString() || 'Schema';
    return { ...others, ...definitions.refer(target, name, () => embed(target)) };
  };
  return embed(schema);
}

/** In a single schema, a dynamic reference means the same as a plain one. */
function localReference({ $ref, $dynamicRef, $recursiveRef }: JsonSchema): string | undefined {
  return [$ref, $dynamicRef, $recursiveRef].find(
    (pointer) => typeof pointer === 'string' && pointer.startsWith('#'),
  ) as string | undefined;
}
