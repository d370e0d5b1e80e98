import type { ToolOptions } from '../contract/tool-options.js';
import type { MethodFacts, ParameterFacts } from './parameter-facts.js';
import { isInjectedType } from './parameter-facts.js';

/** What told a tool's schema: in order of precedence, the first that knows it. */
export type SchemaOrigin = 'explicit' | '@Param' | 'generated' | 'metadata';

const ORDER: readonly SchemaOrigin[] = ['explicit', '@Param', 'generated', 'metadata'];

/** Options of `@Param` that say a type. */
const TYPE_OPTIONS = ['type', 'items', 'enum', 'additionalProperties'] as const;

/** Everything that told something of a method's schema, the strongest first. */
export function schemaOrigins(facts: MethodFacts, options: ToolOptions): readonly SchemaOrigin[] {
  if (options.parameters !== undefined) return ['explicit'];
  if (!facts.ok) return [];
  const found = new Set(facts.parameters.flatMap(originsOf));
  return ORDER.filter((origin) => found.has(origin));
}

function originsOf({ records, designType, described }: ParameterFacts): readonly SchemaOrigin[] {
  const [record] = records;
  if (record?.role === 'context' || (record === undefined && isInjectedType(designType))) return [];
  const options = record?.role === 'property' ? record.options : {};
  if (options.schema !== undefined) return ['explicit'];
  const derived: SchemaOrigin = described === undefined ? 'metadata' : 'generated';
  if (TYPE_OPTIONS.some((option) => options[option] !== undefined)) return ['@Param'];
  return Object.keys(options).length === 0 ? [derived] : ['@Param', derived];
}
