import { bunExecutable, esbuildFile, viteBuild, viteServer, webpackBuild } from './bundles.mjs';
import { tsJest } from './jest.mjs';
import { BIN, node, run } from './processes.mjs';
import { worker } from './worker.mjs';

/** Bun may run CommonJS modules such as tsyringe before earlier imports. */
const PRELOAD = '`--preload reflect-metadata`';

/** The runtimes and bundlers that run the toolset. The results of the first row are the expected results. */
export const ROWS = [
  {
    name: 'Node.js, ESM',
    command: '`node main.js`',
    run: ({ project }) => node(project, ['esm/main.js']),
  },
  {
    name: 'Node.js, CommonJS',
    command: '`node main.cjs`, with `require`',
    run: ({ project }) => node(project, ['cjs/main.js']),
  },
  {
    name: 'Node.js without code generation',
    command: '`node --disallow-code-generation-from-strings main.js`',
    run: ({ project }) => node(project, ['--disallow-code-generation-from-strings', 'esm/main.js']),
  },
  {
    name: 'Jest with ts-jest, CommonJS',
    command: '`jest`',
    setting: "`transformIgnorePatterns: ['node_modules/(?!toolwright/)']`",
    run: tsJest,
  },
  {
    name: 'esbuild, one ESM file',
    command: '`esbuild main.js --bundle --platform=node --format=esm --outfile=main.mjs`',
    run: (folders) => esbuildFile(folders, { format: 'esm', file: 'main.mjs' }),
  },
  {
    name: 'esbuild, one CommonJS file',
    command: '`esbuild main.js --bundle --platform=node --format=cjs --outfile=main.cjs`',
    run: (folders) => esbuildFile(folders, { format: 'cjs', file: 'main.cjs' }),
  },
  { name: 'Vite, SSR in development', command: '`server.ssrLoadModule()`', run: viteServer },
  {
    name: 'Vite, SSR build',
    command: '`vite build --ssr main.js`, `ssr: { noExternal: true }`',
    run: viteBuild,
  },
  { name: 'webpack', command: "`target: 'node'`, no externals", run: webpackBuild },
  {
    name: 'Bun',
    command: '`bun main.js`',
    setting: PRELOAD,
    run: ({ project }) => run(project, `${BIN}bun`, ['--preload', 'reflect-metadata', 'esm/main.js']),
  },
  {
    name: 'Bun, from TypeScript',
    command: '`bun main.ts`',
    setting: PRELOAD,
    run: ({ project }) => run(project, `${BIN}bun`, ['--preload', 'reflect-metadata', 'src/main.ts']),
  },
  { name: 'Bun, one executable', command: '`bun build --compile main.js`', run: bunExecutable },
  {
    name: 'Deno',
    command: '`deno run --allow-read --allow-env main.js`',
    run: ({ project }) => run(project, `${BIN}deno`, ['run', '--allow-read', '--allow-env', 'esm/main.js']),
  },
  {
    name: 'Cloudflare Workers',
    command: '`esbuild worker.js --bundle --format=esm`, then workerd',
    setting: '`nodejs_compat`',
    run: worker,
  },
];
