import type { JsonSchema } from '../contract/json-schema.js';
import { isRecord } from '../kernel/is-record.js';
import { nearestNames } from '../kernel/nearest-name.js';
import { misfittingDefault } from './author-schema.js';
import { isExponentialPattern } from './exponential-pattern.js';
import { KNOWN_FORMATS } from './known-formats.js';
import { readSchema, type SchemaFault, type SchemaPart } from './schema-faults.js';

/** Who wrote a schema: the author by hand, or a library, whose formats are its own affair. */
type Writer = 'author' | 'library';

/**
 * What works in a schema of an author and is probably not meant: patterns that never end, formats that nobody
 * knows, and defaults that are never filled in, where they may be documented for others.
 */
export function schemaDoubts(schema: JsonSchema, writer: Writer): readonly SchemaFault[] {
  const { textual, doubtful } = readSchema(schema);
  const slow = textual.flatMap(slowPatterns);
  if (writer === 'library') return slow;
  const misfits = doubtful.flatMap((part) => misfittingDefault(part, schema));
  return [...slow, ...textual.flatMap(unknownFormat), ...misfits];
}

const ONE_WAY =
  'a pattern that matches a text in one way only, without repetitions of what repeats itself, as ^a+$ for ^(a+)+$';

function slowPatterns({ schema, path }: SchemaPart): readonly SchemaFault[] {
  const { pattern, patternProperties } = schema;
  const names = isRecord(patternProperties) ? Object.keys(patternProperties) : [];
  const places = [
    ...(typeof pattern === 'string' ? [{ place: 'pattern', pattern }] : []),
    ...names.map((name) => ({ place: 'patternProperties', pattern: name })),
  ];
  return places
    .filter((one) => isExponentialPattern(one.pattern))
    .map((one) => ({
      path: joined(path, one.place),
      problem: `is ${one.pattern.slice(0, MOST_SHOWN)}, which a text of 40 characters can keep busy for ever`,
      fix: ONE_WAY,
    }));
}

const MOST_SHOWN = 200;

function unknownFormat({ schema: { format }, path }: SchemaPart): readonly SchemaFault[] {
  if (typeof format !== 'string' || KNOWN_FORMATS.has(format)) return [];
  const near = nearestNames(format, [...KNOWN_FORMATS]);
  return [
    {
      path: joined(path, 'format'),
      problem: `is ${format.slice(0, MOST_SHOWN)}, which nobody checks`,
      fix:
        near.length > 0
          ? near.join(' or ')
          : 'a format of JSON Schema, a `pattern`, or words in the description',
    },
  ];
}

function joined(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}
