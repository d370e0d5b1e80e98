import { jsonType } from '../../../core/kernel/json.js';
import { isSchemaNode, nullableSchema } from '../../../tools/schema/keywords.js';
import { type DocComment, type DocDefault, docCommentAt, docKeywords } from '../comments/doc-comment.js';
import type { CompilerView, SyntaxNode } from '../compiler/load-compiler.js';
import { CodeReference, NOTES, type WrittenSchema } from './type-walk.js';

/** Adds a comment to a schema; the comment nearer to the value takes precedence. */
export function describeSchema(schema: WrittenSchema, comment: DocComment | undefined): WrittenSchema {
  if (comment === undefined) return schema;
  const { isInteger, keywords, fallback } = docKeywords(comment);
  const { description, ...others } = schema;
  const { value, words } = fallback ? docDefault(fallback, schema) : {};
  const said = [comment.summary || description, words && `Default: ${words}`].filter(Boolean).join('\n\n');
  return {
    ...(isInteger ? wholeNumbers(others) : others),
    ...(said === '' ? {} : { description: said }),
    ...keywords,
    ...(value === undefined ? {} : { default: value }),
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

/**
 * The value of `@default`, if it is valid for the schema; other text is for people. An invalid default would be used
 * whenever the model omits the value.
 */
function docDefault(
  { text, value }: DocDefault,
  schema: WrittenSchema,
): { readonly value?: unknown; readonly words?: string } {
  if (text === '' || text === 'undefined') return {};
  if (fits(value, schema)) return { value };
  return fits(text, schema) ? { value: text } : { words: text };
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
  return kind !== 'string' || !(instanceOf instanceof CodeReference) || isTextOf(instanceOf, String(value));
}

function isTextOf({ name }: CodeReference, text: string): boolean {
  if (name === 'Date') return !Number.isNaN(Date.parse(text));
  return name !== 'URL' || URL.canParse(text);
}

/** The TSDoc comment before a declaration. */
export function commentOf(view: CompilerView, node: SyntaxNode): DocComment | undefined {
  const isVariable = node.kind === view.syntaxKinds.VariableDeclaration;
  return docCommentAt(view.fileOf(node).text, isVariable ? (node.parent?.parent?.pos ?? node.pos) : node.pos);
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
