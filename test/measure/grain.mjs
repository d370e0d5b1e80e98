import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript-6.0';

/**
 * Measures the size and structure of the source in `src` and `decorators` from the syntax tree of TypeScript:
 *
 * - lines: with comments and blank lines; tokens: leaf nodes of the tree
 * - functions: functions, methods, accessors and constructors with a body
 * - exports: exported names, without those of entry points (`index.ts`); "own folder": exports that only files of the
 *   same folder import, and no entry point
 * - single importer: files that exactly one file imports, in the same folder
 * - declared twice: exported names that more than one file declares
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const files = ['src', 'decorators'].flatMap(listSources).map(readSource);
const byPath = new Map(files.map((file) => [file.path, file]));
const importers = importersByName();

const arguments_ = new Set(process.argv.slice(2));
if (arguments_.has('--json')) console.log(JSON.stringify(measure(files)));
else {
  print('all', measure(files));
  if (arguments_.has('--by-folder'))
    for (const [folder, members] of byFolder()) print(folder, measure(members));
  if (arguments_.has('--list')) list();
}

function measure(sources) {
  const sum = (count) => sources.reduce((total, file) => total + count(file), 0);
  const tokens = sum(({ tokens }) => tokens);
  const functions = sum(({ functions }) => functions);
  return {
    lines: sum(({ lines }) => lines),
    tokens,
    functionsPer10000Tokens: Math.round((functions / tokens) * 10_000),
    exports: sum(({ exports }) => exports.length),
    exportsOfOwnFolder: sources.flatMap(exportsOfOwnFolder).length,
    singleImporterFiles: sources.filter(hasSingleImporter).length,
    namesDeclaredTwice: namesDeclaredTwice(sources).length,
  };
}

function print(name, figures) {
  const values = Object.entries(figures).map(([figure, value]) => `${figure} ${value}`);
  console.log(`${name}: ${values.join(', ')}`);
}

function list() {
  for (const file of files)
    for (const name of exportsOfOwnFolder(file)) console.log(`own folder: ${file.path} ${name}`);
  for (const file of files.filter(hasSingleImporter)) console.log(`single importer: ${file.path}`);
  for (const name of namesDeclaredTwice(files)) console.log(`declared twice: ${name}`);
}

function listSources(folder) {
  return (
    readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && /\.c?ts$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length).replaceAll('\\', '/'))
      // The page of the inspector is a separate program for browsers.
      .filter((path) => !path.startsWith('src/surfaces/inspector/page/'))
      .sort()
  );
}

function readSource(path) {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const tree = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const file = {
    path,
    lines: text.split('\n').length - 1,
    tokens: 0,
    functions: 0,
    exports: [],
    imports: [],
  };
  const visit = (node) => {
    if (ts.isJSDoc(node)) return;
    if (node.getChildCount(tree) === 0 && node.kind !== ts.SyntaxKind.EndOfFileToken) file.tokens += 1;
    if (ts.isFunctionLike(node) && node.body !== undefined) file.functions += 1;
    addImport(node, file);
    for (const child of node.getChildren(tree)) visit(child);
  };
  visit(tree);
  if (!isEntryPoint(path))
    for (const statement of tree.statements) file.exports.push(...exportedNames(statement));
  return file;
}

function exportedNames(statement) {
  if (
    ts.isExportDeclaration(statement) &&
    statement.exportClause &&
    ts.isNamedExports(statement.exportClause)
  )
    return statement.exportClause.elements.map(({ name }) => ({ name: name.text, isDeclared: false }));
  if (!statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) return [];
  const names = ts.isVariableStatement(statement)
    ? statement.declarationList.declarations.map(({ name }) => name.getText())
    : [statement.name?.text ?? 'default'];
  return names.map((name) => ({ name, isDeclared: true }));
}

/** Records the names that a file imports from another file of the package; `*` is the whole module. */
function addImport(node, file) {
  let specifier;
  let names = ['*'];
  if (ts.isImportDeclaration(node)) {
    specifier = node.moduleSpecifier;
    const bindings = node.importClause?.namedBindings;
    if (bindings && ts.isNamedImports(bindings))
      names = bindings.elements.map(({ name, propertyName }) => (propertyName ?? name).text);
  } else if (ts.isExportDeclaration(node) && node.moduleSpecifier) {
    specifier = node.moduleSpecifier;
    if (node.exportClause && ts.isNamedExports(node.exportClause))
      names = node.exportClause.elements.map(({ name, propertyName }) => (propertyName ?? name).text);
  } else if (ts.isImportTypeNode(node)) {
    specifier = node.argument.literal;
    if (node.qualifier) names = [node.qualifier.getText()];
  } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    specifier = node.arguments[0];
  }
  if (specifier === undefined || !ts.isStringLiteral(specifier) || !specifier.text.startsWith('.')) return;
  const target = posix.join(posix.dirname(file.path), specifier.text).replace(/\.(c?)jsx?$/, '.$1ts');
  file.imports.push({ target, names });
}

function importersByName() {
  const found = new Map();
  for (const { path, imports } of files)
    for (const { target, names } of imports)
      for (const name of names) {
        const key = `${target} ${name}`;
        found.set(key, (found.get(key) ?? new Set()).add(path));
      }
  return found;
}

function importersOf(path) {
  const found = files.filter(({ imports }) => imports.some(({ target }) => target === path));
  return found.map((file) => file.path);
}

function exportsOfOwnFolder({ path, exports }) {
  return exports.flatMap(({ name }) => {
    const readers = [...(importers.get(`${path} ${name}`) ?? []), ...(importers.get(`${path} *`) ?? [])];
    const isOwn = (reader) => folderOf(reader) === folderOf(path) && !isEntryPoint(reader);
    return readers.length > 0 && readers.every(isOwn) ? [name] : [];
  });
}

function hasSingleImporter({ path }) {
  const found = importersOf(path);
  return found.length === 1 && dirname(found[0]) === dirname(path);
}

function isEntryPoint(path) {
  return path.endsWith('/index.ts');
}

function namesDeclaredTwice(sources) {
  const count = new Map();
  for (const { exports } of sources)
    for (const { name, isDeclared } of exports) if (isDeclared) count.set(name, (count.get(name) ?? 0) + 1);
  return [...count].filter(([, times]) => times > 1).map(([name]) => name);
}

/** The first three levels of folders: `src/run/call`, `src/toolbox/files`, `src/models/openai`. */
function folderOf(path) {
  const parts = dirname(path).split('/');
  return parts.slice(0, 3).join('/');
}

function byFolder() {
  return Map.groupBy([...byPath.values()], ({ path }) => folderOf(path));
}
