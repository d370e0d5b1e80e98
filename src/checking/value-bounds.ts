import type { ArgumentFault } from '../contract/argument-fault.js';
import type { JsonObject, JsonSchema } from '../contract/json-schema.js';
import { isRecord } from '../kernel/is-record.js';
import { allSchemas, eachSubschema } from '../schema/keywords.js';

/** Checks, tidying and the history each need stack for a level; nobody means to send that many. */
const MOST_LEVELS = 500;
const MOST_FAULTS = 50;

const NONE: readonly ArgumentFault[] = [];

const TOO_DEEP: ArgumentFault = {
  path: '',
  message: `the arguments are nested too deep: at most ${MOST_LEVELS} levels`,
};

/** What is wrong with arguments whatever their schema says: numbers that JSON cannot write, and endless nesting. */
export function boundFaults(args: unknown): readonly ArgumentFault[] {
  if (isWithinBounds(args, 0)) return NONE;
  const faults: ArgumentFault[] = [];
  return collectFaults(args, { levels: 0, faults }) ? faults : [TOO_DEEP];
}

/** It runs for each call, so that it makes nothing. */
function isWithinBounds(value: unknown, levels: number): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || value === null) return true;
  if (levels === MOST_LEVELS) return false;
  if (Array.isArray(value)) return areWithinBounds(value, levels + 1);
  for (const key in value) {
    const member = (value as Readonly<Record<string, unknown>>)[key];
    if (typeof member !== 'string' && !isWithinBounds(member, levels + 1)) return false;
  }
  return true;
}

function areWithinBounds(items: readonly unknown[], levels: number): boolean {
  for (let index = 0; index < items.length; index += 1) {
    const item = items[index];
    if (typeof item !== 'string' && !isWithinBounds(item, levels)) return false;
  }
  return true;
}

interface Within {
  readonly levels: number;
  readonly faults: ArgumentFault[];
  readonly key?: string;
  readonly around?: Within;
}

/** Gives `false` where the nesting does not end. */
function collectFaults(value: unknown, within: Within): boolean {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    const message = Number.isNaN(value) ? 'must be a number' : 'is too large for a number';
    if (within.faults.length < MOST_FAULTS) within.faults.push({ path: pathOf(within), message });
  }
  if (typeof value !== 'object' || value === null) return true;
  if (within.levels === MOST_LEVELS) return false;
  const { levels, faults } = within;
  for (const [key, member] of Object.entries(value)) {
    if (!collectFaults(member, { levels: levels + 1, faults, key, around: within })) return false;
  }
  return true;
}

function pathOf(within: Within): string {
  const keys: string[] = [];
  for (let at: Within | undefined = within; at?.key !== undefined; at = at.around) keys.unshift(at.key);
  return keys.join('.');
}

/**
 * Whether arguments have nothing wrong in that sense where a schema would not see it: most schemas would in any
 * case, and many in all but some properties. Asked before the schema, which may need stack for each level.
 */
export function boundsTest(schema: JsonSchema): (args: JsonObject) => boolean {
  if (boundsValues(schema)) return () => true;
  const open = openProperties(schema);
  if (open === undefined) return (args) => isWithinBounds(args, 0);
  return (args) => open.every((name) => isWithinBounds(args[name], 1));
}

function boundsValues(schema: JsonSchema): boolean {
  for (const part of allSchemas(schema)) if (isOpen(part)) return false;
  return true;
}

/** The properties of a schema that may hold anything; `undefined` where it is more than its properties. */
function openProperties(schema: JsonSchema): readonly string[] | undefined {
  const { type, properties = {}, additionalProperties, required: _, $defs: _defs, ...others } = schema;
  if (type !== 'object' || additionalProperties !== false || Object.keys(others).length > 0) return undefined;
  return Object.keys(properties).filter((name) => {
    const property = properties[name];
    return !isRecord(property) || !boundsValues(property);
  });
}

function isOpen(schema: JsonSchema): boolean {
  const { type, anyOf, items, additionalProperties = true, $ref, $dynamicRef, $recursiveRef } = schema;
  if (($ref ?? $dynamicRef ?? $recursiveRef) !== undefined) return true;
  let holdsAnything = false;
  eachSubschema(schema, ({ node }) => {
    holdsAnything ||= node === true;
  });
  if (holdsAnything) return true;
  if (schema.enum !== undefined || 'const' in schema) return false;
  const types = [type ?? []].flat();
  if (types.includes('object') && additionalProperties === true) return true;
  if (types.includes('array') && items === undefined) return true;
  return types.length === 0 && anyOf === undefined;
}
