import type { ClassDescription } from '../../core/contract/declaration.js';
import { freeName } from '../../core/kernel/free-name.js';
import { childPath } from '../../core/kernel/json.js';
import { NUMBER_KEY } from '../../tools/schema/value-type.js';
import { commentOf, docKeywords } from './doc-comment.js';
import {
  aliasDeclaration,
  declaredOrder,
  keyPattern,
  literalDefault,
  literalSchema,
  orderedPath,
  sortedBy,
  templatePattern,
} from './literal-schema.js';
import type { CompilerView, SymbolHandle, SyntaxNode, TypeHandle } from './load-compiler.js';
import {
  anyOf,
  CodeReference,
  describeSchema,
  orNull,
  settleSchema,
  type WrittenSchema,
} from './written-schema.js';

/** A part of a type that has no schema. `problem` continues the path: "… is a function". */
interface TypeProblem {
  readonly path: string;
  readonly problem: string;
  readonly fix?: string;
}

/** A type with its node, which provides the author's order and the comments of aliases. */
interface TypePlace {
  readonly type: TypeHandle;
  readonly node?: SyntaxNode;
  /** Path within the parameter or the result: `page.filters[]`. */
  readonly path: string;
}

/** Shared by all parts of a walk. */
export interface TypeWalk {
  readonly view: CompilerView;
  /** Arguments (`in`) are hydrated; results (`out`) are described as JSON. */
  readonly direction: 'in' | 'out';
  /** The types that are being written; a second visit shows that a type is recursive and gives it a name. */
  readonly open: { readonly key: string; name?: string }[];
  /** Names of recursive types, by key. */
  readonly names: Map<string, string>;
  readonly definitions: Map<string, WrittenSchema>;
  readonly faults: TypeProblem[];
  readonly warnings: TypeProblem[];
  /** The number of properties so far, nested ones included. */
  properties: number;
  /** What a property's decorators define: its type, or that it is not part of arguments or results. */
  decoration(declaration: SyntaxNode): Decoration | undefined;
  /**
   * The reference to a class whose instances are created, which also requests its description; or a fault.
   */
  classReference(symbol: SymbolHandle): ClassReference;
}

/** `typed`: a decorator defines the type, so the TypeScript type is not checked. `excluded`: it is not data. */
type Decoration = 'typed' | 'excluded';

/** How a class is described. `structural`: as a plain object. */
export type ClassReference =
  | { readonly kind: 'reference'; readonly reference: CodeReference }
  | { readonly kind: 'structural' }
  | { readonly kind: 'fault'; readonly problem: string; readonly fix: string };

/** Records a fault; returns a placeholder schema. */
export function fault(walk: TypeWalk, path: string, what: Omit<TypeProblem, 'path'>): WrittenSchema {
  walk.faults.push({ path, ...what });
  return {};
}

/** The schema of a value whose decorator may define its type. Then faults of the TypeScript type are ignored. */
export function writeDecorated(
  place: TypePlace,
  walk: TypeWalk,
  decoration: Decoration | undefined,
): WrittenSchema {
  const before = { faults: walk.faults.length, warnings: walk.warnings.length };
  const written = writeType(place, walk);
  if (decoration !== 'typed') return written;
  const isSayable = walk.faults.length === before.faults;
  walk.faults.length = before.faults;
  walk.warnings.length = before.warnings;
  return isSayable ? written : {};
}

/** The finished schema of a part of a type. */
export function writeSchema(place: TypePlace, walk: TypeWalk): WrittenSchema {
  return settleSchema(writeType(place, walk));
}

/** The schema of a type. The caller handles `undefined`, which JSON lacks. */
function writeType(place: TypePlace, walk: TypeWalk): WrittenSchema {
  const { type, path } = place;
  const { view } = walk;
  const { UnionType, TypeReference, ArrayType, TupleType, TypeOperator, ParenthesizedType } =
    view.syntaxKinds;
  const kinds = [UnionType, TypeReference, ArrayType, TupleType, TypeOperator, ParenthesizedType];
  const parts = view.definedParts(type);
  const key = keyOf(parts);
  // A node may provide more than its type: an order, an alias, the parts of a list. The node of a generic declaration
  // has another type than its instance.
  const isReporting =
    place.node !== undefined &&
    kinds.includes(place.node.kind) &&
    keyOf(view.definedParts(view.typeFromNode(place.node))) === key;
  const node = isReporting ? place.node : undefined;
  const alias = node && aliasDeclaration(view, node);
  if (alias !== undefined) {
    const comment = commentOf(view, alias);
    for (const problem of docKeywords(comment).problems) fault(walk, path, problem);
    return describeSchema(writeType({ ...place, node: alias.type }, walk), comment);
  }
  const [only, second] = parts;
  if (only === undefined) {
    if (walk.direction === 'out') return { type: 'null' };
    return fault(walk, path, { problem: `has the type ${view.textOf(type)}, which has no value in JSON` });
  }
  if (second === undefined) return writeOne({ ...place, type: only, node }, walk);
  return guarded({ key, type, path }, walk, () => writeUnion(parts, { ...place, node }, walk));
}

/** The same key for the same types in any order. */
function keyOf(types: readonly TypeHandle[]): string {
  return types
    .map(({ id }) => id)
    .sort((a, b) => a - b)
    .join('|');
}

/** Types with one schema, by their flags. */
const PLAIN: readonly (readonly [flags: readonly string[], schema: WrittenSchema])[] = [
  [['Null'], { type: 'null' }],
  [['String', 'StringMapping'], { type: 'string' }],
  [['Number', 'Enum'], { type: 'number' }],
  [['Boolean'], { type: 'boolean' }],
  [['NonPrimitive'], { type: 'object' }],
];

const LITERALS = ['StringLiteral', 'NumberLiteral', 'BigIntLiteral', 'BooleanLiteral'];

function writeOne(place: TypePlace, walk: TypeWalk): WrittenSchema {
  const { type, path } = place;
  const { view, direction } = walk;
  const is = (...flags: readonly string[]) => view.hasFlag(type, ...flags);
  if (is('Any', 'Unknown')) {
    if (direction === 'in')
      walk.warnings.push({ path, problem: `is ${view.textOf(type)}, so its values are not validated` });
    return {};
  }
  if (is(...LITERALS)) return literalSchema([type], view, direction);
  const plain = PLAIN.find(([flags]) => is(...flags));
  if (plain !== undefined) return plain[1];
  if (is('BigInt')) return literalSchema([], view, direction);
  if (is('TemplateLiteral')) return { type: 'string', pattern: templatePattern(type, view) };
  if (is('Intersection')) {
    // `string & { __brand: 'Id' }`, `string[] & { … }`: the brand exists only for the compiler.
    const parts = view.constituents(type);
    const value =
      parts.find((part) => !view.hasFlag(part, 'Object', 'Intersection', 'NonPrimitive')) ??
      parts.find((part) => isBranded(part, view));
    if (value !== undefined) return writeOne({ ...place, type: value, node: undefined }, walk);
  }
  if (is('Intersection', 'Object')) return writeObjectType(place, walk);
  if (is('Never')) return fault(walk, path, { problem: 'is never, which accepts no value' });
  if (is('ESSymbol', 'UniqueESSymbol')) {
    if (direction === 'out') return { type: 'string' };
    return fault(walk, path, { problem: 'is a symbol, which JSON cannot represent' });
  }
  return fault(walk, path, {
    problem: `is ${view.textOf(type)}, a generic type that is not resolved`,
    fix: 'a concrete type, or a class that extends the generic one with concrete types',
  });
}

/** The JSON form of an intersection with a brand: a list, or a language type with a form of its own. */
function isBranded(type: TypeHandle, view: CompilerView): boolean {
  if (view.isArray(type) || view.isTuple(type)) return true;
  const symbol = view.symbolOf(type);
  return symbol !== undefined && BRANDED.has(symbol.name) && view.isStandard(symbol);
}

const BRANDED: ReadonlySet<string> = new Set([
  ...['Date', 'URL', 'Uint8Array', 'Buffer'],
  ...['Set', 'ReadonlySet', 'Map', 'ReadonlyMap'],
]);

/**
 * A union: one branch for all literals, one for all big integers, one for `boolean`, `null` as a second type, and
 * `anyOf` for the rest.
 */
function writeUnion(types: readonly TypeHandle[], place: TypePlace, walk: TypeWalk): WrittenSchema {
  const { view, direction } = walk;
  const isNull = (type: TypeHandle) => view.hasFlag(type, 'Null');
  const isTruth = (type: TypeHandle) => view.hasFlag(type, 'BooleanLiteral');
  const ordered = declaredOrder(types, place.node, view).filter(({ type }) => !isNull(type));
  const isBoolean = ordered.filter(({ type }) => isTruth(type)).length === 2;
  const byKind = Map.groupBy(ordered, (part) => {
    if (isBoolean && isTruth(part.type)) return 'boolean';
    const literal = view.literalOf(part.type);
    if (literal === undefined) return part;
    return typeof literal === 'bigint' ? 'bigint' : 'literal';
  });
  const branches = Array.from(byKind, ([kind, parts]): WrittenSchema => {
    if (kind === 'boolean') return { type: 'boolean' };
    if (typeof kind === 'object') return writeType({ ...kind, path: place.path }, walk);
    const literals = parts.map(({ type }) => type);
    return literalSchema(literals, view, direction);
  });
  const [only, second] = branches;
  const union = only !== undefined && second === undefined ? only : anyOf(branches.map(settleSchema));
  return types.some(isNull) ? orNull(union) : union;
}

/** An object type: an array, a tuple, a class, a type of the language, or plain data. */
function writeObjectType(place: TypePlace, walk: TypeWalk): WrittenSchema {
  const { type, path } = place;
  const { view, direction } = walk;
  const key = String(type.id);
  if (view.isArray(type) || view.isTuple(type)) {
    const write = () => (view.isArray(type) ? writeArray(place, walk) : writeTuple(place, walk));
    // A list can only be recursive through its own alias; otherwise the name belongs to its items.
    return view.aliasOf(type) === undefined ? write() : guarded({ key, type, path }, walk, write);
  }
  const form = standardForm(type, view);
  if (form !== undefined) return form[direction](place, walk);
  const list = listBase(type, view);
  if (list !== undefined)
    return guarded({ key, type, path }, walk, () => writeExtendedList(list, place, walk));
  if (view.callSignatures(type).length > 0) {
    // JSON has no functions: refused in arguments, omitted in results.
    if (direction === 'out') return {};
    return fault(walk, path, { problem: 'is a function, which JSON cannot represent' });
  }
  if (direction === 'out' && isIterable(type, view)) return {};
  const symbol = view.hasFlag(type, 'Intersection') ? undefined : view.symbolOf(type);
  return guarded({ key, type, path }, walk, () => {
    if (!view.isClass(symbol)) return writeProperties(place, walk);
    if (direction === 'out') {
      // As `JSON.stringify` writes it. If an instance has no JSON fields, its class determines whether a text or an
      // error is written.
      const written = writeProperties(place, walk);
      const isEmpty = written.type === 'object' && Object.keys(written).length === 1;
      return isEmpty ? {} : written;
    }
    // Instances are created, so the class must be plain data.
    const of = walk.classReference(symbol);
    if (of.kind === 'fault') return fault(walk, path, of);
    if (of.kind === 'structural') return writeProperties(place, walk);
    return describeSchema({ instanceOf: of.reference }, typeComment(type, view));
  });
}

/** A result may be serialized as a list, as an object or by its fields, depending on the value. */
function isIterable(type: TypeHandle, view: CompilerView): boolean {
  const names = view.propertiesOf(type).map(({ name }) => name);
  return names.some((name) => ITERATOR.test(name)) && !names.includes('toJSON');
}

/** The compilers' names of members with symbol keys. */
const ITERATOR = /^__@(?:iterator|asyncIterator)(?:@|$)/;

/** `T[]`, `readonly T[]`, `Array<T>`. */
function writeArray({ type, node, path }: TypePlace, walk: TypeWalk): WrittenSchema {
  const [item] = walk.view.typeArguments(type);
  if (item === undefined) return { type: 'array' };
  const { ArrayType, TypeOperator, ParenthesizedType, TypeReference } = walk.view.syntaxKinds;
  let list = node;
  while (list?.kind === TypeOperator || list?.kind === ParenthesizedType) list = list?.type;
  const inReference = list?.kind === TypeReference ? list?.typeArguments?.[0] : undefined;
  const itemNode = list?.kind === ArrayType ? list?.elementType : inReference;
  return arrayOf(writeItem({ type: item, node: itemNode, path: `${path}[]` }, walk));
}

/** A tuple. Elements after a rest element may have any of the following types: JSON Schema cannot be more exact. */
function writeTuple({ type, node, path }: TypePlace, walk: TypeWalk): WrittenSchema {
  const { TypeOperator, TupleType, NamedTupleMember, OptionalType } = walk.view.syntaxKinds;
  let tuple = node;
  while (tuple?.kind === TypeOperator) tuple = tuple?.type;
  const nodes = tuple?.kind === TupleType ? (tuple?.elements ?? []) : [];
  const elements = walk.view.tupleElements(type);
  const schemas = elements.map((element, index) => {
    const own = nodes[index];
    const isWrapped = own?.kind === NamedTupleMember || own?.kind === OptionalType;
    return writeItem(
      { type: element.type, node: isWrapped ? own?.type : own, path: `${path}[${index}]` },
      walk,
    );
  });
  const open = elements.findIndex(({ role }) => role === 'rest' || role === 'variadic');
  const minItems = elements.filter(({ role }) => role === 'required').length;
  const fixed = open < 0 ? schemas : schemas.slice(0, open);
  const rest = open < 0 ? [] : schemas.slice(open);
  return {
    type: 'array',
    ...(fixed.length > 0 ? { prefixItems: fixed } : {}),
    ...(rest.length > 0 ? { items: anyOf(rest) } : {}),
    ...(minItems > 0 ? { minItems } : {}),
    ...(open < 0 ? { maxItems: elements.length } : {}),
  };
}

/** The list type that an interface or class extends, at any depth. */
function listBase(type: TypeHandle, view: CompilerView): TypeHandle | undefined {
  const { Interface = 0, Class = 0 } = view.symbolFlags;
  if (((view.symbolOf(type)?.flags ?? 0) & (Interface | Class)) === 0) return undefined;
  for (const base of view.baseTypes(type)) {
    const list = view.isArray(base) || view.isTuple(base) ? base : listBase(base, view);
    if (list !== undefined) return list;
  }
  return undefined;
}

/** `interface Page<Row> extends Array<Row>`: a list. JSON cannot represent its other members. */
function writeExtendedList(list: TypeHandle, { type, path }: TypePlace, walk: TypeWalk): WrittenSchema {
  const { view } = walk;
  const symbol = view.symbolOf(type);
  if (view.isClass(symbol) && walk.direction === 'in')
    return fault(walk, path, {
      problem: `is the class ${symbol.name}, which extends a list; JSON only supports plain lists`,
      fix: 'the type of the list itself: string[]',
    });
  const comment = typeComment(type, view);
  if (view.isTuple(list)) return describeSchema(writeTuple({ type: list, path }, walk), comment);
  // The base of a generic interface is still generic; the index signature contains the actual item type.
  const item = view.indexesOf(type).find(({ key }) => view.hasFlag(key, 'Number'))?.value;
  const items = item && writeItem({ type: item, path: `${path}[]` }, walk);
  return describeSchema({ type: 'array', ...(items ? { items } : {}) }, comment);
}

/** Deeper than hand-written types; type instantiations can be infinite. */
const MAX_DEPTH = 60;

/**
 * Writes a type that may be recursive: in place if it is not, otherwise into `$defs` under the name of its alias or
 * declaration. Types of the same name get a number, in order of appearance.
 */
function guarded(
  { key, type, path }: { readonly key: string; readonly type: TypeHandle; readonly path: string },
  walk: TypeWalk,
  write: () => WrittenSchema,
): WrittenSchema {
  const { view, names, open, definitions } = walk;
  const known = names.get(key);
  if (known !== undefined) return { $ref: referenceTo(known) };
  const around = open.find((item) => item.key === key);
  if (around !== undefined) {
    const wanted = (view.aliasOf(type) ?? view.symbolOf(type))?.name ?? '';
    const name = /^[A-Za-z_$][\w$]*$/.test(wanted) && !wanted.startsWith('__') ? wanted : 'Type';
    const taken = new Set([...definitions.keys(), ...open.map((item) => item.name)]);
    around.name ??= freeName(name, (other) => taken.has(other));
    return { $ref: referenceTo(around.name) };
  }
  if (open.length >= MAX_DEPTH)
    return fault(walk, path.slice(0, 80), {
      problem: `has an infinitely nested type: ${view.textOf(type)}`,
    });
  const opened: { readonly key: string; name?: string } = { key };
  open.push(opened);
  const written = write();
  open.pop();
  if (opened.name === undefined) return written;
  names.set(key, opened.name);
  definitions.set(opened.name, settleSchema(written));
  return { $ref: referenceTo(opened.name) };
}

function referenceTo(name: string): string {
  return `#/$defs/${name}`;
}

/** A property of an object type. */
interface WrittenProperty {
  readonly name: string;
  readonly schema: WrittenSchema;
  readonly optional: boolean;
}

/** An interface, type literal, mapped type, or intersection of these: plain data. */
function writeProperties(place: TypePlace, walk: TypeWalk): WrittenSchema {
  const { type, path } = place;
  const { view } = walk;
  const symbols = orderedProperties(type, view);
  if (walk.direction === 'out') {
    // `JSON.stringify` writes what `toJSON` returns.
    const toJson = view.propertiesOf(type).find(({ name }) => name === 'toJSON');
    const [signature] = toJson ? view.callSignatures(view.typeOfSymbol(toJson)) : [];
    if (signature !== undefined) return writeType({ type: view.returnType(signature), path }, walk);
  } else {
    // One fault for an object with methods, such as a DOM node: a fault for each member would be hundreds.
    const methods = symbols.flatMap((symbol) => (isMethod(symbol, view) ? symbol.name : []));
    if (isIterable(type, view)) methods.push('an iterator');
    const shown = [...methods.slice(0, 3), ...(methods.length > 3 ? ['…'] : [])].join(', ');
    if (methods.length > 0)
      return fault(walk, path, {
        problem: `is ${view.textOf(type)}, which has methods (${shown}), so JSON cannot represent it`,
        fix: 'a type with only the fields that the model sends; objects of the application come from `context.scope`',
      });
  }
  const properties = symbols.flatMap((symbol) => writeProperty(symbol, path, walk) ?? []);
  const names = properties.map(({ name }) => name);
  const values = indexSchema(place, names, walk);
  const comment = typeComment(type, view);
  if (properties.length === 0) return describeSchema({ type: 'object', ...values }, comment);
  const schema = {
    type: 'object',
    properties: Object.fromEntries(properties.map(({ name, schema }) => [name, schema])),
    required: properties.filter(({ optional }) => !optional).map(({ name }) => name),
    ...values,
  };
  return describeSchema(schema, comment);
}

function isMethod(symbol: SymbolHandle, view: CompilerView): boolean {
  const { MethodDeclaration, MethodSignature } = view.syntaxKinds;
  const kind = view.declarations(symbol)[0]?.kind;
  return kind === MethodDeclaration || kind === MethodSignature;
}

/** The comment of an interface or class. */
function typeComment(type: TypeHandle, view: CompilerView) {
  const isNamed = !view.symbolOf(type)?.name.startsWith('__');
  const declaration = isNamed ? view.declarationOf(type) : undefined;
  const comment = declaration && commentOf(view, declaration);
  // Only its text: tags of a class are about the class.
  return comment && { ...comment, tags: [] };
}

/** The properties of a class whose instances are created; its methods are inherited and not data. */
export function dataProperties(
  type: TypeHandle,
  walk: TypeWalk,
): NonNullable<ClassDescription['properties']> {
  const data = orderedProperties(type, walk.view).filter((symbol) => !isMethod(symbol, walk.view));
  const properties = data.flatMap((symbol) => writeProperty(symbol, '', walk) ?? []);
  return Object.fromEntries(
    properties.map(({ name, schema, optional }) => [name, optional ? { optional, schema } : { schema }]),
  );
}

/** More than a model reads; types of the DOM and of some clients lead to hundreds of thousands. */
const MOST_PROPERTIES = 2_000;

function writeProperty(symbol: SymbolHandle, path: string, walk: TypeWalk): WrittenProperty | undefined {
  const { view, direction } = walk;
  const [declaration] = view.declarations(symbol);
  const decoration = declaration && walk.decoration(declaration);
  if (declaration !== undefined && (decoration === 'excluded' || isHidden(declaration, walk)))
    return undefined;
  const type = view.typeOfSymbol(symbol);
  const isOptional = (symbol.flags & (view.symbolFlags.Optional ?? 0)) !== 0;
  const parts = view.definedParts(type);
  if (parts.length === 0 || (isOptional && view.hasFlag(type, 'Never'))) return undefined;
  walk.properties += 1;
  if (walk.properties === MOST_PROPERTIES + 1)
    fault(walk, '', {
      problem: `has a type with more than ${MOST_PROPERTIES} properties, including nested properties`,
    });
  if (walk.properties > MOST_PROPERTIES) return undefined;
  const isFunction = (part: TypeHandle) =>
    view.hasFlag(part, 'Object') && view.callSignatures(part).length > 0;
  if (direction === 'out' && parts.every(isFunction)) return undefined;
  const place = childPath(path, symbol.name);
  const written = writeDecorated({ type, path: place, node: declaration?.type }, walk, decoration);
  const comment = declaration && commentOf(view, declaration);
  for (const problem of docKeywords(comment).problems) fault(walk, place, problem);
  const { PropertyDeclaration, Parameter } = view.syntaxKinds;
  const isClassProperty = declaration?.kind === PropertyDeclaration || declaration?.kind === Parameter;
  const initial = isClassProperty && direction === 'in' ? declaration?.initializer : undefined;
  const fallback = initial && literalDefault(initial, view);
  const described = describeSchema(written, comment);
  const schema = settleSchema(fallback ? { ...described, default: fallback.value } : described);
  const hasDefault = direction === 'in' && ('default' in schema || initial !== undefined);
  return { name: symbol.name, schema, optional: isOptional || hasDefault || view.admitsUndefined(type) };
}

/**
 * Private and protected members are not data. Getters cannot be set, and JSON contains only those of object literals:
 * in a class, they are on the prototype.
 */
function isHidden(declaration: SyntaxNode, { view, direction }: TypeWalk): boolean {
  const { PrivateIdentifier, GetAccessor, InterfaceDeclaration, ObjectLiteralExpression } = view.syntaxKinds;
  if (declaration.name?.kind === PrivateIdentifier) return true;
  if (declaration.kind === GetAccessor) {
    const within = declaration.parent?.kind;
    return within !== InterfaceDeclaration && (direction === 'in' || within !== ObjectLiteralExpression);
  }
  return view.hasModifier(declaration, 'PrivateKeyword', 'ProtectedKeyword');
}

/** Index signatures: `Record<string, T>`, `[key: \`x-${string}\`]: T`. `propertyNames` applies to all keys. */
function indexSchema(
  { type, path }: TypePlace,
  names: readonly string[],
  walk: TypeWalk,
): WrittenSchema | undefined {
  const { view } = walk;
  const indexes = view.indexesOf(type).filter(({ key }) => !view.hasFlag(key, 'ESSymbol', 'UniqueESSymbol'));
  if (indexes.length === 0) return undefined;
  const general =
    indexes.find(({ key }) => view.hasFlag(key, 'String')) ??
    indexes.find(({ key }) => !view.hasFlag(key, 'TemplateLiteral'));
  // Sorted, because each compiler has its own order.
  const meant = general ? [general] : sortedBy(indexes, ({ key }) => [templatePattern(key, view)]);
  const values = anyOf(meant.map(({ value }) => writeSchema({ type: value, path: `${path}{}` }, walk)));
  const additionalProperties = Object.keys(values).length === 0 ? true : values;
  if (general !== undefined) return { additionalProperties };
  const templates = meant.map(({ key }) => key);
  return { propertyNames: { pattern: keyPattern(templates, names, view) }, additionalProperties };
}

/**
 * The properties of a type in an order that does not depend on the compiler: first those of base types, then as
 * declared. Mapped types, whose order differs between compilers, are sorted by the place of the declaration, or by
 * name.
 */
function orderedProperties(type: TypeHandle, view: CompilerView): readonly SymbolHandle[] {
  const symbols = new Map(
    view
      .propertiesOf(type)
      .filter(({ name }) => !name.startsWith('__@') && name !== '__proto__')
      .map((symbol) => [symbol.name, symbol] as const),
  );
  const names = new Set([...namesOf(type, view), ...symbols.keys()]);
  return [...names].flatMap((name) => symbols.get(name) ?? []);
}

function namesOf(type: TypeHandle, view: CompilerView): readonly string[] {
  if (view.hasFlag(type, 'Intersection'))
    return view.constituents(type).flatMap((part) => namesOf(part, view));
  const own = view.propertiesOf(type);
  if (view.hasObjectFlag(type, 'Mapped')) {
    const placed = sortedBy(own, (symbol) => {
      const [node] = view.declarations(symbol);
      return [node ? orderedPath(view.fileOf(node)) : '\uffff', node?.pos ?? 0, symbol.name];
    });
    return placed.map(({ name }) => name);
  }
  const isClassOrInterface = view.hasObjectFlag(type, 'Class', 'Interface');
  const bases = isClassOrInterface ? view.baseTypes(type).flatMap((base) => namesOf(base, view)) : [];
  return [...bases, ...own.map(({ name }) => name)];
}

function arrayOf(items: WrittenSchema): WrittenSchema {
  return { type: 'array', ...(Object.keys(items).length === 0 ? {} : { items }) };
}

/** `JSON.stringify` writes `null` for holes in a list. */
function writeItem(place: TypePlace, walk: TypeWalk): WrittenSchema {
  const { view } = walk;
  const schema = writeSchema(place, walk);
  const hasHoles = walk.direction === 'out' && view.admitsUndefined(place.type);
  const isNullable = view.definedParts(place.type).some((part) => view.hasFlag(part, 'Null'));
  return hasHoles && !isNullable ? orNull(schema) : schema;
}

/** The forms of a type of the language or of Node with a form of its own; `undefined` for other types. */
function standardForm(type: TypeHandle, view: CompilerView) {
  const symbol = view.symbolOf(type);
  const form = FORMS.get(symbol?.name ?? '');
  if (symbol !== undefined && form !== undefined && view.isStandard(symbol)) return form;
  // A typical `DeepPartial<Date>` maps the methods, but means a `Date`.
  if (!view.hasObjectFlag(type, 'Mapped')) return undefined;
  const [first] = view.propertiesOf(type);
  if (first === undefined || !view.isStandard(first)) return undefined;
  const name = view.declarations(first)[0]?.parent?.name?.text ?? '';
  return MAPPED.has(name) ? FORMS.get(name) : undefined;
}

const MAPPED: ReadonlySet<string> = new Set(['Date', 'URL', 'Uint8Array', 'Buffer']);

/** Writes the schema of a type of the language or Node. */
type StandardWriter = (place: TypePlace, walk: TypeWalk) => WrittenSchema;

const SET = new CodeReference('Set');
const MAP = new CodeReference('Map');

const writeSet: StandardWriter = ({ type, path }, walk) => {
  const [item] = walk.view.typeArguments(type);
  const items = item === undefined ? {} : writeSchema({ type: item, path: `${path}[]` }, walk);
  return { type: 'array', items, instanceOf: SET };
};

/** Like lists, with `null` for undefined items. */
const writeSetResult: StandardWriter = ({ type, path }, walk) => {
  const [item] = walk.view.typeArguments(type);
  return arrayOf(item === undefined ? {} : writeItem({ type: item, path: `${path}[]` }, walk));
};

const NUMBERS = ['Number', 'NumberLiteral'];
const TEXTS = ['String', 'StringLiteral', 'StringMapping', 'TemplateLiteral'];

/** Types that cannot be keys in JSON. */
const NO_KEYS = [
  ...['Object', 'NonPrimitive', 'ESSymbol', 'UniqueESSymbol'],
  ...['Boolean', 'BooleanLiteral', 'BigInt', 'BigIntLiteral'],
];

const writeMap: StandardWriter = ({ type, node, path }, walk) => {
  const { view } = walk;
  const [key, value] = view.typeArguments(type);
  const keys = key === undefined ? [] : view.definedParts(key);
  const foreign = keys.find((part) => view.hasFlag(part, ...NO_KEYS));
  if (foreign !== undefined)
    return fault(walk, path, {
      problem: `is a Map whose keys are ${view.textOf(foreign)}: property names in JSON are strings`,
      fix: 'a Map whose keys are strings or numbers, or a list of pairs',
    });
  const values = value === undefined ? {} : writeSchema({ type: value, path: `${path}{}` }, walk);
  const isNumber = key !== undefined && keys.every((part) => view.hasFlag(part, ...NUMBERS));
  // Literal and template literal types allow only certain keys, unless there are other types among them.
  const ordered = declaredOrder(keys, node?.typeArguments?.[0], view).map((part) => part.type);
  const templates = ordered.filter((part) => view.hasFlag(part, 'TemplateLiteral'));
  const literals = ordered.map(view.literalOf).filter((literal) => literal !== undefined);
  const texts = literals.map(String);
  const areKnown = keys.length > 0 && templates.length + texts.length >= keys.length;
  const allowed = templates.length === 0 ? { enum: texts } : { pattern: keyPattern(templates, texts, view) };
  const names = { ...(isNumber ? { pattern: NUMBER_KEY } : {}), ...(areKnown ? allowed : {}) };
  const propertyNames = Object.keys(names).length === 0 ? {} : { propertyNames: names };
  return { type: 'object', ...propertyNames, additionalProperties: values, instanceOf: MAP };
};

/** An object if all keys are strings or all are numbers, so that no two are equal in JSON; otherwise unknown. */
const writeMapResult: StandardWriter = ({ type, path }, walk) => {
  const { view } = walk;
  const [key, value] = view.typeArguments(type);
  if (key === undefined || value === undefined) return {};
  const keys = view.definedParts(key);
  const areNames = [TEXTS, NUMBERS].some((flags) => keys.every((part) => view.hasFlag(part, ...flags)));
  if (!areNames || keys.length === 0) return {};
  const values = writeSchema({ type: value, path: `${path}{}` }, walk);
  return { type: 'object', additionalProperties: values };
};

function always(schema: WrittenSchema): StandardWriter {
  return () => schema;
}

function refused(problem: string): StandardWriter {
  return ({ path }, walk) => fault(walk, path, { problem });
}

/** A string in JSON, and an instance in the tool. */
function textual(name: string, keywords: WrittenSchema): StandardWriter {
  return always({ type: 'string', ...keywords, instanceOf: new CodeReference(name) });
}

const TEXT = always({ type: 'string' });
const NUMBER = always({ type: 'number' });
const BOOLEAN = always({ type: 'boolean' });
const ANY_VALUE = always({});
const BASE64 = { contentEncoding: 'base64' };

const BYTES = ['Uint8ClampedArray', 'DataView', 'ArrayBuffer', 'SharedArrayBuffer'];
const NUMBER_ARRAYS = [
  ...['Int8Array', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array'],
  ...['Float16Array', 'Float32Array', 'Float64Array'],
];
const BIGINT_ARRAYS = ['BigInt64Array', 'BigUint64Array'];

/** Names of types, with their schemas in arguments and in results. */
type Row = readonly [names: readonly string[], argument: StandardWriter, result: StandardWriter];

/** Types that cannot be arguments. */
function onlyResults(names: readonly string[], result: StandardWriter, problem: (name: string) => string) {
  return names.map((name): Row => [[name], refused(problem(name)), result]);
}

const buffer = (name: string) => `is an ${name}, which JSON cannot represent; a Uint8Array is supported`;

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
  [['Function', 'CallableFunction'], refused('is a function, which JSON cannot represent'), ANY_VALUE],
  [['Promise', 'PromiseLike'], refused('is a promise, which JSON cannot represent'), ANY_VALUE],
  [['RegExp'], refused('is a regular expression, which JSON cannot represent'), TEXT],
  [
    ['Error'],
    refused('is an error, which JSON cannot represent'),
    always({ type: 'object', properties: { message: { type: 'string' } }, required: ['message'] }),
  ],
  ...onlyResults(BYTES, TEXT, buffer),
  ...onlyResults(NUMBER_ARRAYS, always({ type: 'array', items: { type: 'number' } }), buffer),
  ...onlyResults(
    BIGINT_ARRAYS,
    (_place, { view, direction }) => ({ type: 'array', items: literalSchema([], view, direction) }),
    buffer,
  ),
  ...onlyResults(
    [
      ...['WeakMap', 'WeakSet', 'ReadableStream', 'Blob', 'File'],
      ...['FormData', 'Request', 'Response', 'Headers'],
    ],
    ANY_VALUE,
    (name) => `is a ${name}, which JSON cannot represent`,
  ),
];

const FORMS = new Map(
  ROWS.flatMap(([names, argument, result]) =>
    names.map((name) => [name, { in: argument, out: result }] as const),
  ),
);
