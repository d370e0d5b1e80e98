import type { DescribedSchema } from '../../contract/declaration.js';
import type { JsonObject, JsonSchema } from '../../contract/json-schema.js';
import { setOwn } from '../../kernel/json.js';
import { fromGenerated, referredDefinition } from '../../schema/from-generated.js';
import { isSchemaNode, subschemas } from '../../schema/keywords.js';
import type { ValueType } from '../../schema/value-type.js';
import { typeSchema } from '../../schema/write-schema.js';
import { type SchemaTest, schemaTest } from '../compile.js';
import { levelOf } from '../schema-level.js';
import {
  ChildPlace,
  type Holder,
  type Place,
  type Revive,
  type ReviverOf,
  reviveItems,
  reviveValues,
} from './revive-values.js';

type DescribedType = ValueType & { readonly kind: 'described' };

/** What the parts of one description share. */
interface Revivers {
  readonly definitions: DescribedType['definitions'];
  readonly reviverOf: ReviverOf;
  /** By definition; there before it is made, because it may contain itself. */
  readonly known: Map<DescribedSchema, { revive?: Revive }>;
}

/** The reviver of a described type; nothing where it holds neither dates nor classes nor the like. */
export function reviveDescribed(
  { schema, definitions }: DescribedType,
  reviverOf: ReviverOf,
): Revive | undefined {
  return reviverFor(schema, { definitions, reviverOf, known: new Map() });
}

function reviverFor(schema: DescribedSchema, of: Revivers): Revive | undefined {
  if (!holdsInstances(schema, of, new Set())) return undefined;
  if (schema.$ref !== undefined) return reviveReferred(schema.$ref, of);
  if (schema.instanceOf !== undefined) return of.reviverOf(fromGenerated(schema, of.definitions).type);
  if (schema.anyOf !== undefined) return reviveUnion(schema.anyOf, of);
  if (schema.items !== undefined || schema.prefixItems !== undefined) return reviveTuple(schema, of);
  return reviveObject(schema, of);
}

/** Whether anything in a schema has to be revived; without, values stay as they are and cost nothing. */
function holdsInstances(schema: DescribedSchema, of: Revivers, seen: Set<DescribedSchema>): boolean {
  if (seen.has(schema)) return false;
  seen.add(schema);
  if (schema.instanceOf !== undefined) return true;
  const referred = schema.$ref === undefined ? undefined : referredDefinition(schema.$ref, of.definitions);
  if (referred !== undefined && holdsInstances(referred.schema, of, seen)) return true;
  return subschemas(schema).some((part) => holdsInstances(part, of, seen));
}

function reviveReferred(reference: string, of: Revivers): Revive | undefined {
  const referred = referredDefinition(reference, of.definitions);
  if (referred === undefined) return undefined;
  const before = of.known.get(referred.schema);
  const slot = before ?? {};
  if (before === undefined) {
    of.known.set(referred.schema, slot);
    slot.revive = reviverFor(referred.schema, of);
  }
  return (value, place) => slot.revive?.(value, place) ?? value;
}

/** What may become of a value of a union. */
interface Choice {
  readonly fits: () => SchemaTest;
  readonly names: () => ReadonlySet<string>;
  readonly revive: Revive | undefined;
}

/** The branch that the value fits decides, by the same schemas that the check has just used; of several, the one that knows most of its keys. */
function reviveUnion(branches: readonly DescribedSchema[], of: Revivers): Revive {
  const choices = branches.map((branch): Choice => {
    const schema = once(() =>
      plainSchema({ kind: 'described', schema: branch, definitions: of.definitions }),
    );
    return {
      fits: once(() => schemaTest(schema())),
      names: once(() => new Set(levelOf(schema()).positions.keys())),
      revive: reviverFor(branch, of),
    };
  });
  return (value, place) => {
    const choice = best(
      choices.filter(({ fits }) => fits()(value)),
      value,
    );
    return choice?.revive === undefined ? value : choice.revive(value, place);
  };
}

function best([first, ...others]: readonly Choice[], value: unknown): Choice | undefined {
  if (first === undefined || others.length === 0 || typeof value !== 'object' || value === null) return first;
  const keys = Object.keys(value);
  const known = ({ names }: Choice): number => keys.filter((key) => names().has(key)).length;
  return others.reduce((chosen, other) => (known(other) > known(chosen) ? other : chosen), first);
}

/** Made with the first value that comes. */
function once<Made extends object>(make: () => Made): () => Made {
  let made: Made | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** What the model was offered for a type. Classes that cannot be described were faults at start-up. */
function plainSchema(type: DescribedType): JsonSchema {
  const written = typeSchema(type);
  return written.ok ? written.schema : {};
}

function reviveTuple({ prefixItems, items }: DescribedSchema, of: Revivers): Revive {
  const fixed = (Array.isArray(prefixItems) ? prefixItems : []).map((item: unknown) =>
    isSchemaNode(item) ? reviverFor(item, of) : undefined,
  );
  const rest = isSchemaNode(items) ? reviverFor(items, of) : undefined;
  if (fixed.length === 0 && rest !== undefined) return reviveItems(orNull(rest));
  return (value, place) => {
    if (!Array.isArray(value)) return value;
    const revived: unknown[] = [...value];
    for (const [index, item] of value.entries()) {
      const revive = index < fixed.length ? fixed[index] : rest;
      if (revive === undefined || item === null) continue;
      revived[index] = revive(item, new ChildPlace(place, index, revived as unknown as Holder));
    }
    return revived;
  };
}

function reviveObject({ properties = {}, additionalProperties }: DescribedSchema, of: Revivers): Revive {
  const known = new Map(
    Object.entries(properties).map(([name, property]) => [name, reviverFor(property, of)] as const),
  );
  const values = isSchemaNode(additionalProperties) ? reviverFor(additionalProperties, of) : undefined;
  if (known.size === 0 && values !== undefined) return reviveValues(orNull(values));
  return (value, place) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    return reviveEntries(value as JsonObject, place, (name) => (known.has(name) ? known.get(name) : values));
  };
}

function reviveEntries(
  source: JsonObject,
  place: Place,
  reviverOf: (name: string) => Revive | undefined,
): JsonObject {
  const revived: JsonObject = {};
  for (const [name, one] of Object.entries(source)) {
    const revive = one === null ? undefined : reviverOf(name);
    setOwn(
      revived as Holder,
      name,
      revive ? revive(one, new ChildPlace(place, name, revived as Holder)) : one,
    );
  }
  return revived;
}

function orNull(revive: Revive): Revive {
  return (value, place) => (value === null ? null : revive(value, place));
}
