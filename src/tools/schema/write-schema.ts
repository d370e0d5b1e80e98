import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { OrFaults } from '../../core/errors/author-fault.js';
import { cached } from '../../core/kernel/cached.js';
import { freeName } from '../../core/kernel/free-name.js';
import { childPath, pointerStep, setOwn, withoutUndefined } from '../../core/kernel/json.js';
import { readDescription } from '../../core/metadata/class-record.js';
import { classModel } from './class-model.js';
import { findReference } from './find-reference.js';
import { classOf, referredDefinition } from './from-generated.js';
import { allSchemas, keywordsBeside, mapSubschemas, nullableSchema, subschemas } from './keywords.js';
import type { PropertyFault } from './type-reference.js';
import {
  type ArgumentsModel,
  arePlain,
  type ClassModel,
  type DescribedType,
  type PropertyModel,
  type TaggedType,
  TEXTUAL_TYPES,
  type ValueType,
} from './value-type.js';

/** Facts about all types that are collected before the first type is written. */
interface TypeSurvey {
  readonly nodes: ObjectNodes;
  /** Objects that contain themselves and therefore need a name in `$defs`. */
  readonly recursive: Set<ObjectNode>;
  /** All faults that prevent a schema, each class once. */
  readonly faults: PropertyFault[];
  /** Contradictions that do not prevent a schema. */
  readonly disagreements: string[];
  /** Some values are transformed before they are checked. */
  isTransformed: boolean;
  readonly seen: Set<unknown>;
  /** The objects around the current one. */
  readonly around: Set<ObjectNode>;
}

/** Visits all types that the properties reach. */
function surveyTypes(properties: readonly PropertyModel[], root?: ObjectNode): TypeSurvey {
  const walk: TypeSurvey = {
    nodes: new ObjectNodes(),
    recursive: new Set(),
    faults: [],
    disagreements: [],
    isTransformed: false,
    seen: new Set(),
    around: new Set(),
  };
  if (root === undefined) visitAll(properties, '', walk);
  else visitNode(walk.nodes.of(root.model, root.tag), '', walk);
  return walk;
}

function visitAll(properties: readonly PropertyModel[], path: string, walk: TypeSurvey): void {
  for (const { name, type, transformedFirst } of properties) {
    walk.isTransformed ||= transformedFirst !== undefined;
    visit(type, childPath(path, name), walk);
  }
}

function visit(type: ValueType, path: string, walk: TypeSurvey): void {
  if (type.kind === 'array') visit(type.items, path, walk);
  else if (type.kind === 'record') visit(type.values, path, walk);
  else if (type.kind === 'class') visitClass(type, path, walk);
  else if (type.kind === 'described') visitDescribed(type, path, walk);
  else if (type.kind === 'tagged') {
    for (const variant of type.variants) {
      const tag = { property: type.property, value: variant.tag };
      visitClass({ class: variant.class, groups: type.groups, tag }, path, walk);
    }
  }
}

/** A definition is visited at its first reference. */
function visitDescribed(
  { schema, definitions }: Omit<DescribedType, 'kind'>,
  path: string,
  walk: TypeSurvey,
): void {
  const target = classOf(schema);
  if (target !== undefined) visitClass({ class: target }, path, walk);
  const referred = schema.$ref === undefined ? undefined : referredDefinition(schema.$ref, definitions);
  if (referred !== undefined && !walk.seen.has(referred.schema)) {
    walk.seen.add(referred.schema);
    visitDescribed({ schema: referred.schema, definitions }, path, walk);
  }
  for (const part of subschemas(schema)) visitDescribed({ schema: part, definitions }, path, walk);
}

type ClassPlace = Pick<ValueType & { kind: 'class' }, 'class' | 'groups'> & Pick<ObjectNode, 'tag'>;

function visitClass(place: ClassPlace, path: string, walk: TypeSurvey): void {
  const read = classModel(place.class, place.groups);
  if (read.ok) {
    visitNode(walk.nodes.of(read.model, place.tag), path, walk);
    return;
  }
  if (walk.seen.has(place.class)) return;
  walk.seen.add(place.class);
  for (const fault of read.faults) {
    const property = [path, fault.property].filter((part) => part !== '').join('.');
    walk.faults.push({ ...fault, property });
  }
}

function visitNode(node: ObjectNode, path: string, walk: TypeSurvey): void {
  if (walk.around.has(node)) walk.recursive.add(node);
  if (walk.seen.has(node)) return;
  walk.seen.add(node);
  walk.disagreements.push(...(node.model.disagreements ?? []));
  walk.around.add(node);
  visitAll(node.model.properties, path, walk);
  walk.around.delete(node);
}

/** An object schema: a class, or a tagged branch of a union. */
interface ObjectNode {
  readonly model: ClassModel;
  readonly tag?: { readonly property: string; readonly value: string };
}

/** One node object per class and tag, so that nodes can be map keys. */
class ObjectNodes {
  readonly #nodes = new Map<ClassModel, Map<string, ObjectNode>>();

  /** The node of a class, or of a branch of a union. */
  of(model: ClassModel, tag?: ObjectNode['tag']): ObjectNode {
    const key = tag === undefined ? '' : JSON.stringify([tag.property, tag.value]);
    const ofModel = cached(this.#nodes, model, () => new Map<string, ObjectNode>());
    return cached(ofModel, key, () => ({ model, tag }));
  }
}

/** The tag is a property of its branch: the class's own, if it has one, otherwise an additional first property. */
function taggedProperties({ model, tag }: ObjectNode): readonly PropertyModel[] {
  if (tag === undefined) return model.properties;
  const own = model.properties.find(({ name }) => name === tag.property);
  const property: PropertyModel = {
    name: tag.property,
    type: { kind: 'scalar', name: 'string' },
    required: true,
    nullable: false,
    keywords: withoutUndefined({ const: tag.value, description: own?.keywords.description }),
  };
  return own === undefined
    ? [property, ...model.properties]
    : model.properties.map((candidate) => (candidate === own ? property : candidate));
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
  if ('properties' in model) {
    const { properties } = model;
    // Scalars contain no other types.
    return write(properties, surveyTypes(arePlain(properties) ? [] : properties));
  }
  if ('type' in model) return writeTypeAsObject(model.type);
  const read = classModel(model.class, model.groups);
  if (!read.ok) return read;
  return write(read.model.properties, surveyTypes(read.model.properties, { model: read.model }));
}

/** The root has `type: 'object'` itself: providers require it there, not behind a reference or in branches. */
function writeTypeAsObject(type: ValueType): WriteSchemaResult {
  return mapWritten(typeSchema(type), ({ $ref, $defs, ...schema }) => {
    const name = typeof $ref === 'string' ? $ref.replace(/^#\/\$defs\//, '') : undefined;
    const root = { type: 'object', ...(name === undefined ? {} : $defs?.[name]), ...schema };
    return $defs === undefined ? root : { ...root, $defs };
  });
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

function write(properties: readonly PropertyModel[], survey: TypeSurvey): WriteSchemaResult {
  if (survey.faults.length > 0) return { ok: false, faults: survey.faults };
  const writeAs = (isAccepted: boolean): JsonSchema => {
    const definitions = new Definitions();
    return definitions.attachTo(writeObject(properties, { survey, definitions, isAccepted }));
  };
  const { disagreements, isTransformed } = survey;
  return {
    ok: true,
    schema: writeAs(false),
    accepted: isTransformed ? writeAs(true) : undefined,
    disagreements: disagreements.length > 0 ? disagreements : undefined,
  };
}

/** Shared by the parts of a schema that is being written. */
interface Writing {
  readonly survey: TypeSurvey;
  readonly definitions: Definitions;
  /** Writes the schema of values before they are transformed, instead of the offered one. */
  readonly isAccepted: boolean;
}

/** `type`, `properties` and `required` of an object; `required` is present even if it is empty. */
function writeObject(properties: readonly PropertyModel[], writing: Writing): JsonSchema {
  const written: Record<string, JsonSchema> = {};
  const required: string[] = [];
  for (const property of properties) {
    const { name, transformedFirst, keywords } = property;
    const isOpen = writing.isAccepted && transformedFirst !== undefined;
    const { default: fallback } = keywords;
    const open = fallback === undefined ? {} : { default: fallback };
    setOwn(written, name, isOpen ? open : writeProperty(property, writing));
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

function writeValue(type: ValueType, writing: Writing): JsonSchema {
  switch (type.kind) {
    case 'any':
      return {};
    case 'scalar':
      return { type: type.name };
    case 'enum':
      return writeEnum(type.values);
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
      return { anyOf: writeBranches(type, writing) };
    case 'schema':
      return embedSchema(type.schema, writing.definitions);
    case 'described':
      return writeDescribed(type, writing);
    default:
      return { ...TEXTUAL_TYPES.get(type.kind)?.schema };
  }
}

/** Adds `type` if all values share one, because some models need it. */
function writeEnum(values: readonly unknown[]): JsonSchema {
  const types = new Set(values.filter((value) => value !== null).map((value) => typeof value));
  const [type] = types;
  if (type === undefined || types.size > 1) return { enum: values };
  return { type: values.includes(null) ? [type, 'null'] : type, enum: values };
}

function writeClass(type: ValueType & { readonly kind: 'class' }, writing: Writing): JsonSchema {
  const read = classModel(type.class, type.groups);
  // The survey has reported every class that cannot be described.
  return read.ok ? writeNode(writing.survey.nodes.of(read.model), writing) : {};
}

function writeBranches(type: TaggedType, writing: Writing): readonly JsonSchema[] {
  return type.variants.flatMap((variant) => {
    const read = classModel(variant.class, type.groups);
    const tag = { property: type.property, value: variant.tag };
    return read.ok ? [writeNode(writing.survey.nodes.of(read.model, tag), writing)] : [];
  });
}

/** Written inline, unless it contains itself. */
function writeNode(node: ObjectNode, writing: Writing): JsonSchema {
  const write = () => writeObject(taggedProperties(node), writing);
  if (!writing.survey.recursive.has(node)) return write();
  const { class: target } = node.model;
  // A minifier may have changed the name.
  return writing.definitions.refer(node, readDescription(target)?.name ?? target.name, write);
}

/** The JSON Schema of a described schema: classes inline, references into the larger schema's `$defs`. */
function writeDescribed({ schema, definitions }: Omit<DescribedType, 'kind'>, writing: Writing): JsonSchema {
  const { instanceOf: _, $ref, ...others } = schema;
  const target = classOf(schema);
  const written = mapSubschemas(others, (part) => writeDescribed({ schema: part, definitions }, writing));
  if (target !== undefined) return { ...writeClass({ kind: 'class', class: target }, writing), ...written };
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
  return cached(offers, parameters, offer);
}

function offer(parameters: JsonSchema): OfferedParameters {
  if (REFUSED_AT_ROOT.every((keyword) => parameters[keyword] === undefined)) return { schema: parameters };
  const wrapper = wrapperName(parameters);
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
}

/** A name that the arguments themselves cannot have, so that both forms can be distinguished. */
function wrapperName(parameters: JsonSchema): string {
  const taken = new Set<string>();
  for (const { properties = {} } of allSchemas(parameters))
    for (const name of Object.keys(properties)) taken.add(name);
  return freeName('input', (name) => taken.has(name), '_');
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
  const { $defs: _, definitions: __, ...body } = schema;
  return withOwnReferences(body, { root: schema, definitions });
}

interface Embedding {
  readonly root: JsonSchema;
  readonly definitions: Definitions;
}

/** In a single schema, a dynamic reference means the same as a plain one. */
function localReference({ $ref, $dynamicRef, $recursiveRef }: JsonSchema): string | undefined {
  return [$ref, $dynamicRef, $recursiveRef].find(
    (pointer) => typeof pointer === 'string' && pointer.startsWith('#'),
  ) as string | undefined;
}

function withOwnReferences(schema: JsonSchema, embed: Embedding): JsonSchema {
  const reference = localReference(schema);
  const body = mapSubschemas(schema, (part) => withOwnReferences(part, embed));
  if (reference === undefined) return withoutAnchor(body);
  const { $dynamicRef: _, $recursiveRef: __, ...others } = withoutAnchor(body);
  return { ...others, ...move(reference, embed) };
}

/** The anchor is no longer used, and the larger schema may have the same anchor. */
function withoutAnchor({
  $anchor: _,
  $dynamicAnchor: __,
  $recursiveAnchor: ___,
  ...others
}: JsonSchema): JsonSchema {
  return others;
}

/** The target of a reference, moved to the larger schema on first use. */
function move(reference: string, embed: Embedding): JsonSchema {
  const target = findReference(reference, embed.root);
  if (typeof target !== 'object') return { $ref: reference };
  const { $defs: _, definitions: __, ...body } = target;
  const name = reference.split(/[/#]/).at(-1) || embed.root.title?.toString() || 'Schema';
  return embed.definitions.refer(target, name, () => withOwnReferences(body, embed));
}
