import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { type Expression, type Property, parseExpressionAt } from 'acorn';
import { errorMessage } from '../../core/kernel/error-message.js';
import type { Fields } from '../../core/kernel/json.js';
import { loadCompiler } from '../typegen/load-compiler.js';
import { type Command, parseOptions, UserFault } from './command.js';
import { type FileEdit, unifiedDiff } from './generate-command.js';
import { generateProject } from './generate-project.js';

/** A plugin to add to a configuration file in code. */
interface CodeAddition {
  readonly name: string;
  readonly from: string;
  readonly call: string;
}

/** The start of a configuration object; an object with a name but no type must be exported by that name. */
const CONFIGURATIONS =
  /(?:\bdefineConfig\(|\bexport default|\bmodule\.exports =|^(?:export )?const \w+: \w+ =|^const (\w+) =(?=[\s\S]*^(?:export default|module\.exports =) \1\b))\s*\{/gm;

/**
 * Adds a plugin as the first of `plugins`. Returns `undefined` if there is no such place, or more than one. The rest of
 * the code is unchanged.
 */
function addPlugin(code: string, addition: CodeAddition): string | undefined {
  const [list, otherList] = places(code, /\bplugins\s*:\s*\[/g);
  if (otherList !== undefined) return undefined;
  const { name, from, call } = addition;
  let added: string | undefined;
  if (list === undefined) added = addSetting(code, `plugins: [${call}],`);
  else {
    const [, indent, first = ''] = /^(\n[ \t]*)?\s*(\S)?/.exec(code.slice(list)) ?? [];
    const before = indent === undefined ? `${call}, ` : `${indent}${call},`;
    added = code.slice(0, list) + (first === ']' ? call : before) + code.slice(list);
  }
  if (added === undefined) return undefined;
  const line = /^(import|export)\b/m.test(code)
    ? `import { ${name} as toolwright } from '${from}';`
    : `const { ${name}: toolwright } = require('${from}');`;
  return `${line}\n${added}`;
}

/** Adds a line at the start of the configuration, or of another object; `undefined` unless there is exactly one. */
function addSetting(code: string, line: string, object = CONFIGURATIONS): string | undefined {
  const [place, other] = places(code, object);
  if (place === undefined || other !== undefined) return undefined;
  const rest = code.slice(place);
  const [, indent = '  '] = /^[ \t]*\n([ \t]+)/.exec(rest) ?? [];
  return code.slice(0, place) + (/^[ \t]*\S/.test(rest) ? ` ${line}` : `\n${indent}${line}`) + rest;
}

/** The ends of all matches that are not in a comment line. */
function places(code: string, pattern: RegExp): readonly number[] {
  return [...code.matchAll(pattern)]
    .filter(({ index }) => !/(\/\/|^\s*\/?\*)/.test(code.slice(code.lastIndexOf('\n', index) + 1, index)))
    .map(({ index, 0: text }) => index + text.length);
}

/** Keys of objects and indexes of lists. */
type JsonPath = readonly (string | number)[];

/** Sets one value; all other bytes of the text are unchanged. */
export function setValue(text: string, path: JsonPath, value: unknown): string {
  const tree = treeOf(text);
  const there = nodeAt(tree, path);
  if (there !== undefined) return spliced(text, there, print(value));
  const holder = nodeAt(tree, path.slice(0, -1));
  const key = String(path.at(-1));
  if (holder?.type !== 'ObjectExpression') return setValue(text, path.slice(0, -1), { [key]: value });
  return withEntry(text, holder, `${JSON.stringify(key)}: ${print(value)}`);
}

/** Adds an entry to the end of a list, and creates the list if it is missing; the rest is unchanged. */
export function addEntry(text: string, path: JsonPath, entry: string): string {
  const list = nodeAt(treeOf(text), path);
  return list?.type === 'ArrayExpression'
    ? withEntry(text, list, print(entry))
    : setValue(text, path, [entry]);
}

/** Parses JSON with comments and trailing commas, as editors accept it, as a JavaScript expression. */
function treeOf(text: string): Expression {
  if (text.trim() === '') return { type: 'ObjectExpression', start: 0, end: text.length, properties: [] };
  try {
    return parseExpressionAt(text, 0, { ecmaVersion: 'latest' });
  } catch (error) {
    throw new UserFault(`a configuration file is not valid JSON: ${errorMessage(error)}`, 1);
  }
}

/** The entries of an object or a list, in order. */
function entriesOf(
  node: Expression,
): readonly (readonly [key: string | number, value: Expression, entry: Spot])[] {
  if (node.type === 'ArrayExpression')
    return node.elements.flatMap((element, index) =>
      element === null || element.type === 'SpreadElement' ? [] : [[index, element, element] as const],
    );
  if (node.type !== 'ObjectExpression') return [];
  const properties = node.properties.filter((entry): entry is Property => entry.type === 'Property');
  return properties.map((entry) => {
    const { key, value } = entry;
    const name = key.type === 'Identifier' ? key.name : key.type === 'Literal' ? key.value : undefined;
    return [String(name), value as Expression, entry] as const;
  });
}

function nodeAt(node: Expression, path: JsonPath): Expression | undefined {
  const [first, ...rest] = path;
  if (first === undefined) return node;
  const found = entriesOf(node).find(([key]) => key === first);
  return found && nodeAt(found[1], rest);
}

/** On a line of its own if the entry before it has one; a comment after that entry stays there. */
function withEntry(text: string, holder: Expression, entry: string): string {
  const [, , last] = entriesOf(holder).at(-1) ?? [];
  if (last === undefined) {
    const [open = '', close = ''] = holder.type === 'ArrayExpression' ? '[]' : ['{ ', ' }'];
    // Keeps comments: the new entry is inserted before them.
    const inner = text.slice(holder.start + 1, holder.end - 1).trim();
    return spliced(text, holder, `${open}${inner === '' ? entry : `${entry} ${inner}\n`}${close}`);
  }
  const { start, end } = last;
  const line = /^[ \t]*(,?)[ \t]*(?:\/\/.*|\/\*.*\*\/[ \t]*)?(?=\n)/.exec(text.slice(end));
  const indent = text.slice(text.lastIndexOf('\n', start) + 1, start);
  if (line === null || indent.trim() !== '') return spliced(text, { start: end, end }, `, ${entry}`);
  const [rest, comma] = line;
  const kept = comma === '' ? `,${rest}` : rest;
  return spliced(text, { start: end, end: end + rest.length }, `${kept}\n${indent}${entry}${comma}`);
}

/** A range of a text. */
type Spot = Pick<Expression, 'start' | 'end'>;

function spliced(text: string, { start, end }: Spot, by: string): string {
  return `${text.slice(0, start)}${by}${text.slice(end)}`;
}

/** JSON on one line, as people write it. */
function print(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(print).join(', ')}]`;
  return `{ ${Object.entries(value)
    .map(([key, entry]) => `${JSON.stringify(key)}: ${print(entry)}`)
    .join(', ')} }`;
}

/** `toolwright init`: configures the folder's project to keep the generated file up to date. */
export const command: Command = async (args, environment) => {
  parseOptions(args, {});
  const { folder, out, error } = environment;
  const project = await readProject(folder);
  const { edits, notes } = planInit(project, folder);
  for (const edit of edits) {
    const file = join(folder, edit.path);
    // Edits are computed with `\n`.
    const isWindows = existsSync(file) && readFileSync(file, 'utf8').includes('\r\n');
    writeFileSync(file, isWindows ? edit.after.replaceAll('\n', '\r\n') : edit.after);
    out(unifiedDiff(edit).replace(' (generated now)', ''));
  }
  if (edits.length + notes.length === 0) out('The configuration is complete; nothing was changed.\n');
  for (const note of notes) out(`\n${note}\n`);
  // Generates the file once, because programs import it.
  const line = `npx ${generateLine(project.tsconfig)}`;
  let isGenerated = false;
  const show = (text: string) => {
    isGenerated = true;
    out(text);
  };
  try {
    const warnings = await generateProject({ project: project.tsconfig }, folder, show);
    if (!isGenerated) out(`\n${warnings}\nExport such a class. Then run: ${line}\n`);
    else if (warnings !== '') error(`${warnings}\n`);
  } catch (fault) {
    const reason = (fault as Error).message.replace(/^toolwright: /, '');
    out(`\nNothing was generated: ${reason}\nAfter fixing this, run: ${line}\n`);
  }
  return 0;
};

function generateLine(tsconfig: string): string {
  return `toolwright generate${tsconfig === 'tsconfig.json' ? '' : ` --project ${tsconfig}`}`;
}

/** A plan in progress. */
interface Draft extends Omit<FoundProject, 'files'> {
  readonly files: Map<string, string>;
  readonly notes: string[];
}

const NEST = 'nest-cli.json';

/**
 * Plans the changes that a project still needs to run the generator in its build: files that can be changed
 * safely, and instructions for the rest.
 */
function planInit(project: FoundProject, folder: string) {
  const draft: Draft = { ...project, files: new Map(project.files), notes: [] };
  const { files, notes, tsconfig } = draft;
  if (project.files.get(tsconfig) === '') planTsconfig(draft, folder);
  else if (!project.experimentalDecorators)
    change(draft, tsconfig, (text) => setValue(text, ['compilerOptions', 'experimentalDecorators'], true));
  change(draft, NEST, (text) => nestPlugin(text, draft));
  // Nest's watcher starts an application again if the plugin writes the file after the first compilation.
  if (files.has(NEST) && manifestValue(files, 'scripts', 'start:dev') !== undefined)
    generateBefore('start:dev', draft);
  const call = tsconfig === 'tsconfig.json' ? 'toolwright()' : `toolwright({ project: '${tsconfig}' })`;
  let hasBundler = false;
  for (const [path, text] of files) {
    const [, config = ''] = /^(\w+)\.config(?:\.\w+)?\.[cm]?[jt]s$/.exec(path) ?? [];
    const name = BUNDLERS.get(config);
    if (name === undefined) continue;
    hasBundler = true;
    const addition = { name, from: 'toolwright/plugin', call };
    const after = text.includes(addition.from) ? text : addPlugin(text, addition);
    if (after !== undefined) files.set(path, after);
    else
      notes.push(
        `init found no single place for the plugin in ${path}. Add it yourself:\n\n  import { ${name} as toolwright } from 'toolwright/plugin';\n  plugins: [${call}]`,
      );
  }
  planJest(draft);
  planNext(draft);
  if (!hasBundler && !files.has(NEST)) generateBefore('build', draft);
  const edits: readonly FileEdit[] = [...files]
    .map(([path, after]) => ({ path, before: project.files.get(path) ?? '', after }))
    .filter(({ before, after }) => before !== after);
  return { edits, notes };
}

/** Plans the tsconfig.json of a project without one. TypeScript 6 and newer only load the types that it names. */
function planTsconfig({ files, notes, tsconfig }: Draft, folder: string): void {
  const isThere = (...path: readonly string[]) => existsSync(join(folder, ...path));
  const compilerOptions = {
    target: 'es2023',
    module: 'nodenext',
    rootDir: isThere('src') ? 'src' : '.',
    outDir: 'dist',
    ...(isThere('node_modules', '@types', 'node') && { types: ['node'] }),
    strict: true,
    skipLibCheck: true,
    experimentalDecorators: true,
  };
  const config = { compilerOptions, ...(isThere('src') && { include: ['src'] }) };
  files.set(tsconfig, `${JSON.stringify(config, undefined, 2)}\n`);
  if (manifestValue(files, 'type') !== 'module')
    notes.push(
      'package.json has no "type": "module", so the compiler writes CommonJS, which has no top-level await. For ES modules, run: npm pkg set type=module',
    );
}

/** A value in package.json. */
function manifestValue(files: Draft['files'], ...path: JsonPath): unknown {
  return valueIn(files.get('package.json') ?? '', ...path);
}

function change({ files }: Draft, path: string, edit: (text: string) => string): void {
  const text = files.get(path);
  if (text !== undefined) files.set(path, edit(text));
}

function nestPlugin(text: string, { files }: Draft): string {
  const plugins = valueIn(text, 'compilerOptions', 'plugins');
  const names = Array.isArray(plugins) ? plugins.map((item) => Object(item).name ?? item) : [];
  const added = names.includes('toolwright')
    ? text
    : addEntry(text, ['compilerOptions', 'plugins'], 'toolwright');
  const builder = ['compilerOptions', 'builder'];
  const scripts = files.get('package.json') ?? '';
  const isSwc =
    [valueIn(text, ...builder), valueIn(text, ...builder, 'type')].includes('swc') ||
    /\bnest [^"]*(-b|--builder)[ =]swc\b/.test(scripts);
  // With swc, the Nest CLI calls plugins only if type checking is enabled.
  const hasChecker = valueIn(text, 'compilerOptions', 'typeCheck') === true;
  return isSwc && !hasChecker ? setValue(added, ['compilerOptions', 'typeCheck'], true) : added;
}

/** The name of the plugin in `toolwright/plugin` for each bundler. */
const BUNDLERS = new Map([
  ['vite', 'vite'],
  ['vitest', 'vite'],
  ['webpack', 'webpack'],
  ['rspack', 'rspack'],
  ['rollup', 'rollup'],
  ['rolldown', 'rolldown'],
  ['tsdown', 'rolldown'],
]);

/** A required Jest setting, and instructions if the setting has another value. */
interface JestSetting {
  readonly key: string;
  readonly value: string | readonly string[];
  readonly marker: string;
  readonly byHand: string;
}

const SETUP: JestSetting = {
  key: 'globalSetup',
  value: 'toolwright/jest',
  marker: 'toolwright/jest',
  byHand:
    "already has a globalSetup, or no single place for one. Call this setup before your own: import setup from 'toolwright/jest'",
};

/** ts-jest emits CommonJS, in which Jest cannot load an ESM package. */
const TRANSFORMED: JestSetting = {
  key: 'transformIgnorePatterns',
  value: ['node_modules/(?!toolwright/)'],
  marker: '(?!toolwright/)',
  byHand:
    "already has transformIgnorePatterns, or no single place for them. Add this pattern, so that ts-jest transforms the package: 'node_modules/(?!toolwright/)'",
};

function planJest(draft: Draft): void {
  const { files } = draft;
  const inManifest = manifestValue(files, 'jest') !== undefined;
  const path = inManifest
    ? 'package.json'
    : [...files.keys()].find((name) => name.startsWith('jest.config.'));
  const paths = [path, files.has(NEST_E2E) ? NEST_E2E : undefined].filter((file) => file !== undefined);
  for (const file of paths) {
    const text = files.get(file) ?? '';
    const isCommonJs = !/extensionsToTreatAsEsm|useESM|default-esm/.test(text);
    planJestSetting(draft, file, SETUP);
    // In package.json, the name may also be a dependency.
    const settings = file === 'package.json' ? valueIn(text, 'jest') : text;
    if (!JSON.stringify(settings).includes('ts-jest') || !isCommonJs) continue;
    planJestSetting(draft, file, TRANSFORMED);
    if (!TRANSFORMS_JS.test(JSON.stringify(settings))) planJestTransform(draft, file);
  }
}

/** The transforms of NestJS, the presets of ts-jest for JavaScript, and the entry of {@link planJestTransform}. */
const TRANSFORMS_JS = /\((?:t\|j|j\|t)\)s|\[(?:tj|jt)\]s|js-?with|node_modules\/toolwright\//i;

/** By default, ts-jest transforms only TypeScript. */
function planJestTransform({ files, notes }: Draft, path: string): void {
  const text = files.get(path) ?? '';
  const pattern = 'node_modules/toolwright/.+[.]js$';
  const entry = `'${pattern}': 'ts-jest'`;
  const inJson = path === 'package.json' ? ['jest', 'transform'] : ['transform'];
  let after: string | undefined;
  if (path.endsWith('.json')) after = setValue(text, [...inJson, pattern], 'ts-jest');
  else if (places(text, /\btransform\s*:/g).length > 0)
    after = addSetting(text, `${entry},`, /\btransform\s*:\s*\{/g);
  // A preset that is spread, `...createDefaultPreset()`, would replace the setting.
  else if (places(text, /\.\.\./g).length === 0) after = addSetting(text, `transform: { ${entry} },`);
  if (after !== undefined) files.set(path, after);
  else notes.push(`${path} has no single place for this entry of transform. Add it yourself: ${entry}`);
}

function planJestSetting({ files, notes }: Draft, path: string, setting: JestSetting): void {
  const { key, value, marker, byHand } = setting;
  const text = files.get(path) ?? '';
  if (text.includes(marker)) return;
  const isTaken = new RegExp(`\\b${key}\\b`).test(text);
  const code = typeof value === 'string' ? `'${value}'` : `[${value.map((one) => `'${one}'`).join(', ')}]`;
  const after = isTaken
    ? undefined
    : path.endsWith('.json')
      ? setValue(text, path === 'package.json' ? ['jest', key] : [key], value)
      : addSetting(text, `${key}: ${code},`);
  if (after !== undefined) files.set(path, after);
  else notes.push(`${path} ${byHand}`);
}

/** Makes Next load the package from `node_modules`: its bundler would resolve every optional package. */
const EXTERNAL = "serverExternalPackages: ['toolwright'],";

/** Next's minifier renames parameters, so the file must be generated before each build. */
function planNext(draft: Draft): void {
  const { files, notes } = draft;
  const groups = ['dependencies', 'devDependencies'];
  if (groups.every((group) => manifestValue(files, group, 'next') === undefined)) return;
  generateBefore('dev', draft);
  const path = [...files.keys()].find((name) => name.startsWith('next.config.'));
  const text = path === undefined ? '' : (files.get(path) ?? '');
  if (/\bserverExternalPackages\b[^\]]*\btoolwright\b/.test(text)) return;
  const after = text.includes('serverExternalPackages') ? undefined : addSetting(text, EXTERNAL);
  if (path !== undefined && after !== undefined) files.set(path, after);
  else
    notes.push(
      `init found no single place for the setting in ${path ?? 'next.config.mjs'}. Add it yourself:\n\n  ${EXTERNAL}`,
    );
}

/** `predev` for `dev`, and so on. */
function generateBefore(name: 'build' | 'dev' | 'start:dev', draft: Draft): void {
  const { files, notes, tsconfig } = draft;
  const command = generateLine(tsconfig);
  const [own, before] = [name, `pre${name}`].map((script) => manifestValue(files, 'scripts', script));
  if ([own, before].some((script) => String(script ?? '').includes('toolwright generate'))) return;
  if (typeof own !== 'string') {
    notes.push(`package.json has no ${name} script. After each change of a tool, run: npx ${command}`);
    return;
  }
  const script = typeof before === 'string' && before !== '' ? `${command} && ${before}` : command;
  if (name === 'build')
    notes.push(
      `npm run build now runs ${command} first. If your compiler watches files, also run: npx ${command} --watch`,
    );
  change(draft, 'package.json', (text) => setValue(text, ['scripts', `pre${name}`], script));
}

/** The properties of a project that the plan needs. */
interface FoundProject {
  /** Relative path of the tsconfig.json that lists the sources; it may not exist yet. */
  readonly tsconfig: string;
  readonly experimentalDecorators: boolean;
  /** Configuration files of build and tests, by relative path. */
  readonly files: ReadonlyMap<string, string>;
}

const CONFIGURATION =
  /^(package\.json|nest-cli\.json|jest\.config\.(json|[cm]?[jt]s)|(vite|vitest|webpack|rspack|rollup|rolldown|tsdown|next)\.config\.[cm]?[jt]s|vitest\.config\.\w+\.[cm]?[jt]s)$/;

/** The Jest configuration of `nest new` for end-to-end tests. */
const NEST_E2E = 'test/jest-e2e.json';

/**
 * Reads the project of a folder.
 *
 * @throws UserFault if there is no package.json or compiler.
 */
async function readProject(folder: string): Promise<FoundProject> {
  if (!existsSync(join(folder, 'package.json')))
    throw new UserFault(`there is no package.json in ${folder}`, 1);
  let tsconfig = 'tsconfig.json';
  const text = read(join(folder, tsconfig));
  const references = valueIn(text, 'references');
  const files = valueIn(text, 'files');
  // In a solution with only references, the first one with sources.
  if (Array.isArray(references) && Array.isArray(files) && files.length === 0) {
    const paths = references.flatMap((item: unknown) => {
      const { path } = Object(item) as Fields;
      if (typeof path !== 'string') return [];
      return resolve(folder, path, path.endsWith('.json') ? '' : 'tsconfig.json');
    });
    const first = paths.find((path) => existsSync(path));
    if (first !== undefined) tsconfig = relative(folder, first).replaceAll('\\', '/');
  }
  const names = [
    tsconfig,
    ...readdirSync(folder)
      .filter((name) => CONFIGURATION.test(name))
      .sort(),
    ...(existsSync(join(folder, NEST_E2E)) ? [NEST_E2E] : []),
  ];
  const texts = names.map((name) => [name, read(join(folder, name))] as const);
  // Asks the compiler, because the option may be inherited.
  const path = join(folder, tsconfig);
  const loaded = await loadCompiler(dirname(path));
  if (!loaded.ok) throw new UserFault(loaded.problem, 1);
  const { compiler } = loaded;
  try {
    const { experimentalDecorators } = existsSync(path)
      ? compiler.open(path.replaceAll('\\', '/')).options
      : {};
    return { tsconfig, experimentalDecorators: experimentalDecorators === true, files: new Map(texts) };
  } finally {
    compiler.close();
  }
}

/** The text of a file; empty if it does not exist. */
function read(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8').replaceAll('\r\n', '\n') : '';
}

/** The value at a path; `undefined` if the path does not exist. */
function valueIn(text: string, ...path: JsonPath): unknown {
  const node = nodeAt(treeOf(text), path);
  return node && plainValueOf(node);
}

function plainValueOf(node: Expression): unknown {
  if (node.type === 'Literal') return node.value;
  if (node.type === 'UnaryExpression' && node.operator === '-') return -Number(plainValueOf(node.argument));
  const entries = entriesOf(node).map(([key, value]) => [key, plainValueOf(value)] as const);
  if (node.type === 'ArrayExpression') return entries.map(([, value]) => value);
  return node.type === 'ObjectExpression' ? Object.fromEntries(entries) : undefined;
}
