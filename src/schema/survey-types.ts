import { classModel } from './class-model.js';
import { classOf, referredDefinition } from './from-generated.js';
import { subschemas } from './keywords.js';
import type { PropertyFault } from './type-reference.js';
import type { ClassModel, DescribedType, PropertyModel, ValueType } from './value-type.js';

/** What has to be known of all types before the first of them is written. */
export interface TypeSurvey {
  readonly nodes: ObjectNodes;
  /** Objects that contain themselves and so need a name in `$defs`. */
  readonly recursive: ReadonlySet<ObjectNode>;
  /** Everything that keeps a schema from being written, each class once. */
  readonly faults: readonly PropertyFault[];
  /** What contradicts itself without keeping a schema from being written. */
  readonly disagreements: readonly string[];
}

interface Walk {
  readonly nodes: ObjectNodes;
  readonly recursive: Set<ObjectNode>;
  readonly faults: PropertyFault[];
  readonly disagreements: string[];
  readonly seen: Set<unknown>;
  /** The objects around the current one. */
  readonly around: Set<ObjectNode>;
}

/** Walks through all types that the properties reach. */
export function surveyTypes(properties: readonly PropertyModel[], root?: ObjectNode): TypeSurvey {
  const walk: Walk = {
    nodes: new ObjectNodes(),
    recursive: new Set(),
    faults: [],
    disagreements: [],
    seen: new Set(),
    around: new Set(),
  };
  if (root === undefined) visitAll(properties, '', walk);
  else visitNode(walk.nodes.of(root.model, root.tag), '', walk);
  return walk;
}

function visitAll(properties: readonly PropertyModel[], path: string, walk: Walk): void {
  for (const { name, type } of properties) visit(type, path === '' ? name : `${path}.${name}`, walk);
}

function visit(type: ValueType, path: string, walk: Walk): void {
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

/** A definition is visited where it is first referred to. */
function visitDescribed({ schema, definitions }: DescribedType, path: string, walk: Walk): void {
  const target = classOf(schema);
  if (target !== undefined) visitClass({ class: target }, path, walk);
  const referred = schema.$ref === undefined ? undefined : referredDefinition(schema.$ref, definitions);
  if (referred !== undefined && !walk.seen.has(referred.schema)) {
    walk.seen.add(referred.schema);
    visitDescribed({ kind: 'described', schema: referred.schema, definitions }, path, walk);
  }
  for (const part of subschemas(schema))
    visitDescribed({ kind: 'described', schema: part, definitions }, path, walk);
}

type ClassPlace = Pick<ValueType & { kind: 'class' }, 'class' | 'groups'> & Pick<ObjectNode, 'tag'>;

function visitClass(place: ClassPlace, path: string, walk: Walk): void {
  const read = classModel(place.class, place.groups);
  if (read.ok) {
    visitNode(walk.nodes.of(read.model, place.tag), path, walk);
    return;
  }
  if (walk.seen.has(place.class)) return;
  walk.seen.add(place.class);
  walk.faults.push(...read.faults.map((fault) => ({ ...fault, property: joined(path, fault.property) })));
}

function visitNode(node: ObjectNode, path: string, walk: Walk): void {
  if (walk.around.has(node)) walk.recursive.add(node);
  if (walk.seen.has(node)) return;
  walk.seen.add(node);
  walk.disagreements.push(...(node.model.disagreements ?? []));
  walk.around.add(node);
  visitAll(node.model.properties, path, walk);
  walk.around.delete(node);
}

function joined(path: string, property: string): string {
  return [path, property].filter((part) => part !== '').join('.');
}

/** An object schema to be written: a class, or a branch of a union that one value of a property tells apart. */
export interface ObjectNode {
  readonly model: ClassModel;
  readonly tag?: { readonly property: string; readonly value: string };
}

/** One node object per class and tag, so that nodes can be keys of maps. */
class ObjectNodes {
  readonly #nodes = new Map<ClassModel, Map<string, ObjectNode>>();

  /** The node of a class, or of a branch of a union. */
  of(model: ClassModel, tag?: ObjectNode['tag']): ObjectNode {
    const key = tag === undefined ? '' : JSON.stringify([tag.property, tag.value]);
    const ofModel = this.#nodes.get(model) ?? new Map<string, ObjectNode>();
    const node = ofModel.get(key) ?? { model, tag };
    this.#nodes.set(model, ofModel.set(key, node));
    return node;
  }
}

/** The tag is a property of its branch: the class's own, if it has one, otherwise the first. */
export function taggedProperties({ model, tag }: ObjectNode): readonly PropertyModel[] {
  if (tag === undefined) return model.properties;
  const own = model.properties.find(({ name }) => name === tag.property);
  const { description } = own?.keywords ?? {};
  const property: PropertyModel = {
    name: tag.property,
    type: { kind: 'scalar', name: 'string' },
    required: true,
    nullable: false,
    keywords: { const: tag.value, ...(description === undefined ? {} : { description }) },
  };
  return own === undefined
    ? [property, ...model.properties]
    : model.properties.map((candidate) => (candidate === own ? property : candidate));
}
