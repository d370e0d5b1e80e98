import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { checkFiles } from '../processes/run-compiler.js';
import { completeExample, type DocExample, docExamples, pageExamples } from './doc-examples.js';
import { listFiles, ROOT, readText } from './repository.js';
import { packageSources, readSource } from './source-files.js';

const FOLDER = 'node_modules/.cache/toolwright-doc-examples';

const PAGES = ['README.md', 'CONTRIBUTING.md', 'SKILL.md', 'AGENTS.md', ...listFiles('docs')];

const WRONG: DocExample = {
  path: 'src/run/loop/run.ts',
  line: 1,
  code: 'const { status } = await runToolLoop({ provider }, messages);\nstatus.nothing;',
};

test('every example in a docstring or the manual type-checks with the declarations of example-names.ts', () => {
  const examples = [
    ...packageSources().flatMap(docExamples),
    ...PAGES.flatMap((path) => pageExamples(path, readText(path))),
  ];
  expect(examples.length).toBeGreaterThan(10);
  const errors = checkExamples([...examples, WRONG]);
  // The last example is wrong on purpose, as proof that the examples are checked.
  expect(errors.filter((error) => !error.startsWith('example '))).toEqual([]);
  expect(errors.map((error) => error.slice(0, 17))).toEqual(['example 1: TS2345', 'example 2: TS2339']);
});

test('docExamples finds examples in docstrings and not in other comments', () => {
  const text = '/**\n * Text.\n *\n * ```ts\n * a();\n *\n *   b();\n * ```\n */\n// ```ts no ```\nlet a;\n';
  expect(docExamples(readSource('src/run/loop/x.ts', text))).toEqual([
    { path: 'src/run/loop/x.ts', line: 5, code: 'a();\n\n  b();' },
  ]);
});

test('pageExamples finds examples of a page with their lines', () => {
  expect(pageExamples('docs/x.md', '# X\n\n```ts\na();\n```\n\n```sh\nls\n```\n')).toEqual([
    { path: 'docs/x.md', line: 4, code: 'a();' },
  ]);
});

/** Errors with their `path:line`, or `example line` for the last example. */
function checkExamples(examples: readonly DocExample[]): string[] {
  const folder = join(ROOT, FOLDER);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const files = examples.map((_, index) => `example-${index}.ts`);
  for (const [index, file] of files.entries()) {
    writeFileSync(join(folder, file), completeExample(examples[index]!, FOLDER));
  }
  const compilerOptions = { rootDir: '../../..' };
  const project = { extends: '../../../tsconfig.json', compilerOptions, files, include: [] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(project));
  // Only the examples are checked: errors in the sources are reported by `npm run typecheck`.
  return checkFiles(folder, files).map(({ file, line, code, message }) => {
    const index = files.indexOf(file);
    const example = examples[index]!;
    const place =
      index === files.length - 1 ? `example ${line}` : `${example.path}:${example.line + line - 1}`;
    return `${place}: ${code} ${message}`;
  });
}
