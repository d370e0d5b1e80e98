import type { ClassModel } from './value-type.js';
import { type PropertyModel } from './value-type.js';

/** An object schema to be written: a class, or a branch of a union that one value of a property tells apart. */
export interface ObjectNode {
  readonly model: ClassModel;
  readonly tag?: { readonly property: string; readonly value: string };
}

/** One node object per class and tag, so that nodes can be keys of maps. */
export class ObjectNodes {
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
    : model.properties.map((one) => (one === own ? property : one));
}
