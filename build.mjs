// Builds dist. The compiler emits modules and types; then the modules of each entry point become one file, and the
// entry points share chunks. A user's process opens a dozen files instead of two hundred, which is most of the time
// of an import.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'acorn';
import { build } from 'esbuild';
import { buildPage } from './src/surfaces/inspector/page/build.mjs';

const root = fileURLToPath(new URL('.', import.meta.url));
const { version, exports, bin, engines } = JSON.parse(
  readFileSync(new URL('package.json', import.meta.url), 'utf8'),
);
const entryPoints = [...Object.values(exports), ...Object.values(bin)].filter((path) => path.endsWith('.js'));

rmSync(new URL('dist', import.meta.url), { recursive: true, force: true });
// `npm test` has already checked the types.
const flags = process.argv.includes('--no-check') ? ['--noCheck'] : [];
try {
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', ...flags], {
    cwd: root,
    stdio: 'inherit',
  });
} catch {
  // The compiler has printed the errors.
  process.exit(1);
}
// Modules that the same entry points need share a chunk. The root would be split into two dozen chunks, and a file
// costs more than its bytes, so entry points that need most of the root import all of it.
const SMALL_ENTRY_POINTS = new Set(['.', './decorators', './stores', './plugin', './jest']);
const LOADED_ON_DEMAND = [
  ...['agent', 'chat', 'dev', 'doctor', 'eval', 'inspect', 'list', 'mcp', 'runs', 'worker'].map(
    (command) => `dev/cli/${command}-command`,
  ),
  'durable/postgres/postgres-stores',
  'models/ai-sdk/to-ai-sdk-tools',
  'models/offline/offline-provider',
  'surfaces/chat/create-chat-handler',
  'surfaces/inspector/create-inspector',
  'surfaces/mcp/client/connect-mcp',
  'surfaces/mcp/client/token-stores',
  'surfaces/mcp/server/mcp-server',
  'surfaces/nestjs/application',
];
const besideRoot = new Set(
  [
    ...Object.entries(exports).flatMap(([subpath, path]) => (SMALL_ENTRY_POINTS.has(subpath) ? [] : path)),
    ...LOADED_ON_DEMAND.map((name) => `dist/src/${name}.js`),
  ].map((path) => join(root, path)),
);
const missing = [...besideRoot].filter((path) => !existsSync(path));
if (missing.length > 0) throw new Error(`The build names modules that do not exist: ${missing.join(', ')}`);
const sources = {
  name: 'sources',
  setup({ onLoad }) {
    const importRoot = `import ${JSON.stringify(join(root, exports['.']))}; `;
    onLoad({ filter: /\.js$/ }, async ({ path }) => {
      const text = withPureConstants(await readFile(path, 'utf8'));
      // On the first line, so that the line numbers of the source map stay correct.
      return { contents: besideRoot.has(path) ? `${importRoot}${text}` : text };
    });
  },
};
// Modules loaded by `require` on first use stay CommonJS files of their own; a user's bundler can leave them out.
const commonFiles = new Set();
const commonModules = {
  name: 'common-modules',
  setup({ onResolve, onEnd }) {
    onResolve({ filter: /^\.{1,2}\/.*\.cjs$/ }, ({ path, resolveDir }) => {
      const file = join(resolveDir, path);
      commonFiles.add(file);
      return { path: chunkOf(file), external: true };
    });
    onEnd(async () => {
      for (const file of commonFiles)
        await writeFile(new URL(chunkOf(file), import.meta.url), inCommonJs(await readFile(file, 'utf8')));
    });
  },
};
// Chunks are imported in any order: code that must run right before `reflect-metadata` is imported together with it.
const REFLECT = 'dist/chunks/reflect-metadata.js';
const reflectMetadata = {
  name: 'reflect-metadata',
  setup({ onResolve, onEnd }) {
    onResolve({ filter: /^reflect-metadata\/lite$/ }, () => ({ path: REFLECT, external: true }));
    onEnd(async () => {
      const before = await readFile(
        new URL('dist/src/core/metadata/extensible-reflect.js', import.meta.url),
        'utf8',
      );
      await writeFile(new URL('dist/chunks/extensible-reflect.js', import.meta.url), withoutMap(before));
      const both = "import './extensible-reflect.js';\nimport 'reflect-metadata/lite';\n";
      await writeFile(new URL(REFLECT, import.meta.url), both);
    });
  },
};
// Every entry point checks the version of Node first: an older Node would fail later with an unclear error.
const NODE_VERSION = 'dist/chunks/node-version.js';
const nodeVersion = {
  name: 'node-version',
  setup({ onEnd }) {
    onEnd(async () => {
      const source = await readFile(new URL('dist/src/core/kernel/node-version.js', import.meta.url), 'utf8');
      const check = 'const problem = oldNode();\nif (problem !== undefined) throw new Error(problem);\n';
      await writeFile(new URL(NODE_VERSION, import.meta.url), `${withoutMap(source)}${check}`);
    });
  },
};
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints,
  plugins: [sources, commonModules, reflectMetadata, nodeVersion],
  outbase: 'dist',
  outdir: 'dist',
  allowOverwrite: true,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  packages: 'external',
  define: { TOOLWRIGHT_VERSION: JSON.stringify(version) },
  target: `node${engines.node.replace(/[^\d.]/g, '')}`,
  chunkNames: 'chunks/[name]-[hash]',
  // Names and line breaks stay, because Node prints the line of an uncaught error.
  minifyWhitespace: true,
  lineLimit: 200,
  metafile: true,
  logLevel: 'warning',
});

removeUnreachableTypes(entryPoints.map((path) => join(root, path.replace(/\.js$/, '.d.ts'))));
await buildPage(join(root, 'dist', 'inspector'));
for (const path of Object.values(bin)) chmodSync(new URL(path, import.meta.url), 0o755);
for (const path of Object.keys(metafile.outputs).filter((output) => output.endsWith('.js'))) {
  const file = new URL(path, import.meta.url);
  // Output files are in different folders, so imports need relative paths.
  let text = await readFile(file, 'utf8');
  for (const own of [...[...commonFiles].map(chunkOf), REFLECT])
    text = text.replaceAll(`"${own}"`, `"${fromFolder(dirname(path), own)}"`);
  // On the first line, so that the line numbers of the source map stay correct. Decorated classes need it before they
  // are defined, and esbuild does not preserve the order in which chunks are imported.
  if (text.includes('"design:')) text = `import "${fromFolder(dirname(path), REFLECT)}"; ${text}`;
  // The command line checks the version itself.
  if (Object.values(exports).includes(`./${path}`))
    text = `import "${fromFolder(dirname(path), NODE_VERSION)}"; ${text}`;
  await writeFile(file, inAscii(withPureMarks(withClassNames(withDotsInFront(withOwnLines(text))))));
}

/**
 * Creates constants in functions, which `withPureMarks` marks as pure; a single call is marked directly. Otherwise a
 * user's bundler would include all constants of a chunk, because it cannot prove that they have no side effects.
 */
function withPureConstants(text) {
  const { body } = parse(text, { ecmaVersion: 'latest', sourceType: 'module', allowHashBang: true });
  return body
    .map((statement) => statement.declaration ?? statement)
    .flatMap(({ kind, declarations }) => (kind === 'const' ? declarations : []))
    .filter(({ init }) => mayHaveEffects(isCall(init) ? init.arguments : init))
    .reduceRight((changed, { init: { start, end } }) => {
      return `${changed.slice(0, start)}(() => (${changed.slice(start, end)}))()${changed.slice(end)}`;
    }, text);
}

/** The body of a function runs later. */
function mayHaveEffects(node) {
  if (/Function|Class/.test(node?.type)) return false;
  if (isCall(node) || /^(?:Member|Spread|TaggedTemplate)E/.test(node?.type)) return true;
  return typeof node === 'object' && Object.values(node ?? {}).some(mayHaveEffects);
}

function isCall(node) {
  return /^(?:Call|New)Expression$/.test(node?.type);
}

/** Only declarations of modules are `var` here. esbuild removes such comments when it minifies. */
function withPureMarks(text) {
  return text.replaceAll(
    /\bvar\s[\w$]+=\s*(?=\(\(\)=>|(?!async|function)(?:new\s)?[\w$.]+\()/g,
    '$&/* @__PURE__ */',
  );
}

/** A third of all type declarations cannot be reached from an entry point, so they cannot be imported. */
function removeUnreachableTypes(entries) {
  const reached = new Set(entries);
  for (const file of reached)
    for (const [, specifier] of readFileSync(file, 'utf8').matchAll(
      /\b(?:from|import)\b[ (]*['"](\.[^'"]+)/g,
    )) {
      const types = join(dirname(file), specifier.replace(/\.(c?)js$/, '.d.$1ts'));
      if (existsSync(types)) reached.add(types);
    }
  for (const name of readdirSync(join(root, 'dist'), { recursive: true })) {
    const file = join(root, 'dist', name);
    if (/\.d\.c?ts$/.test(file) && !reached.has(file)) rmSync(file);
  }
}

function fromFolder(folder, file) {
  const path = relative(folder, file).replaceAll('\\', '/');
  return path.startsWith('.') ? path : `./${path}`;
}

/**
 * Moves the dot of a line that ends with `object.` if the next line begins with `key instanceof Class`. TypeScript,
 * which ts-jest uses to create CommonJS, would read the key as the beginning of a new statement.
 */
function withDotsInFront(text) {
  return text.replaceAll(/\.\n(?=[\w$]+ (?:instanceof|in|of)\b)/g, '\n.');
}

/** Node prints the line of an uncaught error, so each `throw` gets a line of its own. */
function withOwnLines(text) {
  return (
    text
      .replaceAll(/(?<=[;{)}])throw new /g, '\nthrow new ')
      // The line limit may have split the statement.
      .replaceAll(/^throw new\s+(\w+)\(\n/gm, 'throw new $1(')
      .replaceAll(/^throw new \w+\(\w+\)[;}]/gm, '$&\n')
  );
}

/** V8 needs two bytes for each character of a file that has one quotation mark outside of Latin-1. */
function inAscii(text) {
  return text.replaceAll(
    /[^\0-\x7f]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function withoutMap(text) {
  return text.replace(/^\/\/# sourceMappingURL.*$/gm, '');
}

function chunkOf(file) {
  return `dist/chunks/${basename(file)}`;
}

function inCommonJs(text) {
  const problem =
    'toolwright contains CommonJS modules, which were loaded as ES modules: make toolwright external (in Vite, remove it from ssr.noExternal)';
  return `if (typeof exports === 'undefined') throw new Error('${problem}');\n${withoutMap(text)}`;
}

/**
 * `var X = class _X` (or `X2`): the bundler renames a class inside itself, and frameworks show that name to people.
 * The bundler's `keepNames` would repair it with a call per function, also for functions that each tool call creates.
 */
function withClassNames(text) {
  const renamed = text.matchAll(/\bvar\s(\w+)=\s*(?:\w+=\s*)?class\s(_\1|\1\d+)\b/g);
  const names = new Map([...renamed].map(([, name, inner]) => [inner, name]));
  if (names.size === 0) return text;
  const inner = new RegExp(`\\b(?:${[...names.keys()].join('|')})\\b`, 'g');
  return text.replace(inner, (name) => names.get(name));
}
