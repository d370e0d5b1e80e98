import type { DescribedSchema } from '../contract/class-description.js';
import type { ClassType } from '../contract/class-type.js';
import type { JsonSchema } from '../contract/json-schema.js';
import type { Definitions } from './definitions.js';
import type { DescribedDefinitions } from './described-type.js';
import { isSchemaNode, mapSubschemas } from './keywords.js';

/** What writing a described schema needs of the schema that it becomes a part of. */
export interface DescribedWriting {
  readonly definitions: Definitions;
  /** The types that contain themselves. */
  readonly described: DescribedDefinitions;
  writeClass(target: ClassType): JsonSchema;
}

const BUILT_IN: readonly unknown[] = [Date, URL, Uint8Array, Buffer, BigInt, Set, Map];

/** The DTO class that a node stands for, if it does. */
export function classOf({ instanceOf }: DescribedSchema): ClassType | undefined {
  if (typeof instanceOf !== 'function' || BUILT_IN.includes(instanceOf)) return undefined;
  return instanceOf as unknown as ClassType;
}

/** JSON Schema of a described schema: classes in place, references into the larger schema's `$defs`. */
export function writeDescribed(schema: DescribedSchema, writing: DescribedWriting): JsonSchema {
  const { instanceOf: _, $ref, ...others } = schema;
  const target = classOf(schema);
  const written = mapSubschemas(others, (part) => writeDescribed(part, writing));
  if (target !== undefined) return { ...writing.writeClass(target), ...written };
  const definition = $ref === undefined ? undefined : referredDefinition($ref, writing.described);
  if (definition === undefined) return written;
  const { name, schema: referred } = definition;
  return {
    ...writing.definitions.refer(referred, name, () => writeDescribed(referred, writing)),
    ...written,
  };
}

/** What a `$ref` of a description names. */
export function referredDefinition(
  reference: string,
  described: DescribedDefinitions,
): { readonly name: string; readonly schema: DescribedSchema } | undefined {
  const name = reference.replace(/^#\/\$defs\//, '');
  if (!Object.hasOwn(described, name)) return undefined;
  const schema = described[name];
  return isSchemaNode(schema) ? { name, schema } : undefined;
}
