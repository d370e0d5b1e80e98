import type { JsonSchema } from '../../contract/json-schema.js';
import { isRecord } from '../../kernel/json.js';
import { KEYWORDS, mergeKeywords } from '../keywords.js';
import { type Plan, type Remark, type ScalarPlan, type ScalarType, UNWORDED, useOf } from './plan.js';
import { isAskable, remarkOn, remarksOnGroup } from './remarks.js';

/** The plan of a value without parts. */
export function scalarPlan(type: ScalarType, parts: readonly JsonSchema[]): ScalarPlan {
  if (type === 'string') return textPlan(parts);
  if (type === 'number' || type === 'integer') return numberPlan(type, parts);
  return { kind: 'scalar', ...UNWORDED, type, keywords: {} };
}

function textPlan(parts: readonly JsonSchema[]): ScalarPlan {
  const keywords: Record<string, unknown> = {};
  const remarks: Remark[] = [...remarksOnGroup(parts, 'text')];
  for (const part of parts)
    for (const keyword of ['pattern', 'format']) {
      const value = part[keyword];
      if (value === undefined || value === keywords[keyword]) continue;
      if (keywords[keyword] === undefined && isAskable(keyword, value)) keywords[keyword] = value;
      else remarks.push(...remarkOn(keyword, value));
    }
  return { kind: 'scalar', ...UNWORDED, type: 'string', keywords, remarks };
}

function numberPlan(type: 'number' | 'integer', parts: readonly JsonSchema[]): ScalarPlan {
  const { keywords, remarks } = boundsOf(parts, 'number');
  return {
    kind: 'scalar',
    ...UNWORDED,
    type,
    keywords,
    remarks: [...remarksOnGroup(parts, 'number'), ...remarks],
  };
}

const BOUNDS: ReadonlySet<string> = new Set([
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minItems', 'maxItems'],
]);

function isBoundOf(keyword: string, value: unknown): boolean {
  if (typeof value !== 'number') return false;
  if (keyword.endsWith('Items')) return Number.isInteger(value) && value >= 0;
  return keyword !== 'multipleOf' || value > 0;
}

/** The strictest bounds of numbers or of lengths of lists; what cannot be one keyword is said. */
export function boundsOf(
  parts: readonly JsonSchema[],
  group: 'number' | 'array',
): { readonly keywords: JsonSchema; readonly remarks: readonly Remark[] } {
  const isBound = ([keyword, value]: readonly [string, unknown]): boolean =>
    KEYWORDS.get(keyword)?.of === group && BOUNDS.has(keyword) && isBoundOf(keyword, value);
  const { allOf, ...keywords } = parts
    .map((part): JsonSchema => Object.fromEntries(Object.entries(part).filter(isBound)))
    .reduce(mergeKeywords, {});
  const unsaid = Array.isArray(allOf) ? (allOf as readonly JsonSchema[]) : [];
  const remarks = unsaid.flatMap((part) =>
    Object.entries(part).flatMap(([keyword, value]) => remarkOn(keyword, value)),
  );
  return { keywords, remarks };
}

/** The plans of constants: one for all of a type, one for each that has parts. */
export function constantPlans(values: readonly unknown[]): readonly Plan[] {
  const byType = new Map<ScalarType, unknown[]>();
  const others: Plan[] = [];
  for (const value of values) {
    const type = scalarTypeOf(value);
    if (type === undefined) others.push(constantOfParts(value));
    else byType.set(type, [...(byType.get(type) ?? []), value]);
  }
  const scalars = [...byType].map(([type, list]): ScalarPlan => {
    const isWhole = type === 'null' || (type === 'boolean' && list.length > 1);
    return { kind: 'scalar', ...UNWORDED, type, keywords: isWhole ? {} : { enum: list } };
  });
  return [...scalars, ...others];
}

function scalarTypeOf(value: unknown): ScalarType | undefined {
  if (value === null) return 'null';
  if (typeof value === 'string' || typeof value === 'boolean') return typeof value as 'string' | 'boolean';
  return typeof value === 'number' ? 'number' : undefined;
}

function constantOfParts(value: unknown): Plan {
  const fieldsOf = (rows: readonly (readonly [string, unknown])[]) =>
    rows.map(([name, part]) => ({ name, use: useOf(constantPlan(part)), isRequired: true }));
  if (isRecord(value)) return { kind: 'object', ...UNWORDED, fields: fieldsOf(Object.entries(value)) };
  const items = Array.isArray(value) ? value : [];
  const rows = items.map((item, index) => [placeName(index), item] as const);
  return { kind: 'tuple', ...UNWORDED, edits: ['tuple'], fields: fieldsOf(rows) };
}

function constantPlan(value: unknown): Plan {
  return constantPlans([value])[0] ?? constantOfParts(value);
}

/** The property for a place of a tuple. */
export function placeName(index: number): string {
  return `item_${index + 1}`;
}
