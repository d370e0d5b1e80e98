import { docKeywords } from '../comments/doc-comment.js';
import type { IndexFacts, SymbolHandle, SyntaxNode, TypeHandle } from '../compiler/compiler-view.js';
import { anyOf, commentOf, describeSchema, settleSchema, writeSchema } from './finish-schema.js';
import { keyPattern, literalDefault, orderedPath, templatePattern } from './literal-schema.js';
import {
  admitsUndefined,
  type Decoration,
  type DescribedSchema,
  definedParts,
  fault,
  hasFlag,
  type TypePlace,
  type TypeWalk,
  type Written,
} from './type-walk.js';

/** One property of an object type, as data. */
interface WrittenProperty {
  readonly name: string;
  readonly schema: DescribedSchema;
  readonly optional: boolean;
}

/** An interface, a type literal, a mapped type, an intersection of them: plain data. */
export function writeProperties(place: TypePlace, walk: TypeWalk): Written {
  const { type, path } = place;
  const json = walk.direction === 'out' ? jsonType(type, walk) : undefined;
  if (json !== undefined) return walk.write({ type: json, path });
  const properties = listProperties(type, path, walk);
  const names = properties.map(({ name }) => name);
  const values = indexSchema(place, names, walk);
  const comment = typeComment(type, walk);
  if (properties.length === 0 && values !== undefined)
    return describeSchema({ schema: { type: 'object', ...values } }, comment);
  const schema = {
    type: 'object',
    properties: Object.fromEntries(properties.map(({ name, schema }) => [name, schema])),
    required: properties.filter(({ optional }) => !optional).map(({ name }) => name),
    ...values,
  };
  return describeSchema({ schema: properties.length === 0 ? { type: 'object' } : schema }, comment);
}

/** What the declaration of an interface or class says of itself. */
function typeComment(type: TypeHandle, walk: TypeWalk) {
  const symbol = walk.view.symbolOf(type);
  if (symbol === undefined || symbol.name.startsWith('__')) return undefined;
  const [declaration] = walk.view.declarations(symbol);
  if (declaration === undefined) return undefined;
  const comment = commentOf(walk.view, declaration);
  // Only its words: tags of a class are about the class.
  return comment && { ...comment, tags: [] };
}

/** `JSON.stringify` writes what `toJSON` gives. */
function jsonType(type: TypeHandle, { view }: TypeWalk): TypeHandle | undefined {
  const method = view.propertiesOf(type).find(({ name }) => name === 'toJSON');
  const [signature] = method ? view.callSignatures(view.typeOfSymbol(method)) : [];
  return signature && view.returnType(signature);
}

/** The properties that JSON can carry, in the author's order. */
function listProperties(type: TypeHandle, path: string, walk: TypeWalk): readonly WrittenProperty[] {
  return orderedProperties(type, walk).flatMap((symbol) => writeProperty(symbol, path, walk) ?? []);
}

/** Those of a class of which instances are made: its methods are there on each of them. */
export function listDataProperties(type: TypeHandle, walk: TypeWalk): readonly WrittenProperty[] {
  const { view } = walk;
  const isMethod = (symbol: SymbolHandle) =>
    view.declarations(symbol)[0]?.kind === view.syntaxKinds.MethodDeclaration;
  return orderedProperties(type, walk).flatMap((symbol) =>
    isMethod(symbol) ? [] : (writeProperty(symbol, '', walk) ?? []),
  );
}

function writeProperty(symbol: SymbolHandle, path: string, walk: TypeWalk): WrittenProperty | undefined {
  const { view } = walk;
  const [declaration] = view.declarations(symbol);
  const decoration = declaration && walk.decoration(declaration);
  if (declaration !== undefined && (decoration === 'excluded' || isHidden(declaration, walk)))
    return undefined;
  const type = view.typeOfSymbol(symbol);
  const isOptional = (symbol.flags & (view.symbolFlags.Optional ?? 0)) !== 0;
  if (definedParts(walk, type).length === 0 || (isOptional && hasFlag(walk, type, 'Never'))) return undefined;
  if (walk.direction === 'out' && isFunction(type, walk)) return undefined;
  const place = path === '' ? symbol.name : `${path}.${symbol.name}`;
  const written = writeDecorated({ type, path: place, node: declaration?.type }, walk, decoration);
  const schema = settleSchema(withDeclaration(written, { declaration, path: place }, walk));
  const hasDefault =
    walk.direction === 'in' && ('default' in schema || initializerOf(declaration, walk) !== undefined);
  return { name: symbol.name, schema, optional: isOptional || hasDefault || admitsUndefined(walk, type) };
}

/** With what the comment says, and the initialiser of a class's property as default. */
function withDeclaration(
  written: Written,
  { declaration, path }: { readonly declaration: SyntaxNode | undefined; readonly path: string },
  walk: TypeWalk,
): Written {
  const comment = declaration && commentOf(walk.view, declaration);
  for (const problem of docKeywords(comment).problems) fault(walk, path, { problem });
  const described = describeSchema(written, comment);
  const initial = initializerOf(declaration, walk);
  const fallback = initial && literalDefault(initial, walk.view);
  if (fallback === undefined) return described;
  return { ...described, schema: { ...described.schema, default: fallback.value } };
}

function initializerOf(
  declaration: SyntaxNode | undefined,
  { view, direction }: TypeWalk,
): SyntaxNode | undefined {
  const { PropertyDeclaration, Parameter } = view.syntaxKinds;
  const isClassProperty = declaration?.kind === PropertyDeclaration || declaration?.kind === Parameter;
  return isClassProperty && direction === 'in' ? declaration?.initializer : undefined;
}

function isFunction(type: TypeHandle, walk: TypeWalk): boolean {
  return definedParts(walk, type).every(
    (part) => hasFlag(walk, part, 'Object') && walk.view.callSignatures(part).length > 0,
  );
}

/**
 * Private and protected members are no data. A getter cannot be set, and JSON shows only that of an object
 * literal: a class has it on its prototype.
 */
function isHidden(declaration: SyntaxNode, { view, direction }: TypeWalk): boolean {
  const { PrivateKeyword, ProtectedKeyword, PrivateIdentifier, GetAccessor } = view.syntaxKinds;
  const { InterfaceDeclaration, ObjectLiteralExpression } = view.syntaxKinds;
  if (declaration.name?.kind === PrivateIdentifier) return true;
  if (declaration.kind === GetAccessor) {
    const within = declaration.parent?.kind;
    return within !== InterfaceDeclaration && (direction === 'in' || within !== ObjectLiteralExpression);
  }
  return (declaration.modifiers ?? []).some(
    ({ kind }) => kind === PrivateKeyword || kind === ProtectedKeyword,
  );
}

/** Index signatures: `Record<string, T>`, `[key: \`x-${string}\`]: T`. `propertyNames` is about all keys. */
function indexSchema(
  { type, path }: TypePlace,
  names: readonly string[],
  walk: TypeWalk,
): DescribedSchema | undefined {
  if (!mayHaveMember(type, 'IndexSignature', walk)) return undefined;
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

/** Each compiler keeps them in an order of its own. */
function byPattern(indexes: readonly IndexFacts[], walk: TypeWalk): readonly IndexFacts[] {
  const keyed = indexes.map((index) => ({ index, pattern: templatePattern(index.key, walk) }));
  return keyed.sort((a, b) => (a.pattern < b.pattern ? -1 : 1)).map(({ index }) => index);
}

/**
 * Whether a type may have members of a kind. A type literal shows its own; others are not looked at here, and
 * the compiler is asked.
 */
export function mayHaveMember(
  type: TypeHandle,
  member: 'CallSignature' | 'IndexSignature',
  { view }: TypeWalk,
): boolean {
  const symbol = view.symbolOf(type);
  const [declaration] = symbol ? view.declarations(symbol) : [];
  if (declaration?.kind !== view.syntaxKinds.TypeLiteral) return true;
  return (declaration?.members ?? []).some(({ kind }) => kind === view.syntaxKinds[member]);
}

/**
 * The schema of a value whose decorator may say its type. Then that comes first, and nothing is wrong with
 * what TypeScript says, whatever it is.
 */
export function writeDecorated(
  place: TypePlace,
  walk: TypeWalk,
  decoration: Decoration | undefined,
): Written {
  const before = { faults: walk.faults.length, warnings: walk.warnings.length };
  const written = walk.write(place);
  if (decoration !== 'typed') return written;
  const isSayable = walk.faults.length === before.faults;
  walk.faults.length = before.faults;
  walk.warnings.length = before.warnings;
  return isSayable ? written : { schema: {} };
}

/**
 * The properties of a type in an order that does not depend on the compiler: those of bases first, then as
 * declared. Mapped types take the order of their keys, which each compiler keeps in its own: there the
 * place of the declaration counts, and the name where there is none.
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
  const placed = symbols.map((symbol) => {
    const [node] = view.declarations(symbol);
    return { name: symbol.name, file: node ? orderedPath(view.fileOf(node)) : '\uffff', pos: node?.pos ?? 0 };
  });
  placed.sort((a, b) => compareTexts(a.file, b.file) || a.pos - b.pos || compareTexts(a.name, b.name));
  return placed.map(({ name }) => name);
}

function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
