import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { checkFiles } from '../processes/run-compiler.js';
import { completeExample, type DocExample, docExamples, pageExamples } from './doc-examples.js';
import { listFiles, ROOT, readText } from './repository.js';
import { packageSources, readSource } from './source-tree.js';

const FOLDER = 'node_modules/.cache/toolwright-doc-examples';

const PAGES = ['README.md', 'CONTRIBUTING.md', 'SKILL.md', 'AGENTS.md', ...listFiles('docs')];

const WRONG: DocExample = {
  path: 'src/run/loop/run.ts',
  line: 1,
  code: 'const { status } = await runToolLoop({ provider }, messages);\nstatus.nothing;',
};

test('every example in a docstring or the manual type-checks, with the application around it that example-names.ts declares', () => {
  const examples = [
    ...packageSources().flatMap(docExamples),
    ...PAGES.flatMap((path) => pageExamples(path, readText(path))),
  ];
  expect(examples.length).toBeGreaterThan(10);
  const complaints = checkExamples([...examples, WRONG]);
  // The last example is wrong on purpose: so it is known that the compiler looked.
  expect(complaints.filter((complaint) => !complaint.startsWith('example '))).toEqual([]);
  expect(complaints.map((complaint) => complaint.slice(0, 17))).toEqual([
    'example 1: TS2345',
    'example 2: TS2339',
  ]);
});

test('examples are found in docstrings of any depth, and only there', () => {
  const text = '/**\n * Text.\n *\n * ```ts\n * a();\n *\n *   b();\n * ```\n */\n// ```ts no ```\nlet a;\n';
  expect(docExamples(readSource('src/run/loop/x.ts', text))).toEqual([
    { path: 'src/run/loop/x.ts', line: 5, code: 'a();\n\n  b();' },
  ]);
});

test('examples of a page are found with their lines', () => {
  expect(pageExamples('docs/x.md', '# X\n\n```ts\na();\n```\n\n```sh\nls\n```\n')).toEqual([
    { path: 'docs/x.md', line: 4, code: 'a();' },
  ]);
});

/** Complaints as `path:line`, and as `example line` for the last of them. */
function checkExamples(examples: readonly DocExample[]): string[] {
  const folder = join(ROOT, FOLDER);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const files = examples.map((_, index) => `example-${index}.ts`);
  for (const [index, file] of files.entries()) {
    writeFileSync(join(folder, file), completeExample(examples[index]!, FOLDER));
  }
  // Unused expressions and names are what examples are made of; the rest is as strict as the sources.
  const compilerOptions = { rootDir: '../../..' };
  const project = { extends: '../../../tsconfig.json', compilerOptions, files, include: [] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(project));
  // Faults of the sources themselves are the type check's, not the examples'.
  return checkFiles(folder, files).map(({ file, line, code, message }) => {
    const index = files.indexOf(file);
    const example = examples[index]!;
    const place =
      index === files.length - 1 ? `example ${line}` : `${example.path}:${example.line + line - 1}`;
    return `${place}: ${code} ${message}`;
  });
}
