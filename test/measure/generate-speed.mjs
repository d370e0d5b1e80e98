// How long `toolwright generate` takes for 1,000 tool methods, with each compiler that is installed here.
// npm run measure:generate -- [methods]
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const require = createRequire(import.meta.url);
const { generate } = await import('../../dist/src/typegen/generate.js');
const { loadCompiler } = await import('../../dist/src/typegen/compiler/load-compiler.js');
const { classicCompiler } = await import('../../dist/src/typegen/compiler/classic-compiler.js');

const METHODS = Number(process.argv[2] ?? 1000);
const PER_CLASS = 10;

const folder = mkdtempSync(join(tmpdir(), 'toolwright-speed-'));
try {
  writeProject();
  console.log(`${METHODS} tool methods`);
  const native = await loadCompiler(root);
  if (!native.ok) throw new Error(native.problem);
  measure(native.compiler);
  for (const version of ['6.0', '5.9']) measure(classicCompiler(require(`typescript-${version}`)));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function measure(compiler) {
  const start = performance.now();
  const view = compiler.open(join(folder, 'tsconfig.json'));
  const opened = performance.now();
  const { tools, text } = generate({ view, folder });
  const generated = performance.now();
  compiler.close();
  const seconds = (from, to) => `${((to - from) / 1000).toFixed(1)} s`;
  console.log(
    `TypeScript ${view.version}: ${seconds(start, generated)} (opening ${seconds(start, opened)}, ` +
      `describing ${seconds(opened, generated)}; ${tools} tools, ${Math.round(text.length / 1024)} KB)`,
  );
}

/** Methods as they are in applications: scalars, unions, a nested object, a shared interface, a result. */
function writeProject() {
  mkdirSync(join(folder, 'src'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
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
