import type { ArgumentFault } from '../contract/argument-fault.js';
import type { JsonSchema } from '../contract/json-schema.js';
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

/** Whether what fits a schema is within those bounds already, so that nobody needs to look. */
export function boundsValues(schema: JsonSchema): boolean {
  for (const part of allSchemas(schema)) if (isOpen(part)) return false;
  return true;
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
