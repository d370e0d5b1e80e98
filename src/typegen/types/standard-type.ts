import { NUMBER_KEY } from '../../schema/value-type.js';
import type { SymbolHandle, TypeHandle } from '../compiler/compiler-view.js';
import { CodeReference, type DescribedSchema } from './described-schema.js';
import { writeSchema } from './finish-schema.js';
import { BUFFERS, RESULT_FORMS, type StandardWriter } from './result-forms.js';
import { definedParts, fault, hasFlag, type TypePlace, type TypeWalk, type Written } from './type-walk.js';

/** Text in JSON, an instance in the tool. */
function textual(name: string, keywords: DescribedSchema): StandardWriter {
  const instanceOf = new CodeReference(name);
  return () => ({ schema: { type: 'string', ...keywords, instanceOf } });
}

const BASE64 = { contentEncoding: 'base64' };

const SET = new CodeReference('Set');
const MAP = new CodeReference('Map');

const writeSet: StandardWriter = ({ type, path }, walk) => {
  const [item] = walk.view.typeArguments(type);
  const items = item === undefined ? {} : writeSchema({ type: item, path: `${path}[]` }, walk);
  return { schema: { type: 'array', items, instanceOf: SET } };
};

const NUMBERS = ['Number', 'NumberLiteral'];

const writeMap: StandardWriter = ({ type, path }, walk) => {
  const [key, value] = walk.view.typeArguments(type);
  const values = value === undefined ? {} : writeSchema({ type: value, path: `${path}{}` }, walk);
  const isNumber =
    key !== undefined && definedParts(walk, key).every((part) => hasFlag(walk, part, ...NUMBERS));
  const keys = isNumber ? { propertyNames: { pattern: NUMBER_KEY } } : {};
  return { schema: { type: 'object', ...keys, additionalProperties: values, instanceOf: MAP } };
};

const refused =
  (problem: string): StandardWriter =>
  ({ path }, walk) =>
    fault(walk, path, { problem });

const scalar =
  (type: string): StandardWriter =>
  () => ({ schema: { type } });

/** What parameters are written as. */
const WRITERS: ReadonlyMap<string, StandardWriter> = new Map<string, StandardWriter>([
  ['Date', textual('Date', { format: 'date-time' })],
  ['URL', textual('URL', { format: 'uri' })],
  ['Uint8Array', textual('Uint8Array', BASE64)],
  ['Buffer', textual('Buffer', BASE64)],
  ['Set', writeSet],
  ['ReadonlySet', writeSet],
  ['Map', writeMap],
  ['ReadonlyMap', writeMap],
  ['String', scalar('string')],
  ['Number', scalar('number')],
  ['Boolean', scalar('boolean')],
  ['Object', () => ({ schema: {} })],
  ['Function', refused('is a function, which JSON cannot carry')],
  ['CallableFunction', refused('is a function, which JSON cannot carry')],
  ['Promise', refused('is a promise, which JSON cannot carry')],
  ['PromiseLike', refused('is a promise, which JSON cannot carry')],
  ['RegExp', refused('is a regular expression, which JSON cannot carry')],
  ['Error', refused('is an error, which JSON cannot carry')],
  ['WeakMap', refused('is a WeakMap, which JSON cannot carry')],
  ['WeakSet', refused('is a WeakSet, which JSON cannot carry')],
  ...BUFFERS.map(
    (name) => [name, refused(`is an ${name}, which JSON cannot carry; a Uint8Array can be`)] as const,
  ),
  ...['ReadableStream', 'Blob', 'File', 'FormData', 'Request', 'Response', 'Headers'].map(
    (name) => [name, refused(`is a ${name}, which JSON cannot carry`)] as const,
  ),
]);

/** The types that belong to the language or to Node, which have forms of their own; nothing for all others. */
export function standardType(place: TypePlace, walk: TypeWalk): Written | undefined {
  const writers = walk.direction === 'in' ? WRITERS : RESULT_FORMS;
  const symbol = walk.view.symbolOf(place.type);
  if (symbol !== undefined && writers.has(symbol.name) && isStandard(symbol, walk)) {
    return writers.get(symbol.name)?.(place, walk);
  }
  const mapped = mappedStandardType(place.type, walk);
  return mapped === undefined ? undefined : writers.get(mapped)?.(place, walk);
}

/** `DeepPartial<Date>` as most people write it maps the methods of the `Date`; what is meant is a `Date`. */
function mappedStandardType(type: TypeHandle, walk: TypeWalk): string | undefined {
  const { view } = walk;
  if (((type.objectFlags ?? 0) & (view.objectFlags.Mapped ?? 0)) === 0) return undefined;
  const [first] = view.propertiesOf(type);
  if (first === undefined || !isStandard(first, walk)) return undefined;
  const name = view.declarations(first)[0]?.parent?.name?.text;
  return name !== undefined && MAPPED.has(name) ? name : undefined;
}

const MAPPED: ReadonlySet<string> = new Set(['Date', 'URL', 'Uint8Array', 'Buffer']);

/** Whether a symbol is the language's or Node's, and not a namesake in the project. */
export function isStandard(symbol: SymbolHandle, { view }: Pick<TypeWalk, 'view'>): boolean {
  const files = view.declaringFiles(symbol);
  return files.length > 0 && files.every((file) => STANDARD_FILE.test(file));
}

const STANDARD_FILE = /(^|\/)lib\.[\w.]+\.d\.ts$|\/node_modules\/(@types\/node|undici-types|buffer)\//;
