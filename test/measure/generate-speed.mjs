// Measures `toolwright generate` for 1,000 tool methods with each installed version of TypeScript.
// npm run measure:generate -- [methods]
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

const METHODS = Number(process.argv[2] ?? 1000);
const PER_CLASS = 10;

const folder = mkdtempSync(join(tmpdir(), 'toolwright-speed-'));
try {
  writeProject();
  console.log(`${METHODS} tool methods`);
  for (const name of ['typescript-7.1', 'typescript', 'typescript-6.0', 'typescript-5.9']) measure(name);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Measures the whole command in a project that uses this compiler. */
function measure(name) {
  const compiler = join(root, 'node_modules', name);
  const linked = join(folder, 'node_modules', 'typescript');
  const generated = join(folder, 'src', 'toolwright.gen.ts');
  rmSync(linked, { force: true });
  rmSync(generated, { force: true });
  symlinkSync(compiler, linked, 'junction');
  const start = performance.now();
  const { status, stderr } = spawnSync(
    process.execPath,
    [join(root, 'dist', 'src', 'dev', 'cli', 'main.js'), 'generate'],
    { cwd: folder, encoding: 'utf8' },
  );
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  if (status !== 0) throw new Error(stderr);
  const { version } = JSON.parse(readFileSync(join(compiler, 'package.json'), 'utf8'));
  console.log(`TypeScript ${version}: ${seconds} s (${Math.round(statSync(generated).size / 1024)} KB)`);
}

/** The methods resemble those of applications: scalars, unions, a nested object, a shared interface, a result. */
function writeProject() {
  mkdirSync(join(folder, 'src'));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(join(root, 'node_modules', '@types'), join(folder, 'node_modules', '@types'), 'junction');
  const compilerOptions = {
    target: 'ES2023',
    module: 'NodeNext',
    strict: true,
    experimentalDecorators: true,
    types: ['node'],
    skipLibCheck: true,
    paths: { toolwright: [join(root, 'dist/src/index.d.ts')] },
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }));
  writeFileSync(
    join(folder, 'src', 'types.ts'),
    `/** State of a record. */
export type State = 'open' | 'paid' | 'closed';
export interface Line { sku: string; /** How many. @minimum 1 */ quantity: number; due?: Date }
export interface Entry { id: string; state: State; lines: Line[]; parent?: Entry }
export interface Page<Item> { items: Item[]; next?: string | null }
`,
  );
  for (let index = 0; index < METHODS / PER_CLASS; index++) {
    writeFileSync(join(folder, 'src', `tools-${index}.ts`), toolset(index));
  }
}

function toolset(index) {
  const methods = Array.from(
    { length: PER_CLASS },
    (_, method) => `
  /**
   * Find entries of kind ${method}.
   * @param id Which one
   * @param state Only in this state
   */
  @Tool()
  async find${method}(id: string, state?: State, page: { size: number; after?: string } = { size: 20 },
    filter?: { from: Date; to?: Date; tags: readonly string[] }, limit = 10, lines: Line[] = []): Promise<Page<Entry>> {
    throw new Error(String([id, state, page, filter, limit, lines]));
  }`,
  );
  return `import { Tool, Toolset } from 'toolwright';
import type { Entry, Line, Page, State } from './types.js';
@Toolset({ prefix: 't${index}' })
export class Tools${index} {${methods.join('\n')}
}
`;
}
