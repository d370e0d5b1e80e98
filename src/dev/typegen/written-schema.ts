import type { DescribedSchema } from '../../core/contract/declaration.js';
import { jsonType } from '../../core/kernel/json.js';
import { isSchemaNode, nullableSchema } from '../../tools/schema/keywords.js';
import { type DocComment, docKeywords } from './doc-comment.js';

/** Notes about the values of a schema, which are added to its description at the end. */
export const NOTES = Symbol('notes');

/** A schema to print: `instanceOf` contains code references. */
export type WrittenSchema = DescribedSchema & { readonly [NOTES]?: readonly string[] };

/** An exported name of a module, or a global name; printed as code, with an import if it needs one. */
export class CodeReference {
  constructor(
    /** The exported name; `default` for a default export. */
    readonly name: string,
    /** The origin of a name that is not global. */
    readonly origin: {
      /** The absolute path of the file that exports it. */
      readonly file?: string;
      /** The package that exports it, as in an import. */
      readonly package?: string;
      /** Its name within its file, if that differs. */
      readonly localName?: string;
    } = {},
  ) {}
}

/** Adds a comment to a schema; the comment nearer to the value takes precedence. */
export function describeSchema(schema: WrittenSchema, comment: DocComment | undefined): WrittenSchema {
  if (comment === undefined) return schema;
  const { isInteger, keywords, fallback } = docKeywords(comment);
  const { description, ...others } = schema;
  // An invalid default is for people: the value would be used whenever the model omits its own.
  const { text = 'undefined', value } = fallback ?? {};
  const isGiven = text !== '' && text !== 'undefined';
  const valid = isGiven ? [value, text].find((one) => fits(one, schema)) : undefined;
  const words = isGiven && valid === undefined ? `Default: ${text}` : '';
  const said = [comment.summary || description, words].filter(Boolean).join('\n\n');
  return {
    ...(isInteger ? wholeNumbers(others) : others),
    ...(said === '' ? {} : { description: said }),
    ...keywords,
    ...(valid === undefined ? {} : { default: valid }),
  };
}

/** Makes numbers integers: a number itself, one among other types, and those in a list or record. */
function wholeNumbers(schema: WrittenSchema): WrittenSchema {
  const { type, anyOf, items, additionalProperties: values } = schema;
  const whole = (item: string) => (item === 'number' ? 'integer' : item);
  const within = <Part>(part: Part) => (isSchemaNode(part) ? wholeNumbers(part) : part);
  return {
    ...schema,
    ...(type === undefined ? {} : { type: typeof type === 'string' ? whole(type) : type.map(whole) }),
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map(within) }),
    ...(items === undefined ? {} : { items: within(items) }),
    ...(values === undefined ? {} : { additionalProperties: within(values) }),
  };
}

/** The finished schema: notes about single values are appended to the description. */
export function settleSchema(schema: WrittenSchema): WrittenSchema {
  const { [NOTES]: notes, description, ...others } = schema;
  if (notes === undefined) return schema;
  return {
    ...others,
    description: [...(description === undefined ? [] : [description]), ...notes].join('\n'),
  };
}

function fits(value: unknown, schema: WrittenSchema): boolean {
  const { type, enum: values, const: only, anyOf, instanceOf } = schema;
  if (anyOf !== undefined) return anyOf.some((branch) => fits(value, branch));
  if (values !== undefined && !values.includes(value)) return false;
  if (only !== undefined && only !== value) return false;
  const kind = Number.isInteger(value) ? 'integer' : jsonType(value);
  if (type === undefined) return instanceOf === undefined || kind === 'object';
  const kinds = [type].flat();
  if (!kinds.includes(kind) && !(kind === 'integer' && kinds.includes('number'))) return false;
  if (kind !== 'string' || !(instanceOf instanceof CodeReference)) return true;
  if (instanceOf.name === 'Date') return !Number.isNaN(Date.parse(String(value)));
  return instanceOf.name !== 'URL' || URL.canParse(String(value));
}

/** Accepts what any of the schemas accepts. Different TypeScript types may be the same in JSON. */
export function anyOf(schemas: readonly WrittenSchema[]): WrittenSchema {
  const [only, ...others] = new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values();
  if (only === undefined || others.length === 0) return only ?? {};
  // A branch without constraints accepts everything.
  const isOpen = schemas.some((schema) => Object.keys(schema).length === 0);
  return isOpen ? {} : { anyOf: [only, ...others] };
}

/** The schema or `null`; a constant becomes an `enum` with `null`. */
export function orNull({ const: only, ...others }: WrittenSchema): WrittenSchema {
  return nullableSchema(only === undefined ? others : { ...others, enum: [only] });
}
