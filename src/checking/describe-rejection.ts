import type { JsonSchema } from '../contract/json-schema.js';
import { nearestName } from '../kernel/nearest-name.js';
import type { ValueFault } from './describe-errors.js';
import { describeFaults, isCutInLine } from './describe-faults.js';
import { resolveReference } from './resolve-reference.js';

/** Arguments that were refused, and what is known about it. */
export interface Rejection {
  readonly tool: string;
  readonly faults: readonly ValueFault[];
  readonly schema: JsonSchema;
  /** Paths of keys that the schema does not know. */
  readonly removed: readonly string[];
  /** The arguments as they came. */
  readonly sent: unknown;
}

const MAX_EXCERPT = 300;
const MAX_HINTS = 5;
const MAX_NAME = 64;

/**
 * What the model is told about refused arguments: every fault, then on lines of their own which known key or
 * value it may have meant, and what was sent. Models repeat what they do not see.
 */
export function describeRejection(rejection: Rejection): string {
  const { tool, faults, sent } = rejection;
  const hints = [...keyHints(rejection), ...valueHints(faults)].slice(0, MAX_HINTS);
  const excerpt = excerptOf(sent);
  return [
    describeFaults(tool, faults),
    ...hints,
    ...(excerpt === undefined ? [] : [`Received: ${excerpt}`]),
  ].join('\n');
}

/** Of keys that no schema knows. */
function keyHints({ faults, removed, schema }: Rejection): readonly string[] {
  const missing = new Set(faults.flatMap(({ path, isMissing }) => (isMissing ? [path] : [])));
  return removed.slice(0, MAX_HINTS).flatMap((path) => keyHint(path, schema, missing));
}

function keyHint(path: string, schema: JsonSchema, missing: ReadonlySet<string>): readonly string[] {
  const steps = path.split('.');
  const name = steps.at(-1) ?? path;
  const known = knownNames(steps.slice(0, -1), schema);
  const place = path.slice(0, path.length - name.length);
  // What the call lacks is what it most likely meant.
  const wanted = known.filter((candidate) => missing.has(place + candidate));
  const nearest = nearestName(name, wanted) ?? nearestName(name, known);
  return nearest === undefined
    ? []
    : [`There is no property "${name.slice(0, MAX_NAME)}"; did you mean "${nearest}"?`];
}

function knownNames(steps: readonly string[], root: JsonSchema): readonly string[] {
  const holder = steps.reduce<JsonSchema>((schema, step) => {
    const { properties, items } = resolveReference(schema, root);
    if (/^\d+$/.test(step) && typeof items === 'object' && !Array.isArray(items)) return items as JsonSchema;
    return (properties && Object.hasOwn(properties, step) && properties[step]) || {};
  }, root);
  return Object.keys(resolveReference(holder, root).properties ?? {});
}

/** Of values whose list is too long to be read on the line of their fault. */
function valueHints(faults: readonly ValueFault[]): readonly string[] {
  const cut = faults.slice(0, MAX_HINTS).filter((fault) => fault.choice !== undefined && isCutInLine(fault));
  return cut.flatMap(({ path, choice }) => {
    const allowed = (choice?.allowed ?? []).filter((value) => typeof value === 'string');
    const nearest = typeof choice?.sent === 'string' ? nearestName(choice.sent, allowed) : undefined;
    return nearest === undefined
      ? []
      : [`For ${path.slice(0, MAX_NAME)}, did you mean ${JSON.stringify(nearest)}?`];
  });
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
