import type { ClassDescription } from '../../../core/contract/declaration.js';
import { freeName } from '../../../core/kernel/free-name.js';
import { childPath } from '../../../core/kernel/json.js';
import { NUMBER_KEY } from '../../../tools/schema/value-type.js';
import { docKeywords } from '../comments/doc-comment.js';
import type { IndexFacts, SymbolHandle, SyntaxNode, TypeHandle } from '../compiler/load-compiler.js';
import { anyOf, commentOf, describeSchema, orNull, settleSchema } from './finish-schema.js';
import {
  aliasDeclaration,
  type DeclaredPart,
  declaredOrder,
  keyPattern,
  literalDefault,
  literalSchema,
  orderedPath,
  sortedBy,
  templatePattern,
} from './literal-schema.js';
import {
  admitsUndefined,
  CodeReference,
  type Decoration,
  declarationOf,
  definedParts,
  fault,
  hasFlag,
  hasModifier,
  isClassSymbol,
  type OpenType,
  type TypePlace,
  TypeWalk,
  type WithView,
  type WrittenSchema,
} from './type-walk.js';

/** The schema of a type. The caller handles `undefined`, which JSON lacks. */
function writeType(place: TypePlace, walk: TypeWalk): WrittenSchema {
  const { type, path } = place;
  const node = place.node && isReporting(place.node, type, walk) ? place.node : undefined;
  const alias = node && aliasDeclaration(walk.view, node);
  if (alias !== undefined) {
    const comment = commentOf(walk.view, alias);
    for (const problem of docKeywords(comment).problems) fault(walk, path, { problem });
    return describeSchema(writeType({ ...place, node: alias.type }, walk), comment);
  }
  const parts = definedParts(walk, type);
  const [only] = parts;
  if (only === undefined) {
    if (walk.direction === 'out') return { type: 'null' };
    return fault(walk, path, {
      problem: `has the type ${walk.view.textOf(type)}, which has no value in JSON`,
    });
  }
  if (parts.length === 1) return writeOne({ ...place, type: only, node }, walk);
  return guarded({ key: keyOf(parts), type, path }, walk, () => writeUnion(parts, { ...place, node }, walk));
}

/** Whether a node provides more than its type: an order, an alias, the parts of a list. */
function isReporting(node: SyntaxNode, type: TypeHandle, walk: TypeWalk): boolean {
  const { UnionType, TypeReference, ArrayType, TupleType, TypeOperator, ParenthesizedType } =
    walk.view.syntaxKinds;
  const kinds = [UnionType, TypeReference, ArrayType, TupleType, TypeOperator, ParenthesizedType];
  if (!kinds.includes(node.kind)) return false;
  // The node of a generic declaration has another type than its instance.
  return typeKey(walk, walk.view.typeFromNode(node)) === typeKey(walk, type);
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
  const { type } = place;
  if (hasFlag(walk, type, 'Any', 'Unknown')) return writeAny(place, walk);
  if (hasFlag(walk, type, ...LITERALS)) return literalSchema([type], walk);
  const plain = PLAIN.find(([flags]) => hasFlag(walk, type, ...flags));
  if (plain !== undefined) return plain[1];
  if (hasFlag(walk, type, 'BigInt')) return literalSchema([], walk);
  if (hasFlag(walk, type, 'TemplateLiteral')) return { type: 'string', pattern: templatePattern(type, walk) };
  if (hasFlag(walk, type, 'Intersection')) return writeIntersection(place, walk);
  return hasFlag(walk, type, 'Object') ? writeObjectType(place, walk) : unsayable(place, walk);
}

function writeAny({ type, path }: TypePlace, walk: TypeWalk): WrittenSchema {
  if (walk.direction === 'in') {
    walk.warnings.push({ path, problem: `is ${walk.view.textOf(type)}: nothing is checked about it` });
  }
  return {};
}

/** `string & { __brand: 'Id' }`, `string[] & { … }`: the brand exists only for the compiler. */
function writeIntersection(place: TypePlace, walk: TypeWalk): WrittenSchema {
  const parts = walk.view.constituents(place.type);
  const value =
    parts.find((part) => !hasFlag(walk, part, 'Object', 'Intersection', 'NonPrimitive')) ??
    parts.find((part) => isBranded(part, walk));
  if (value === undefined) return writeObjectType(place, walk);
  return writeOne({ ...place, type: value, node: undefined }, walk);
}

/** The JSON form of an intersection with a brand: a list, or a language type with a form of its own. */
function isBranded(type: TypeHandle, walk: TypeWalk): boolean {
  const { view } = walk;
  if (view.isArray(type) || view.isTuple(type)) return true;
  const symbol = view.symbolOf(type);
  return symbol !== undefined && BRANDED.has(symbol.name) && isStandardSymbol(symbol, walk);
}

const BRANDED: ReadonlySet<string> = new Set([
  ...['Date', 'URL', 'Uint8Array', 'Buffer'],
  ...['Set', 'ReadonlySet', 'Map', 'ReadonlyMap'],
]);

function unsayable({ type, path }: TypePlace, walk: TypeWalk): WrittenSchema {
  if (hasFlag(walk, type, 'Never')) return fault(walk, path, { problem: 'is never: no value fits it' });
  if (hasFlag(walk, type, 'ESSymbol', 'UniqueESSymbol')) {
    if (walk.direction === 'out') return { type: 'string' };
    return fault(walk, path, { problem: 'is a symbol, which JSON does not have' });
  }
  return fault(walk, path, {
    problem: `is ${walk.view.textOf(type)}, a generic type that is not resolved here`,
    fix: 'a concrete type, or a class that extends the generic one with concrete types',
  });
}

/** A union: one `enum` for all literals, `null` as a second type, and `anyOf` for the rest. */
function writeUnion(parts: readonly TypeHandle[], place: TypePlace, walk: TypeWalk): WrittenSchema {
  const isNull = (type: TypeHandle) => hasFlag(walk, type, 'Null');
  const ordered = declaredOrder(parts, place.node, walk).filter(({ type }) => !isNull(type));
  const branches = branchesOf(ordered, place, walk);
  const [only, second] = branches;
  const union = only !== undefined && second === undefined ? only : anyOf(branches.map(settleSchema));
  return parts.some(isNull) ? orNull(union) : union;
}

/** One branch for all literals, one for all big integers, one for `boolean`, and one for each other part. */
function branchesOf(
  ordered: readonly DeclaredPart[],
  place: TypePlace,
  walk: TypeWalk,
): readonly WrittenSchema[] {
  const isTruth = ({ type }: DeclaredPart) => hasFlag(walk, type, 'BooleanLiteral');
  const isBoolean = ordered.filter(isTruth).length === 2;
  const kindOf = (part: DeclaredPart) => {
    if (isBoolean && isTruth(part)) return 'boolean';
    const literal = walk.view.literalOf(part.type);
    if (literal === undefined) return part;
    return typeof literal === 'bigint' ? 'bigint' : 'literal';
  };
  return Array.from(Map.groupBy(ordered, kindOf), ([kind, parts]) => {
    if (kind === 'boolean') return { type: 'boolean' };
    if (typeof kind === 'object') return writeType({ ...kind, path: place.path }, walk);
    return literalSchema(
      parts.map(({ type }) => type),
      walk,
    );
  });
}

/** The same key for the same type, with or without `undefined`. */
function typeKey(walk: WithView, type: TypeHandle): string {
  return keyOf(definedParts(walk, type));
}

/** The same key for the same types in any order. */
function keyOf(types: readonly TypeHandle[]): string {
  return types
    .map(({ id }) => id)
    .sort((a, b) => a - b)
    .join('|');
}

/** An object type: an array, a tuple, a class, a type of the language, or plain data. */
function writeObjectType(place: TypePlace, walk: TypeWalk): WrittenSchema {
  const { type, path } = place;
  const { view } = walk;
  const key = String(type.id);
  if (view.isArray(type) || view.isTuple(type)) {
    const write = () => (view.isArray(type) ? writeArray(place, walk) : writeTuple(place, walk));
    // A list can only be recursive through its own alias; otherwise the name belongs to its items.
    return view.aliasOf(type) === undefined ? write() : guarded({ key, type, path }, walk, write);
  }
  const standard = standardType(place, walk);
  if (standard !== undefined) return standard;
  const list = listBase(type, walk);
  if (list !== undefined)
    return guarded({ key, type, path }, walk, () => writeExtendedList(list, place, walk));
  if (view.callSignatures(type).length > 0) {
    // JSON has no functions: refused in arguments, omitted in results.
    if (walk.direction === 'out') return {};
    return fault(walk, path, { problem: 'is a function, which JSON cannot carry' });
  }
  if (walk.direction === 'out' && isIterable(type, walk)) return {};
  const symbol = hasFlag(walk, type, 'Intersection') ? undefined : view.symbolOf(type);
  return guarded({ key, type, path }, walk, () =>
    isClassSymbol(symbol, view) ? writeClassType(symbol, place, walk) : writeProperties(place, walk),
  );
}

/** A result may be serialized as a list, as an object or by its fields, depending on the value. */
function isIterable(type: TypeHandle, { view }: TypeWalk): boolean {
  const names = view.propertiesOf(type).map(({ name }) => name);
  return names.some((name) => ITERATOR.test(name)) && !names.includes('toJSON');
}

/** The compilers' names of members with symbol keys. */
const ITERATOR = /^__@(?:iterator|asyncIterator)(?:@|$)/;

/**
 * A class. In results, it is described as `JSON.stringify` writes it. In arguments, instances are created, so it must
 * be plain data.
 */
function writeClassType(symbol: SymbolHandle, place: TypePlace, walk: TypeWalk): WrittenSchema {
  if (walk.direction === 'out') {
    const written = writeProperties(place, walk);
    // If an instance has no JSON fields, its class determines whether a text or an error is written.
    const isEmpty = written.type === 'object' && Object.keys(written).length === 1;
    return isEmpty ? {} : written;
  }
  const of = walk.classReference(symbol);
  if (of.kind === 'fault') return fault(walk, place.path, of);
  if (of.kind === 'structural') return writeProperties(place, walk);
  return describeSchema({ instanceOf: of.reference }, typeComment(place.type, walk));
}

/** `T[]`, `readonly T[]`, `Array<T>`. */
function writeArray({ type, node, path }: TypePlace, walk: TypeWalk): WrittenSchema {
  const [item] = walk.view.typeArguments(type);
  if (item === undefined) return { type: 'array' };
  return arrayOf(writeItem({ type: item, node: node && itemNode(node, walk), path: `${path}[]` }, walk));
}

function itemNode(node: SyntaxNode, walk: TypeWalk): SyntaxNode | undefined {
  const { ArrayType, TypeOperator, ParenthesizedType, TypeReference } = walk.view.syntaxKinds;
  if (node.kind === ArrayType) return node.elementType;
  if (node.kind === TypeOperator || node.kind === ParenthesizedType)
    return node.type && itemNode(node.type, walk);
  return node.kind === TypeReference ? node.typeArguments?.[0] : undefined;
}

/** A tuple. Elements after a rest element may have any of the following types: JSON Schema cannot be more exact. */
function writeTuple({ type, node, path }: TypePlace, walk: TypeWalk): WrittenSchema {
  const elements = walk.view.tupleElements(type);
  const nodes = elementNodes(node, walk);
  const schemas = elements.map((element, index) =>
    writeItem({ type: element.type, node: nodes[index], path: `${path}[${index}]` }, walk),
  );
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

function elementNodes(node: SyntaxNode | undefined, walk: TypeWalk): readonly (SyntaxNode | undefined)[] {
  const { TypeOperator, TupleType, NamedTupleMember, OptionalType } = walk.view.syntaxKinds;
  if (node?.kind === TypeOperator) return elementNodes(node?.type, walk);
  if (node?.kind !== TupleType) return [];
  return (node?.elements ?? []).map((element) =>
    element.kind === NamedTupleMember || element.kind === OptionalType ? element.type : element,
  );
}

/** The list type that an interface or class extends, at any depth. */
function listBase(type: TypeHandle, walk: TypeWalk): TypeHandle | undefined {
  const { view } = walk;
  const { Interface = 0, Class = 0 } = view.symbolFlags;
  if (((view.symbolOf(type)?.flags ?? 0) & (Interface | Class)) === 0) return undefined;
  for (const base of view.baseTypes(type)) {
    const list = view.isArray(base) || view.isTuple(base) ? base : listBase(base, walk);
    if (list !== undefined) return list;
  }
  return undefined;
}

/** `interface Page<Row> extends Array<Row>`: a list. JSON cannot represent its other members. */
function writeExtendedList(list: TypeHandle, place: TypePlace, walk: TypeWalk): WrittenSchema {
  const { type, path } = place;
  const { view } = walk;
  const symbol = view.symbolOf(type);
  if (isClassSymbol(symbol, view) && walk.direction === 'in') {
    return fault(walk, path, {
      problem: `is the class ${symbol.name}, which extends a list; JSON has plain lists only`,
      fix: 'the type of the list itself: string[]',
    });
  }
  return describeSchema(writeList(list, place, walk), typeComment(type, walk));
}

function writeList(list: TypeHandle, { type, path }: TypePlace, walk: TypeWalk): WrittenSchema {
  const { view } = walk;
  if (view.isTuple(list)) return writeTuple({ type: list, path }, walk);
  // The base of a generic interface is still generic; the index signature contains the actual item type.
  const item = view.indexesOf(type).find(({ key }) => hasFlag(walk, key, 'Number'))?.value;
  return { type: 'array', ...(item ? { items: writeItem({ type: item, path: `${path}[]` }, walk) } : {}) };
}

/** Deeper than hand-written types; type instantiations can be infinite. */
const MAX_DEPTH = 60;

/** A type that may be recursive. */
interface GuardedType {
  readonly key: string;
  readonly type: TypeHandle;
  readonly path: string;
}

/**
 * Writes a type that may be recursive: in place if it is not, otherwise into `$defs` under the name of its alias or
 * declaration. Types of the same name get a number, in order of appearance.
 */
function guarded(of: GuardedType, walk: TypeWalk, write: () => WrittenSchema): WrittenSchema {
  const { key, path } = of;
  const known = walk.names.get(key);
  if (known !== undefined) return { $ref: referenceTo(known) };
  const around = walk.open.find((item) => item.key === key);
  if (around !== undefined) {
    around.name ??= definitionName(walk, of);
    return { $ref: referenceTo(around.name) };
  }
  if (walk.open.length >= MAX_DEPTH) {
    return fault(walk, path.slice(0, 80), {
      problem: `has a type that does not end: ${walk.view.textOf(of.type)}`,
    });
  }
  const opened: OpenType = { key };
  walk.open.push(opened);
  const written = write();
  walk.open.pop();
  if (opened.name === undefined) return written;
  walk.names.set(key, opened.name);
  walk.definitions.set(opened.name, settleSchema(written));
  return { $ref: referenceTo(opened.name) };
}

function definitionName(walk: TypeWalk, { type }: GuardedType): string {
  const { view } = walk;
  const wanted = (view.aliasOf(type) ?? view.symbolOf(type))?.name ?? '';
  const name = /^[A-Za-z_$][\w$]*$/.test(wanted) && !wanted.startsWith('__') ? wanted : 'Type';
  const taken = new Set([...walk.definitions.keys(), ...walk.open.map((item) => item.name)]);
  return freeName(name, (other) => taken.has(other));
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
  const json = walk.direction === 'out' ? jsonType(type, walk) : undefined;
  if (json !== undefined) return writeType({ type: json, path }, walk);
  const symbols = orderedProperties(type, walk);
  const refused = walk.direction === 'in' ? methodsFault(place, symbols, walk) : undefined;
  if (refused !== undefined) return refused;
  const properties = symbols.flatMap((symbol) => writeProperty(symbol, path, walk) ?? []);
  const names = properties.map(({ name }) => name);
  const values = indexSchema(place, names, walk);
  const comment = typeComment(type, walk);
  if (properties.length === 0 && values !== undefined)
    return describeSchema({ type: 'object', ...values }, comment);
  const schema = {
    type: 'object',
    properties: Object.fromEntries(properties.map(({ name, schema }) => [name, schema])),
    required: properties.filter(({ optional }) => !optional).map(({ name }) => name),
    ...values,
  };
  return describeSchema(properties.length === 0 ? { type: 'object' } : schema, comment);
}

function isMethod(symbol: SymbolHandle, { view }: TypeWalk): boolean {
  const { MethodDeclaration, MethodSignature } = view.syntaxKinds;
  const kind = view.declarations(symbol)[0]?.kind;
  return kind === MethodDeclaration || kind === MethodSignature;
}

/** One fault for an object with methods, such as a DOM node: a fault for each member would be hundreds. */
function methodsFault(
  { type, path }: TypePlace,
  symbols: readonly SymbolHandle[],
  walk: TypeWalk,
): WrittenSchema | undefined {
  const methods = symbols.flatMap((symbol) => (isMethod(symbol, walk) ? symbol.name : []));
  if (isIterable(type, walk)) methods.push('an iterator');
  if (methods.length === 0) return undefined;
  const shown = [...methods.slice(0, 3), ...(methods.length > 3 ? ['…'] : [])].join(', ');
  return fault(walk, path, {
    problem: `is ${walk.view.textOf(type)}, which has methods (${shown}) and so is more than data`,
    fix: 'a type with only the fields that the model sends; objects of the application come from `context.scope`',
  });
}

/** The comment of an interface or class. */
function typeComment(type: TypeHandle, walk: TypeWalk) {
  const symbol = walk.view.symbolOf(type);
  const declaration = symbol?.name.startsWith('__') ? undefined : declarationOf(type, walk.view);
  const comment = declaration && commentOf(walk.view, declaration);
  // Only its text: tags of a class are about the class.
  return comment && { ...comment, tags: [] };
}

/** The type that `toJSON` returns, which `JSON.stringify` writes. */
function jsonType(type: TypeHandle, { view }: TypeWalk): TypeHandle | undefined {
  const method = view.propertiesOf(type).find(({ name }) => name === 'toJSON');
  const [signature] = method ? view.callSignatures(view.typeOfSymbol(method)) : [];
  return signature && view.returnType(signature);
}

/** The properties of a class whose instances are created; its methods are inherited and not data. */
export function dataProperties(
  type: TypeHandle,
  walk: TypeWalk,
): NonNullable<ClassDescription['properties']> {
  const data = orderedProperties(type, walk).filter((symbol) => !isMethod(symbol, walk));
  const properties = data.flatMap((symbol) => writeProperty(symbol, '', walk) ?? []);
  return Object.fromEntries(
    properties.map(({ name, schema, optional }) => [name, optional ? { optional, schema } : { schema }]),
  );
}

/** More than a model reads; types of the DOM and of some clients lead to hundreds of thousands. */
const MOST_PROPERTIES = 2_000;

function writeProperty(symbol: SymbolHandle, path: string, walk: TypeWalk): WrittenProperty | undefined {
  const { view } = walk;
  const [declaration] = view.declarations(symbol);
  const decoration = declaration && walk.decoration(declaration);
  if (declaration !== undefined && (decoration === 'excluded' || isHidden(declaration, walk)))
    return undefined;
  const type = view.typeOfSymbol(symbol);
  const isOptional = (symbol.flags & (view.symbolFlags.Optional ?? 0)) !== 0;
  const parts = definedParts(walk, type);
  if (parts.length === 0 || (isOptional && hasFlag(walk, type, 'Never'))) return undefined;
  walk.properties += 1;
  if (walk.properties === MOST_PROPERTIES + 1)
    fault(walk, '', {
      problem: `has a type of more than ${MOST_PROPERTIES} properties, nested ones included`,
    });
  if (walk.properties > MOST_PROPERTIES) return undefined;
  const isFunction = (part: TypeHandle) =>
    hasFlag(walk, part, 'Object') && view.callSignatures(part).length > 0;
  if (walk.direction === 'out' && parts.every(isFunction)) return undefined;
  const place = childPath(path, symbol.name);
  const written = writeDecorated({ type, path: place, node: declaration?.type }, walk, decoration);
  const schema = settleSchema(withDeclaration(written, { declaration, path: place }, walk));
  const hasDefault =
    walk.direction === 'in' && ('default' in schema || initializerOf(declaration, walk) !== undefined);
  return { name: symbol.name, schema, optional: isOptional || hasDefault || admitsUndefined(walk, type) };
}

/** Adds the comment, and the initializer of a class property as default. */
function withDeclaration(
  written: WrittenSchema,
  { declaration, path }: { readonly declaration: SyntaxNode | undefined; readonly path: string },
  walk: TypeWalk,
): WrittenSchema {
  const comment = declaration && commentOf(walk.view, declaration);
  for (const problem of docKeywords(comment).problems) fault(walk, path, { problem });
  const described = describeSchema(written, comment);
  const initial = initializerOf(declaration, walk);
  const fallback = initial && literalDefault(initial, walk.view);
  if (fallback === undefined) return described;
  return { ...described, default: fallback.value };
}

function initializerOf(
  declaration: SyntaxNode | undefined,
  { view, direction }: TypeWalk,
): SyntaxNode | undefined {
  const { PropertyDeclaration, Parameter } = view.syntaxKinds;
  const isClassProperty = declaration?.kind === PropertyDeclaration || declaration?.kind === Parameter;
  return isClassProperty && direction === 'in' ? declaration?.initializer : undefined;
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
  return hasModifier(declaration, view, 'PrivateKeyword', 'ProtectedKeyword');
}

/** Index signatures: `Record<string, T>`, `[key: \`x-${string}\`]: T`. `propertyNames` applies to all keys. */
function indexSchema(
  { type, path }: TypePlace,
  names: readonly string[],
  walk: TypeWalk,
): WrittenSchema | undefined {
  const indexes = walk.view
    .indexesOf(type)
    .filter(({ key }) => !hasFlag(walk, key, 'ESSymbol', 'UniqueESSymbol'));
  if (indexes.length === 0) return undefined;
  const isTemplate = ({ key }: IndexFacts) => hasFlag(walk, key, 'TemplateLiteral');
  const general =
    indexes.find(({ key }) => hasFlag(walk, key, 'String')) ?? indexes.find((item) => !isTemplate(item));
  const meant = general === undefined ? byPattern(indexes, walk) : [general];
  const values = anyOf(meant.map(({ value }) => writeSchema({ type: value, path: `${path}{}` }, walk)));
  const additionalProperties = Object.keys(values).length === 0 ? true : values;
  if (general !== undefined) return { additionalProperties };
  const templates = meant.map(({ key }) => key);
  return { propertyNames: { pattern: keyPattern(templates, names, walk) }, additionalProperties };
}

/** Sorted, because each compiler has its own order. */
function byPattern(indexes: readonly IndexFacts[], walk: TypeWalk): readonly IndexFacts[] {
  return sortedBy(indexes, ({ key }) => [templatePattern(key, walk)]);
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

/**
 * The properties of a type in an order that does not depend on the compiler: first those of base types, then as
 * declared. Mapped types, whose order differs between compilers, are sorted by the place of the declaration, or by
 * name.
 */
function orderedProperties(type: TypeHandle, walk: TypeWalk): readonly SymbolHandle[] {
  const symbols = new Map(
    walk.view
      .propertiesOf(type)
      .filter(({ name }) => !name.startsWith('__@') && name !== '__proto__')
      .map((symbol) => [symbol.name, symbol] as const),
  );
  const names = new Set(namesOf(type, walk));
  return [...names, ...symbols.keys()].flatMap((name) => {
    const symbol = symbols.get(name);
    symbols.delete(name);
    return symbol ?? [];
  });
}

function namesOf(type: TypeHandle, walk: TypeWalk): readonly string[] {
  const { view } = walk;
  if (hasFlag(walk, type, 'Intersection')) {
    return view.constituents(type).flatMap((part) => namesOf(part, walk));
  }
  const own = view.propertiesOf(type);
  if (hasObjectFlag(type, 'Mapped', walk)) return byDeclaration(own, walk);
  const isClassOrInterface = hasObjectFlag(type, 'Class', walk) || hasObjectFlag(type, 'Interface', walk);
  const bases = isClassOrInterface ? view.baseTypes(type).flatMap((base) => namesOf(base, walk)) : [];
  return [...bases, ...own.map(({ name }) => name)];
}

function hasObjectFlag(type: TypeHandle, name: string, { view }: TypeWalk): boolean {
  return ((type.objectFlags ?? 0) & (view.objectFlags[name] ?? 0)) !== 0;
}

function byDeclaration(symbols: readonly SymbolHandle[], { view }: TypeWalk): readonly string[] {
  const placed = sortedBy(symbols, (symbol) => {
    const [node] = view.declarations(symbol);
    return [node ? orderedPath(view.fileOf(node)) : '\uffff', node?.pos ?? 0, symbol.name];
  });
  return placed.map(({ name }) => name);
}

/** The finished schema of a part of a type. */
export function writeSchema(place: TypePlace, walk: TypeWalk): WrittenSchema {
  return settleSchema(writeType(place, walk));
}

function arrayOf(items: WrittenSchema): WrittenSchema {
  return { type: 'array', ...(Object.keys(items).length === 0 ? {} : { items }) };
}

/** `JSON.stringify` writes `null` for holes in a list. */
function writeItem(place: TypePlace, walk: TypeWalk): WrittenSchema {
  const schema = writeSchema(place, walk);
  const hasHoles = walk.direction === 'out' && admitsUndefined(walk, place.type);
  const isNullable = definedParts(walk, place.type).some((part) => hasFlag(walk, part, 'Null'));
  return hasHoles && !isNullable ? orNull(schema) : schema;
}

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
function standardType(place: TypePlace, walk: TypeWalk): WrittenSchema | undefined {
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
