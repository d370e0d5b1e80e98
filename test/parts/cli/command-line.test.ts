import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { builtFile } from '../../processes/built-file.js';
import { runNode } from '../../processes/run-node.js';
import { ROOT, readManifest, readText } from '../../structure/repository.js';
import { runCommand } from './run-command.js';

const FIXTURES = join(import.meta.dirname, 'fixtures');

describe('toolwright', () => {
  test.each(['--version', '-v'])('%s prints the version of the package', (flag) => {
    const { version } = readManifest() as unknown as { version: string };
    const run = runNode([builtFile('dist/src/dev/cli/main.js'), flag], { folder: ROOT });
    expect(run).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: '' });
  });

  test('results are not mixed with what a module or a tool prints', () => {
    const program = builtFile('dist/src/dev/cli/main.js');
    const run = (...args: string[]) => runNode([program, ...args], { folder: FIXTURES });
    const called = run('call', 'printing-tools.mjs', 'noisy', '--json');
    expect(JSON.parse(called.stdout)).toMatchObject({ status: 'success', forLLM: 'quiet' });
    expect(called.stderr).toBe('The module prints.\nThe tool prints.\n');
    expect(JSON.parse(run('list', 'printing-tools.mjs', '--schema').stdout)).toHaveLength(1);
  });

  test('--help lists every command, and a command’s --help prints its line', async () => {
    const { out } = await runCommand(['--help'], ROOT);
    const names = [...out.matchAll(/^ {2}toolwright (\w+)/gm)].map(([, name = '']) => name);
    expect(names).toEqual(expect.arrayContaining(['call', 'dev', 'generate', 'init', 'list']));
    const page = readText('docs/reference/command-line.md');
    for (const name of names) {
      expect(page).toMatch(new RegExp(`^\\| \`${name}\\b`, 'm'));
      const own = await runCommand([name, '--help'], ROOT);
      expect(own).toMatchObject({ code: 0, error: '' });
      expect(own.out.startsWith(`toolwright ${name}`)).toBe(true);
    }
  });

  test('help with the name of a command prints the help of the command', async () => {
    expect(await runCommand(['help', 'list'], ROOT)).toEqual(await runCommand(['list', '--help'], ROOT));
    expect(await runCommand(['help'], ROOT)).toEqual(await runCommand(['--help'], ROOT));
  });

  test.each([
    [['help', 'lst'], "there is no command 'lst' (did you mean list?)"],
    [['nothing'], "there is no command 'nothing'"],
    [['lst'], "there is no command 'lst' (did you mean list?); toolwright --help lists the commands"],
    [['inspect', 'x.js', '--prot', '1'], "Unknown option '--prot' (did you mean --port?)"],
    [['list', 'x.js', '--schemas'], "Unknown option '--schemas' (did you mean --schema?)"],
    [['runs', '--on-unknwon', 'ask'], "Unknown option '--on-unknwon' (did you mean --on-unknown?)"],
    [['--hepl'], "Unknown option '--hepl' (did you mean --help?)"],
    [['dev', 'x.js', '--prot', '1'], "Unknown option '--prot' (did you mean --port?)"],
    [['dev', 'x.js', '--port', '65536'], "--port must be a number from 0 to 65535, not '65536'"],
    [['constructor'], "there is no command 'constructor'"],
    [['--nothing'], "Unknown option '--nothing': toolwright --help"],
    [['generate', '--nothing'], "Unknown option '--nothing': toolwright generate [--project"],
    [['list', 'x.js', '--strict', '--schema'], 'use --strict or --schema, not both'],
    [['list', '--nothing'], "Unknown option '--nothing': toolwright list <module>"],
    [['generate', 'positional'], 'positional'],
    [['generate', '--check', '--watch'], 'use --check or --watch, not both'],
    [['generate', '--out', 'x.js'], '--out x.js is not a TypeScript file'],
    [['generate', '--import-ending', '.mjs'], "--import-ending must be js, ts or none, not '.mjs'"],
    [['generate', '--project', 'nowhere/tsconfig.json'], 'does not exist; set --project'],
    [['list'], 'list takes one module'],
  ])('%p is reported in one line with exit code 2', async (args, message) => {
    const { code, out, error } = await runCommand(args, FIXTURES);
    expect(error).toContain(message);
    expect(error).toMatch(/^toolwright: [^\n]+\n$/);
    expect({ code, out }).toEqual({ code: 2, out: '' });
  });

  test('without a command prints the help with exit code 2', async () => {
    const { code, error } = await runCommand([], ROOT);
    expect(code).toBe(2);
    expect(error).toContain('Usage:');
  });
});

describe('toolwright list', () => {
  test('shows where each tool’s schema comes from, and its size', async () => {
    const { code, out, error } = await runCommand(['list', 'listed-tools.ts'], FIXTURES);
    expect(code).toBe(0);
    expect(error).toContain('ListedTools.gone: it is described by a generated file, but is not a tool');
    const rows = out.split('\n').map((line) => line.split(/\s{2,}/));
    expect(rows.slice(1, 6).map(([tool, method, origin]) => [tool, method, origin])).toEqual([
      ['generated', 'ListedTools.generated', 'generated'],
      ['emitted', 'ListedTools.emitted', 'metadata'],
      ['said', 'ListedTools.said', '@Param, metadata'],
      ['explicit', 'ListedTools.explicit', 'explicit'],
      ['empty', 'ListedTools.empty', 'no parameters'],
    ]);
    const sizes = rows.slice(1, 7).map((row) => Number(row.at(-2)));
    expect(sizes[5]).toBe(sizes.slice(0, 5).reduce((sum, size) => sum + size, 0));
    expect(Number(rows[1]?.at(-1))).toBe(Math.ceil((sizes[0] ?? 0) / 4));
  });

  // In a process of its own, because the command also lists toolsets that this process has loaded.
  test.each([
    ['nothing.js', 'there is no module nothing.js'],
    [
      'jest.config.js',
      'jest.config.js exports no ToolRegistry, no toolset class, no tool and no NestJS module',
    ],
  ])('%s is reported in one line with exit code 1', (module, message) => {
    const run = runNode([builtFile('dist/src/dev/cli/main.js'), 'list', module], { folder: ROOT });
    expect(run).toEqual({ exitCode: 1, stdout: '', stderr: `toolwright: ${message}\n` });
  });
});
