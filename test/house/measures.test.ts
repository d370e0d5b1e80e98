import { posix } from 'node:path';
import { expect, test } from '@jest/globals';
import { exportedNames, importedNames, isDoor, namesTakenBy } from './imported-names.js';
import { packageSources, readSource } from './source-tree.js';

const FEW_LINES = 40;

/** Files of less than 40 lines that are a topic all the same, and why. */
const SMALL_TOPICS: Readonly<Record<string, string>> = {
  'decorators/args.ts': 'a decorator, which users find under its name',
  'decorators/context.ts': 'the same',
  'decorators/describe-class.ts': 'the same',
  'decorators/param.ts': 'the same',
  'decorators/tool.ts': 'the same',
  'decorators/toolset.ts': 'the same',
  'src/cli/command.ts': 'what all commands are given and may give, which imports none of them',
  'src/cli/package-version.ts':
    'the only file of the commands with import.meta, which Jest’s global setup cannot load',
  'src/jobs/kept-job.ts': 'what engines in databases keep of a job, which the jobs themselves need not know',
  'src/contract/touch.ts': 'what tools say to policies, which know nothing of each other',
  'src/contract/ports.ts': 'what applications implement, and twenty files name',
  'src/jest/generate-before-tests.ts': 'the door of Jest has a default export and nothing else',
  'src/nestjs/open-application.ts': 'the command loads it late, and nobody else does',
  'src/kernel/node-module.ts': 'the only place that asks for a module of Node that a runtime may lack',
  'src/kernel/visible-text.ts': 'five rooms make text visible, and none of them the others’ way',
  'src/metadata/extensible-reflect.ts': 'has to run before reflect-metadata: package.json names it',
  'src/loop/estimate-tokens.ts': 'a guess of its own, which no budget and no run need to know',
  'src/postgres/postgres-cache.ts': 'the port of kept results, beside those of runs, jobs and budgets',
  'src/mcp/record-message.ts': 'server and client record alike, and neither imports the other',
  'src/conversation/expiry-watch.ts': 'timers of conversations, apart from how turns are taken',
};
const MOST_LINES_OF_A_FILE = 400;

/** Exports that only tests read, and why they do. */
const READ_BY_TESTS: Readonly<Record<string, string>> = {
  'src/cli/chat-printer.ts colouredDifference': 'line by line, without a terminal',
  'src/cli/chat-printer.ts hasColours': 'the same',
  'src/checking/compile.ts compileSchema': 'compared with the interpreter, schema by schema',
  'src/checking/compile.ts compileTest': 'measured beside the interpreter (npm run measure:schemas)',
  'src/checking/hydration/create-hydrator.ts HydrationSource': 'hydration without a tool',
  'src/loop/events.ts EventChannel': 'its order under slow readers',
  'src/mcp/client/imported-tool.ts localName': 'name by name, in a table',
  'src/mcp/server/http-sessions.ts EventLog': 'its bounds take more events than a session has',
  'src/metadata/extensible-reflect.ts extensibleReflect':
    'runs when it is imported; the file is named after it',
  'src/providers/offline/offline-provider.ts fillArguments': 'schema by schema, in a table',
  'src/providers/offline/offline-provider.ts readText': 'words by words, in a table',
  'src/satellite/client/chat-transport.ts ServerEvent': 'the tests’ own server writes them',
  'src/satellite/client/chat-transport.ts readEvents': 'the tests’ own client reads with it',
  'src/satellite/server/create-assistant-handler.ts KeyQueue': 'its order under many keys',
  'src/satellite/server/take-turn.ts TextGate': 'text cut at every place',
  'src/schema/class-validator-rules.ts portablePattern': 'expression by expression, against its own flags',
  'src/schema/class-validator-rules.ts RUN_AT_CALL_TIME': 'rule by rule, against class-validator',
  'src/typegen/comments/doc-comment.ts parseDocComment': 'comment by comment, without a compiler',
};

/** At most this many today, with room for the rooms of providers, stores, engines and the test kit; lower them as they fall. The goal stands beside each. */
const MOST = {
  files: 522, // 320
  exports: 2380, // 800
  'exports that no other file imports': 0, // 0
  'files that belong into the one sibling that imports them': 9, // 0
  'files of less than 40 lines without a reason': 1, // 0
};

const taken = importedNames();

function unreadExports(): string[] {
  const read = new Set(
    taken.filter(({ from, target }) => from.path !== target).map(({ target, name }) => `${target} ${name}`),
  );
  return exportedNames()
    .filter(({ path, name }) => !read.has(`${path} ${name}`) && !read.has(`${path} *`))
    .map(({ path, name }) => `${path} ${name}`)
    .filter((name) => !Object.hasOwn(READ_BY_TESTS, name));
}

/** Files with one importer, which stands beside them and has room for them; what is loaded late stays apart. */
function filesOfASibling(): string[] {
  const importers = new Map<string, Set<string>>();
  for (const { from, target } of taken)
    importers.set(target, (importers.get(target) ?? new Set()).add(from.path));
  const loadedLate = new Set(taken.filter(({ name }) => name === '*').map(({ target }) => target));
  const linesOf = new Map(packageSources().map(({ path, lines }) => [path, lines.length]));
  return packageSources().flatMap(({ path, lines }) => {
    const [importer, ...others] = importers.get(path) ?? [];
    if (importer === undefined || others.length > 0 || isDoor(importer) || loadedLate.has(path)) return [];
    if (path.endsWith('.cts')) return [];
    const isSibling = posix.dirname(importer) === posix.dirname(path);
    const fits = lines.length + (linesOf.get(importer) ?? 0) <= MOST_LINES_OF_A_FILE;
    return isSibling && fits ? [`${path} (into ${importer})`] : [];
  });
}

function smallFiles(): string[] {
  return packageSources()
    .filter(({ path, lines }) => lines.length < FEW_LINES && !isDoor(path) && path.endsWith('.ts'))
    .filter(({ path }) => !Object.hasOwn(SMALL_TOPICS, path))
    .map(({ path }) => path);
}

const FOUND: Readonly<Record<keyof typeof MOST, () => readonly string[]>> = {
  files: () => packageSources().map(({ path }) => path),
  exports: () => exportedNames().map(({ path, name }) => `${path} ${name}`),
  'exports that no other file imports': unreadExports,
  'files that belong into the one sibling that imports them': filesOfASibling,
  'files of less than 40 lines without a reason': smallFiles,
};

test.each(Object.entries(MOST))('%s: at most %d', (measure, most) => {
  const found = FOUND[measure as keyof typeof MOST]();
  // All of them, where there are more than there may be.
  expect(found.length > most ? { count: found.length, found } : {}).toEqual({});
});

test('an import of every kind is seen as one', () => {
  const text = `
    import { a, type B as C } from './x.js';
    import * as d from './d.js';
    export { e as f } from './e.js';
    type G = import('./g.js').G;
    const h = await import('./h.js');
    import { i } from 'elsewhere';
  `;
  const names = namesTakenBy(readSource('src/loop/y.ts', text));
  expect(names.map(({ target, name }) => `${posix.basename(target)} ${name}`).sort()).toEqual([
    'd.js *',
    'e.js e',
    'g.js *',
    'h.js *',
    'x.js B',
    'x.js a',
  ]);
});
