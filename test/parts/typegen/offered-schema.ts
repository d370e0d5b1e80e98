import type { DescribedSchema, JsonSchema } from 'toolwright';
import type { DescribedTool } from '../../../src/core/contract/declaration.js';
import { CodeReference } from '../../../src/dev/typegen/written-schema.js';
import { fromGenerated } from '../../../src/tools/schema/value-type.js';
import { writeParameters } from '../../../src/tools/schema/write-schema.js';

/** The parameter schema of a described method with one parameter, `value`, as discovery offers it. */
export function offeredSchema(method: DescribedTool | undefined): JsonSchema {
  const [parameter] = method?.parameters ?? [];
  const definitions = Object.fromEntries(
    Object.entries(method?.$defs ?? {}).map(([name, schema]) => [name, loaded(schema)]),
  );
  const described = fromGenerated(loaded(parameter?.schema ?? {}), definitions);
  const written = writeParameters({ properties: [{ name: 'value', ...described, required: true }] });
  if (!written.ok) throw new Error(JSON.stringify(written.faults));
  return written.schema;
}

/** Resolves references as loading the generated file would: `Date` becomes the class. */
function loaded(node: unknown): DescribedSchema {
  if (node instanceof CodeReference) return globalThis[node.name as keyof typeof globalThis];
  if (Array.isArray(node)) return node.map(loaded) as unknown as DescribedSchema;
  if (typeof node !== 'object' || node === null) return node as unknown as DescribedSchema;
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, loaded(value)]));
}
