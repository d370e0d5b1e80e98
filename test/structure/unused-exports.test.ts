import { posix } from 'node:path';
import { expect, test } from '@jest/globals';
import { exportedNames, importedNames, namesImportedBy } from './imported-names.js';
import { readSource } from './source-files.js';

/** Exports that only tests import, and what the tests check with them. */
const USED_BY_TESTS: Readonly<Record<string, string>> = {
  'src/dev/cli/terminal.ts colouredDifference': 'line by line, without a terminal',
  'src/dev/cli/terminal.ts hasColours': 'with or without a terminal',
  'src/tools/checking/formats.ts FORMATS': 'format by format',
  'src/run/loop/events.ts EventChannel': 'its order under slow readers',
  'src/surfaces/mcp/client/imported-tool.ts localName': 'name by name, in a table',
  'src/surfaces/mcp/server/mcp-server.ts EventLog': 'its limits, with more events than a session has',
  'src/core/metadata/extensible-reflect.ts extensibleReflect':
    'runs when it is imported; the file is named after it',
  'src/models/offline/offline-provider.ts fillArguments': 'schema by schema, in a table',
  'src/models/offline/offline-provider.ts readText': 'text by text, in a table',
  'src/surfaces/satellite/client/satellite-client.ts ServerEvent': 'written by the server of the tests',
  'src/surfaces/satellite/client/satellite-client.ts readEvents': 'used by the client of the tests',
  'src/surfaces/satellite/server/create-assistant-handler.ts TextGate': 'text split at every position',
  'src/tools/discovery/method-facts.ts parameterList': 'with many sources of functions',
  'src/tools/schema/class-validator-rules.ts ruleMeaning': 'rule by rule, against class-validator',
  'src/tools/schema/class-validator-rules.ts portablePattern':
    'expression by expression, against its own flags',
  'src/tools/schema/class-validator-rules.ts RUN_AT_CALL_TIME': 'rule by rule, against class-validator',
  'src/dev/typegen/load-compiler.ts classicCompiler': 'with several versions of the compiler',
  'src/dev/typegen/load-compiler.ts ClassicApi': 'with several versions of the compiler',
  'src/toolbox/files/file-tools.ts differenceOf': 'against whole files, edit by edit',
  'src/dev/typegen/doc-comment.ts parseDocComment': 'comment by comment, without a compiler',
  'src/dev/typegen/doc-comment.ts docCommentAt': 'with the code before the comment',
};

const imported = importedNames();

function unusedExports(): string[] {
  const used = new Set(
    imported
      .filter(({ from, target }) => from.path !== target)
      .map(({ target, name }) => `${target} ${name}`),
  );
  return exportedNames()
    .filter(({ path, name }) => !used.has(`${path} ${name}`) && !used.has(`${path} *`))
    .map(({ path, name }) => `${path} ${name}`)
    .filter((name) => !Object.hasOwn(USED_BY_TESTS, name));
}

test('every export is imported by another file or listed for tests', () => {
  expect(unusedExports()).toEqual([]);
});

test('namesImportedBy finds every kind of import', () => {
  const text = `
    import { a, type B as C } from './x.js';
    import * as d from './d.js';
    export { e as f } from './e.js';
    type G = import('./g.js').G;
    const h = await import('./h.js');
    import { i } from 'elsewhere';
  `;
  const names = namesImportedBy(readSource('src/run/loop/y.ts', text));
  expect(names.map(({ target, name }) => `${posix.basename(target)} ${name}`).sort()).toEqual([
    'd.js *',
    'e.js e',
    'g.js *',
    'h.js *',
    'x.js B',
    'x.js a',
  ]);
});
