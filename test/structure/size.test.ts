import { expect, test } from '@jest/globals';
import { readSource, sourceTree } from './source-tree.js';

const MOST_LINES_OF_A_FUNCTION = 60;
const MOST_PARAMETERS = 3;

/** Signatures that are public as they are, or that another package's contract fixes. */
const SIGNATURES_FROM_OUTSIDE: Readonly<Record<string, string>> = {
  'src/run/loop/stored-run.ts resumeStoredRun': 'config, where it is, answers, scope',
  'src/run/loop/run.ts resumeToolLoop': 'config, state, answers, scope',
  'src/run/loop/run.ts streamResumedToolLoop': 'as resumeToolLoop',
  'src/run/call/register-function.ts registerFunction': 'registry, name, description, params, fn',
  'src/run/call/tool-registry.ts executeWithContext': 'name, args, scope, callback',
  'src/tools/discovery/define-tool.ts execute': 'toolCallId, params, signal, onUpdate, context',
};

test('a function has at most 60 lines', () => {
  const long = sourceTree().flatMap(({ path, functions }) =>
    functions
      .filter(({ lines }) => lines > MOST_LINES_OF_A_FUNCTION)
      .map(({ name, line, lines }) => `${path}:${line} ${name}: ${lines}`),
  );
  expect(long).toEqual([]);
});

test('a function takes at most three positional parameters, the public signatures below excepted', () => {
  const wide = sourceTree().flatMap(({ path, functions }) =>
    functions
      // A tool's arguments are not positional to the model, which names them.
      .filter(
        ({ name, parameters, isTool }) =>
          parameters > MOST_PARAMETERS && !isTool && !isFromOutside(path, name),
      )
      .map(({ name, line, parameters }) => `${path}:${line} ${name}: ${parameters}`),
  );
  expect(wide).toEqual([]);
});

test('no exception to the parameter rule has outlived its function', () => {
  const wide = new Set(
    sourceTree().flatMap(({ path, functions }) =>
      functions.filter(({ parameters }) => parameters > MOST_PARAMETERS).map(({ name }) => `${path} ${name}`),
    ),
  );
  expect(Object.keys(SIGNATURES_FROM_OUTSIDE).filter((signature) => !wide.has(signature))).toEqual([]);
});

test('functions of every kind are measured, by their own lines and parameters', () => {
  const text = [
    'const arrow = (a, b) => {',
    '  return a;',
    '};',
    'class K { constructor(a) {}',
    '  #hidden(this: K, a, { b }, ...c) {} }',
    'interface I { method(a, b?): void }',
    'type F = (a: number) => void;',
  ].join('\n');
  const shapes = readSource('src/run/loop/x.ts', text).functions;
  expect(shapes.map(({ name, lines, parameters }) => [name, lines, parameters])).toEqual([
    ['arrow', 3, 2],
    ['constructor', 1, 1],
    ['hidden', 1, 3],
    ['method', 1, 2],
    ['F', 1, 1],
  ]);
});

test('a tool’s method is known by its decorator', () => {
  const text = "class K { @Tool('A') a() {}\n  @tools.Tool b() {}\n  @Other() c() {}\n  d() {} }";
  const tools = readSource('src/run/loop/x.ts', text).functions.filter(({ isTool }) => isTool);
  expect(tools.map(({ name }) => name)).toEqual(['a']);
});

function isFromOutside(path: string, name: string): boolean {
  return Object.hasOwn(SIGNATURES_FROM_OUTSIDE, `${path} ${name}`);
}
