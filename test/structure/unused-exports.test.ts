import { posix } from 'node:path';
import { expect, test } from '@jest/globals';
import { exportedNames, importedNames, namesTakenBy } from './imported-names.js';
import { readSource } from './source-tree.js';

/** Exports that only tests read, and why they do. */
const READ_BY_TESTS: Readonly<Record<string, string>> = {
  'src/dev/cli/terminal.ts colouredDifference': 'line by line, without a terminal',
  'src/dev/cli/terminal.ts hasColours': 'the same',
  'src/tools/checking/formats.ts FORMATS': 'format by format',
  'src/run/loop/events.ts EventChannel': 'its order under slow readers',
  'src/surfaces/mcp/client/imported-tool.ts localName': 'name by name, in a table',
  'src/surfaces/mcp/server/mcp-server.ts EventLog': 'its bounds take more events than a session has',
  'src/core/metadata/extensible-reflect.ts extensibleReflect':
    'runs when it is imported; the file is named after it',
  'src/models/offline/offline-provider.ts fillArguments': 'schema by schema, in a table',
  'src/models/offline/offline-provider.ts readText': 'words by words, in a table',
  'src/surfaces/satellite/client/satellite-client.ts ServerEvent': 'the tests’ own server writes them',
  'src/surfaces/satellite/client/satellite-client.ts readEvents': 'the tests’ own client reads with it',
  'src/surfaces/satellite/server/create-assistant-handler.ts TextGate': 'text cut at every place',
  'src/tools/discovery/method-facts.ts parameterList': 'source by source of a function',
  'src/tools/schema/class-validator-rules.ts ruleMeaning': 'rule by rule, against class-validator',
  'src/tools/schema/class-validator-rules.ts portablePattern':
    'expression by expression, against its own flags',
  'src/tools/schema/class-validator-rules.ts RUN_AT_CALL_TIME': 'rule by rule, against class-validator',
  'src/dev/typegen/load-compiler.ts classicCompiler': 'with the compilers of several versions',
  'src/dev/typegen/load-compiler.ts ClassicApi': 'the same',
  'src/toolbox/files/file-tools.ts differenceOf': 'against whole files, edit by edit',
  'src/dev/typegen/doc-comment.ts parseDocComment': 'comment by comment, without a compiler',
  'src/dev/typegen/doc-comment.ts docCommentAt': 'the same, with the code before it',
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

test('every export has a reader in another file', () => {
  expect(unreadExports()).toEqual([]);
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
  const names = namesTakenBy(readSource('src/run/loop/y.ts', text));
  expect(names.map(({ target, name }) => `${posix.basename(target)} ${name}`).sort()).toEqual([
    'd.js *',
    'e.js e',
    'g.js *',
    'h.js *',
    'x.js B',
    'x.js a',
  ]);
});
