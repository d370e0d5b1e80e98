import type { ArgumentFault } from '../contract/argument-fault.js';
import type { JsonSchema } from '../contract/json-schema.js';
import { nearestName } from '../kernel/nearest-name.js';
import { describeFaults } from './describe-faults.js';
import { resolveReference } from './resolve-reference.js';

/** Arguments that were refused, and what is known about it. */
export interface Rejection {
  readonly tool: string;
  readonly faults: readonly ArgumentFault[];
  readonly schema: JsonSchema;
  /** Paths of keys that the schema does not know. */
  readonly removed: readonly string[];
  /** The arguments as they came. */
  readonly sent: unknown;
}

const MAX_EXCERPT = 300;
const MAX_HINTS = 5;

/**
 * What the model is told about refused arguments: every fault, then on lines of their own which known key
 * an unknown one may have meant, and what was sent. Models repeat what they do not see.
 */
export function describeRejection({ tool, faults, schema, removed, sent }: Rejection): string {
  const hints = removed.slice(0, MAX_HINTS).flatMap((path) => hint(path, schema));
  const excerpt = excerptOf(sent);
  return [
    describeFaults(tool, faults),
    ...hints,
    ...(excerpt === undefined ? [] : [`Received: ${excerpt}`]),
  ].join('\n');
}

function hint(path: string, schema: JsonSchema): readonly string[] {
  const steps = path.split('.');
  const name = steps.at(-1) ?? path;
  const nearest = nearestName(name, knownNames(steps.slice(0, -1), schema));
  return nearest === undefined
    ? []
    : [`There is no property "${name.slice(0, 64)}"; did you mean "${nearest}"?`];
}

function knownNames(steps: readonly string[], root: JsonSchema): readonly string[] {
  const holder = steps.reduce<JsonSchema>((schema, step) => {
    const { properties, items } = resolveReference(schema, root);
    if (/^\d+$/.test(step) && typeof items === 'object' && !Array.isArray(items)) return items as JsonSchema;
    return (properties && Object.hasOwn(properties, step) && properties[step]) || {};
  }, root);
  return Object.keys(resolveReference(holder, root).properties ?? {});
}

function excerptOf(sent: unknown): string | undefined {
  const text = typeof sent === 'string' ? sent : toJson(sent);
  if (text === undefined || text.trim() === '' || text === '{}' || text === 'null') return undefined;
  const line = text.slice(0, MAX_EXCERPT).replace(/\s+/g, ' ').toWellFormed();
  return text.length > MAX_EXCERPT ? `${line}… (${text.length - MAX_EXCERPT} more characters)` : line;
}

function toJson(sent: unknown): string | undefined {
  try {
    return JSON.stringify(sent);
  } catch {
    return undefined;
  }
}
