import { NUMBER_KEY } from '../../../tools/schema/value-type.js';
import type { SymbolHandle, TypeHandle } from '../compiler/load-compiler.js';
import { arrayOf, writeItem, writeSchema } from './finish-schema.js';
import { declaredOrder, keyPattern, literalSchema } from './literal-schema.js';
import {
  CodeReference,
  definedParts,
  fault,
  hasFlag,
  type TypePlace,
  type TypeWalk,
  type WithView,
  type WrittenSchema,
} from './type-walk.js';

/** A string in JSON, and an instance in the tool. */
function textual(name: string, keywords: WrittenSchema): StandardWriter {
  const instanceOf = new CodeReference(name);
  return () => ({ type: 'string', ...keywords, instanceOf });
}

const BYTES = ['Uint8ClampedArray', 'DataView', 'ArrayBuffer', 'SharedArrayBuffer'];
const NUMBER_ARRAYS = [
  ...['Int8Array', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array'],
  ...['Float16Array', 'Float32Array', 'Float64Array'],
];
const BIGINT_ARRAYS = ['BigInt64Array', 'BigUint64Array'];

const BASE64 = { contentEncoding: 'base64' };

const SET = new CodeReference('Set');
const MAP = new CodeReference('Map');

const writeSet: StandardWriter = ({ type, path }, walk) => {
  const [item] = walk.view.typeArguments(type);
  const items = item === undefined ? {} : writeSchema({ type: item, path: `${path}[]` }, walk);
  return { type: 'array', items, instanceOf: SET };
};

const NUMBERS = ['Number', 'NumberLiteral'];

/** Types that cannot be keys in JSON. */
const NO_KEYS = [
  ...['Object', 'NonPrimitive', 'ESSymbol', 'UniqueESSymbol'],
  ...['Boolean', 'BooleanLiteral', 'BigInt', 'BigIntLiteral'],
];

const writeMap: StandardWriter = ({ type, node, path }, walk) => {
  const [key, value] = walk.view.typeArguments(type);
  const keys = key === undefined ? [] : definedParts(walk, key);
  const foreign = keys.find((part) => hasFlag(walk, part, ...NO_KEYS));
  if (foreign !== undefined)
    return fault(walk, path, {
      problem: `is a Map whose keys are ${walk.view.textOf(foreign)}: names in JSON are texts`,
      fix: 'a Map whose keys are strings or numbers, or a list of pairs',
    });
  const values = value === undefined ? {} : writeSchema({ type: value, path: `${path}{}` }, walk);
  const isNumber = key !== undefined && keys.every((part) => hasFlag(walk, part, ...NUMBERS));
  const ordered = declaredOrder(keys, node?.typeArguments?.[0], walk).map((part) => part.type);
  const names = { ...(isNumber ? { pattern: NUMBER_KEY } : {}), ...knownKeys(ordered, walk) };
  const propertyNames = Object.keys(names).length === 0 ? {} : { propertyNames: names };
  return { type: 'object', ...propertyNames, additionalProperties: values, instanceOf: MAP };
};

/** The allowed keys of literal and template literal types; empty if there are other types among them. */
function knownKeys(keys: readonly TypeHandle[], walk: TypeWalk): WrittenSchema {
  const templates = keys.filter((key) => hasFlag(walk, key, 'TemplateLiteral'));
  const texts = keys.flatMap((key) => {
    const value = walk.view.literalOf(key);
    return value === undefined ? [] : [String(value)];
  });
  if (keys.length === 0 || templates.length + texts.length < keys.length) return {};
  return templates.length === 0 ? { enum: texts } : { pattern: keyPattern(templates, texts, walk) };
}

const refused =
  (problem: string): StandardWriter =>
  ({ path }, walk) =>
    fault(walk, path, { problem });

/** The schema of a type of the language or of Node with a form of its own; `undefined` for other types. */
export function standardType(place: TypePlace, walk: TypeWalk): WrittenSchema | undefined {
  const symbol = walk.view.symbolOf(place.type);
  const forms = FORMS.get(symbol?.name ?? '');
  if (symbol !== undefined && forms !== undefined && isStandardSymbol(symbol, walk))
    return forms[walk.direction](place, walk);
  const mapped = mappedStandardType(place.type, walk);
  return mapped === undefined ? undefined : FORMS.get(mapped)?.[walk.direction](place, walk);
}

/** Recognizes a mapped `Date` and the like: a typical `DeepPartial<Date>` maps the methods, but means a `Date`. */
function mappedStandardType(type: TypeHandle, walk: TypeWalk): string | undefined {
  const { view } = walk;
  if (((type.objectFlags ?? 0) & (view.objectFlags.Mapped ?? 0)) === 0) return undefined;
  const [first] = view.propertiesOf(type);
  if (first === undefined || !isStandardSymbol(first, walk)) return undefined;
  const name = view.declarations(first)[0]?.parent?.name?.text;
  return name !== undefined && MAPPED.has(name) ? name : undefined;
}

const MAPPED: ReadonlySet<string> = new Set(['Date', 'URL', 'Uint8Array', 'Buffer']);

/** Whether a symbol belongs to the language or Node, not to a type of the same name in the project. */
export function isStandardSymbol(symbol: SymbolHandle, { view }: WithView): boolean {
  const files = view.declaringFiles(symbol);
  return files.length > 0 && files.every((file) => STANDARD_FILE.test(file));
}

const STANDARD_FILE = /(^|\/)lib\.[\w.]+\.d\.ts$|\/node_modules\/(@types\/node|undici-types|buffer)\//;

/** Writes the schema of a type of the language or Node. */
type StandardWriter = (place: TypePlace, walk: TypeWalk) => WrittenSchema;

function always(schema: WrittenSchema): StandardWriter {
  return () => schema;
}

const TEXT = always({ type: 'string' });
const NUMBER = always({ type: 'number' });
const BOOLEAN = always({ type: 'boolean' });
const ANY_VALUE = always({});

/** Like lists, with `null` for undefined items. */
const writeSetResult: StandardWriter = ({ type, path }, walk) => {
  const [item] = walk.view.typeArguments(type);
  return arrayOf(item === undefined ? {} : writeItem({ type: item, path: `${path}[]` }, walk));
};

const TEXTS = ['String', 'StringLiteral', 'StringMapping', 'TemplateLiteral'];

/** An object if all keys are strings or all are numbers, so that no two are equal in JSON; otherwise unknown. */
const writeMapResult: StandardWriter = ({ type, path }, walk) => {
  const [key, value] = walk.view.typeArguments(type);
  if (key === undefined || value === undefined) return {};
  const keys = definedParts(walk, key);
  const areNames = [TEXTS, NUMBERS].some((flags) => keys.every((part) => hasFlag(walk, part, ...flags)));
  if (!areNames || keys.length === 0) return {};
  const values = writeSchema({ type: value, path: `${path}{}` }, walk);
  return { type: 'object', additionalProperties: values };
};

/** Names of types, with their schemas in arguments and in results. */
type Row = readonly [names: readonly string[], argument: StandardWriter, result: StandardWriter];

/** Types that cannot be arguments. */
function onlyResults(names: readonly string[], result: StandardWriter, problem: (name: string) => string) {
  return names.map((name): Row => [[name], refused(problem(name)), result]);
}

const buffer = (name: string) => `is an ${name}, which JSON cannot carry; a Uint8Array can be`;

/** In results, binary data is the name of a file, a `Set` is a list, and an error has its message. */
const ROWS: readonly Row[] = [
  [['Date'], textual('Date', { format: 'date-time' }), always({ type: 'string', format: 'date-time' })],
  [['URL'], textual('URL', { format: 'uri' }), always({ type: 'string', format: 'uri' })],
  [['Uint8Array'], textual('Uint8Array', BASE64), TEXT],
  [['Buffer'], textual('Buffer', BASE64), TEXT],
  [['Set', 'ReadonlySet'], writeSet, writeSetResult],
  [['Map', 'ReadonlyMap'], writeMap, writeMapResult],
  [['String'], TEXT, TEXT],
  [['Number'], NUMBER, NUMBER],
  [['Boolean'], BOOLEAN, BOOLEAN],
  [['Object'], ANY_VALUE, ANY_VALUE],
  [['Function', 'CallableFunction'], refused('is a function, which JSON cannot carry'), ANY_VALUE],
  [['Promise', 'PromiseLike'], refused('is a promise, which JSON cannot carry'), ANY_VALUE],
  [['RegExp'], refused('is a regular expression, which JSON cannot carry'), TEXT],
  [
    ['Error'],
    refused('is an error, which JSON cannot carry'),
    always({ type: 'object', properties: { message: { type: 'string' } }, required: ['message'] }),
  ],
  ...onlyResults(BYTES, TEXT, buffer),
  ...onlyResults(NUMBER_ARRAYS, always({ type: 'array', items: { type: 'number' } }), buffer),
  ...onlyResults(
    BIGINT_ARRAYS,
    (_place, walk) => ({ type: 'array', items: literalSchema([], walk) }),
    buffer,
  ),
  ...onlyResults(
    [
      ...['WeakMap', 'WeakSet', 'ReadableStream', 'Blob', 'File'],
      ...['FormData', 'Request', 'Response', 'Headers'],
    ],
    ANY_VALUE,
    (name) => `is a ${name}, which JSON cannot carry`,
  ),
];

const FORMS = new Map(
  ROWS.flatMap(([names, argument, result]) =>
    names.map((name) => [name, { in: argument, out: result }] as const),
  ),
);
