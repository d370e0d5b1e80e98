import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { type Installation, installBuilt } from '../packed/installation.js';
import { NodeProcess } from '../processes/node-process.js';
import { outputOfNode } from '../processes/run-node.js';
import { ROOT } from '../structure/repository.js';

/** The templates with a server, and the file that `npm start` runs. */
const PROGRAMS = { chat: 'server/main.ts', mcp: 'src/http.ts', nest: 'dist/main.js' } as const;

export type TemplateName = keyof typeof PROGRAMS;

/**
 * A project from a template, with the built package and the packages of the repository; or the installed and built
 * project in `TOOLWRIGHT_TEST_PROJECT`.
 */
export class TemplateProject implements Disposable {
  readonly folder: string;
  readonly #template: TemplateName;
  readonly #installation: Installation | undefined;

  constructor(template: TemplateName) {
    this.#template = template;
    const existing = process.env.TOOLWRIGHT_TEST_PROJECT;
    this.#installation = existing ? undefined : installBuilt();
    this.folder = existing || join(String(this.#installation?.folder), `my-${template}`);
    if (existing) return;
    const create = join(ROOT, 'create/index.mjs');
    outputOfNode([create, this.folder, '--template', template], { folder: ROOT });
  }

  /** The build step of `npm start`, without Vite and the Nest CLI, which the repository does not install. */
  async build(): Promise<void> {
    if (this.#installation === undefined) return;
    if (this.#template === 'chat') return this.#buildPage();
    this.toolwright(['generate']);
    if (this.#template !== 'nest') return;
    const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
    outputOfNode([compiler, '--project', '.'], { folder: this.folder });
  }

  /** The output of `npx toolwright …`. */
  toolwright(args: readonly string[]): string {
    const unpacked = this.#installation?.unpacked ?? join(this.folder, 'node_modules/toolwright');
    return outputOfNode([join(unpacked, 'dist/src/dev/cli/main.js'), ...args], { folder: this.folder });
  }

  async #buildPage(): Promise<void> {
    const outdir = join(this.folder, 'dist');
    await build({
      entryPoints: [join(this.folder, 'web/main.tsx')],
      outdir,
      bundle: true,
      format: 'esm',
      jsx: 'automatic',
      target: 'es2024',
      define: { 'process.env.NODE_ENV': '"production"' },
    });
    const page = readFileSync(join(this.folder, 'web/index.html'), 'utf8');
    const built = page
      .replace('</head>', '<link rel="stylesheet" href="./main.css" /></head>')
      .replace('./main.tsx', './main.js');
    writeFileSync(join(outdir, 'index.html'), built);
  }

  /** Starts the program of `npm start`. */
  start(environment: Readonly<Record<string, string>>): NodeProcess {
    const program = PROGRAMS[this.#template];
    const loader = program.endsWith('.ts') ? ['--import', 'tsx'] : [];
    return new NodeProcess([...loader, program], { folder: this.folder, environment });
  }

  [Symbol.dispose](): void {
    this.#installation?.remove();
  }
}
