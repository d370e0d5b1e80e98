import type { DescribedSchema } from './described-schema.js';
import { writeSchema } from './finish-schema.js';
import { literalSchema } from './literal-schema.js';
import { definedParts, hasFlag, type TypePlace, type TypeWalk, type Written } from './type-walk.js';
import { writeItem } from './write-array.js';

/** Writes the schema of a type that belongs to the language or to Node. */
export type StandardWriter = (place: TypePlace, walk: TypeWalk) => Written;

function always(schema: DescribedSchema): StandardWriter {
  return () => ({ schema });
}

const TEXT = always({ type: 'string' });
const ANYTHING = always({});

/** As lists are, also with `null` where there is nothing. */
const writeSet: StandardWriter = ({ type, path }, walk) => {
  const [item] = walk.view.typeArguments(type);
  const items = item === undefined ? {} : writeItem({ type: item, path: `${path}[]` }, walk);
  return { schema: { type: 'array', ...(Object.keys(items).length === 0 ? {} : { items }) } };
};

const TEXTS = ['String', 'StringLiteral', 'StringMapping', 'TemplateLiteral'];
const NUMBERS = ['Number', 'NumberLiteral'];

/** An object where keys are names and none can be another one's name; otherwise it depends on the keys. */
const writeMap: StandardWriter = ({ type, path }, walk) => {
  const [key, value] = walk.view.typeArguments(type);
  if (key === undefined || value === undefined) return { schema: {} };
  const keys = definedParts(walk, key);
  const areNames = [TEXTS, NUMBERS].some((flags) => keys.every((part) => hasFlag(walk, part, ...flags)));
  if (!areNames || keys.length === 0) return { schema: {} };
  const values = writeSchema({ type: value, path: `${path}{}` }, walk);
  return { schema: { type: 'object', additionalProperties: values } };
};

function named(names: readonly string[], writer: StandardWriter) {
  return names.map((name) => [name, writer] as const);
}

const BYTES = ['Uint8ClampedArray', 'DataView', 'ArrayBuffer', 'SharedArrayBuffer'];
const NUMBER_ARRAYS = [
  ...['Int8Array', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array'],
  ...['Float16Array', 'Float32Array', 'Float64Array'],
];
const BIGINT_ARRAYS = ['BigInt64Array', 'BigUint64Array'];

/** Binary data of which results have a form, and parameters none. */
export const BUFFERS = [...BYTES, ...NUMBER_ARRAYS, ...BIGINT_ARRAYS];

/** What is written of results: bytes are the name of a file, a `Set` is a list, an error is told. */
export const RESULT_FORMS: ReadonlyMap<string, StandardWriter> = new Map<string, StandardWriter>([
  ['Date', always({ type: 'string', format: 'date-time' })],
  ['URL', always({ type: 'string', format: 'uri' })],
  ...named(['Set', 'ReadonlySet'], writeSet),
  ...named(['Map', 'ReadonlyMap'], writeMap),
  ...named(['Buffer', 'Uint8Array', ...BYTES, 'RegExp', 'String'], TEXT),
  ...named(NUMBER_ARRAYS, always({ type: 'array', items: { type: 'number' } })),
  ...named(BIGINT_ARRAYS, (_place, walk) => ({
    schema: { type: 'array', items: literalSchema([], walk).schema },
  })),
  ['Number', always({ type: 'number' })],
  ['Boolean', always({ type: 'boolean' })],
  ['Error', always({ type: 'object', properties: { message: { type: 'string' } }, required: ['message'] })],
  ...named(['Object', 'Function', 'CallableFunction', 'Promise', 'PromiseLike'], ANYTHING),
  ...named(['WeakMap', 'WeakSet', 'FormData', 'Headers', 'Request', 'Response'], ANYTHING),
  ...named(['ReadableStream', 'Blob', 'File'], ANYTHING),
]);
