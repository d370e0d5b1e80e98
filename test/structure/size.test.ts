import { expect, test } from '@jest/globals';
import { readSource, sourceFiles } from './source-files.js';

const MAX_LINES = 60;
const MAX_PARAMETERS = 3;

/** Public signatures, and signatures that the contract of another package requires. */
const FIXED_SIGNATURES: Readonly<Record<string, string>> = {
  'src/run/loop/stored-run.ts resumeStoredRun': 'config, stored run, answers, scope',
  'src/run/loop/run.ts resumeToolLoop': 'config, state, answers, scope',
  'src/run/loop/run.ts streamResumedToolLoop': 'like resumeToolLoop',
  'src/run/call/register-function.ts registerFunction': 'registry, name, description, params, fn',
  'src/run/call/tool-registry.ts executeWithContext': 'name, args, scope, callback',
  'src/tools/discovery/define-tool.ts execute': 'toolCallId, params, signal, onUpdate, context',
};

test('a function has at most 60 lines', () => {
  const long = sourceFiles().flatMap(({ path, functions }) =>
    functions
      .filter(({ lines }) => lines > MAX_LINES)
      .map(({ name, line, lines }) => `${path}:${line} ${name}: ${lines}`),
  );
  expect(long).toEqual([]);
});

test('a function has at most three positional parameters, except for fixed signatures', () => {
  const wide = sourceFiles().flatMap(({ path, functions }) =>
    functions
      // A model passes the arguments of a tool by name.
      .filter(
        ({ name, parameters, isTool }) => parameters > MAX_PARAMETERS && !isTool && !isFixed(path, name),
      )
      .map(({ name, line, parameters }) => `${path}:${line} ${name}: ${parameters}`),
  );
  expect(wide).toEqual([]);
});

test('every fixed signature still exists and has more than three parameters', () => {
  const wide = new Set(
    sourceFiles().flatMap(({ path, functions }) =>
      functions.filter(({ parameters }) => parameters > MAX_PARAMETERS).map(({ name }) => `${path} ${name}`),
    ),
  );
  expect(Object.keys(FIXED_SIGNATURES).filter((signature) => !wide.has(signature))).toEqual([]);
});

test('functionsOf measures every kind of function', () => {
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

test('functionsOf recognizes tools by their decorator', () => {
  const text = "class K { @Tool('A') a() {}\n  @tools.Tool b() {}\n  @Other() c() {}\n  d() {} }";
  const tools = readSource('src/run/loop/x.ts', text).functions.filter(({ isTool }) => isTool);
  expect(tools.map(({ name }) => name)).toEqual(['a']);
});

function isFixed(path: string, name: string): boolean {
  return Object.hasOwn(FIXED_SIGNATURES, `${path} ${name}`);
}
