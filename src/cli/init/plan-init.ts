import { addPlugin, addSetting, type CodeAddition } from './add-plugin.js';
import type { FoundProject } from './read-project.js';
import { addEntry, setValue } from './set-value.js';
import { readJson, valueAt } from './value-at.js';

/** A file of the project, before and after. */
export interface FileEdit {
  /** Relative to the project's folder. */
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

/** What is to be done: files that can be changed safely, and words about what cannot. */
export interface InitPlan {
  readonly edits: readonly FileEdit[];
  readonly notes: readonly string[];
}

/** The project on the way to its plan. */
interface Draft extends Omit<FoundProject, 'files'> {
  readonly files: Map<string, string>;
  readonly notes: string[];
}

const NEST = 'nest-cli.json';

/** What a project needs so that nobody has to generate by hand; nothing that it has already. */
export function planInit(project: FoundProject): InitPlan {
  const draft: Draft = { ...project, files: new Map(project.files), notes: [] };
  if (!project.experimentalDecorators)
    change(draft, project.tsconfig, (text) =>
      setValue(text, ['compilerOptions', 'experimentalDecorators'], true),
    );
  change(draft, NEST, (text) => nestPlugin(text, draft));
  const bundlers = [...draft.files.keys()].filter((path) => bundlerOf(path) !== undefined);
  for (const path of bundlers) planBundler(draft, path);
  planJest(draft);
  if (bundlers.length === 0 && !draft.files.has(NEST))
    change(draft, 'package.json', (text) => buildScript(text, draft));
  const edits = [...draft.files]
    .map(([path, after]) => ({ path, before: project.files.get(path) ?? '', after }))
    .filter(({ before, after }) => before !== after);
  return { edits, notes: draft.notes };
}

function change({ files }: Draft, path: string, edit: (text: string) => string): void {
  const text = files.get(path);
  if (text !== undefined) files.set(path, edit(text));
}

function nestPlugin(text: string, { files }: Draft): string {
  const plugins = valueAt(readJson(text), ['compilerOptions', 'plugins']);
  const names = Array.isArray(plugins) ? plugins.map((one) => valueAt(one, ['name']) ?? one) : [];
  const added = names.includes('toolwright')
    ? text
    : addEntry(text, ['compilerOptions', 'plugins'], 'toolwright');
  const builder = valueAt(readJson(text), ['compilerOptions', 'builder']);
  const scripts = files.get('package.json') ?? '';
  const isSwc =
    [builder, valueAt(builder, ['type'])].includes('swc') ||
    /\bnest [^"]*(-b|--builder)[ =]swc\b/.test(scripts);
  // Only together with its type checker does the CLI ask plugins before swc runs.
  const hasChecker = valueAt(readJson(text), ['compilerOptions', 'typeCheck']) === true;
  return isSwc && !hasChecker ? setValue(added, ['compilerOptions', 'typeCheck'], true) : added;
}

/** The names under which `toolwright/plugin` has a plugin for each. */
const BUNDLERS: Readonly<Record<string, string>> = {
  vite: 'vite',
  vitest: 'vite',
  webpack: 'webpack',
  rspack: 'rspack',
  rollup: 'rollup',
  rolldown: 'rolldown',
  tsdown: 'rolldown',
};

function bundlerOf(path: string): string | undefined {
  const [, name = ''] = /^(\w+)\.config\.[cm]?[jt]s$/.exec(path) ?? [];
  return Object.hasOwn(BUNDLERS, name) ? BUNDLERS[name] : undefined;
}

function planBundler(draft: Draft, path: string): void {
  const { files, notes, tsconfig } = draft;
  const text = files.get(path) ?? '';
  const name = bundlerOf(path) ?? '';
  const call = tsconfig === 'tsconfig.json' ? 'toolwright()' : `toolwright({ project: '${tsconfig}' })`;
  const addition: CodeAddition = { name, from: 'toolwright/plugin', call };
  const after = text.includes(addition.from) ? text : addPlugin(text, addition);
  if (after !== undefined) files.set(path, after);
  else
    notes.push(
      `${path} has no one place for it; write there:\n\n  import { ${name} as toolwright } from 'toolwright/plugin';\n  plugins: [${call}]`,
    );
}

const SETUP = 'toolwright/jest';

function planJest(draft: Draft): void {
  const { files, notes } = draft;
  const inManifest = valueAt(readJson(files.get('package.json') ?? ''), ['jest']) !== undefined;
  const path = inManifest
    ? 'package.json'
    : [...files.keys()].find((name) => name.startsWith('jest.config.'));
  if (path === undefined) return;
  const text = files.get(path) ?? '';
  if (text.includes(SETUP)) return;
  const key = inManifest ? ['jest', 'globalSetup'] : ['globalSetup'];
  const isTaken = /\bglobalSetup\b/.test(text);
  const after = isTaken
    ? undefined
    : path.endsWith('.json')
      ? setValue(text, key, SETUP)
      : addSetting(text, `globalSetup: '${SETUP}',`);
  if (after !== undefined) files.set(path, after);
  else
    notes.push(
      `${path} has a globalSetup, or no one place for it; run before its own: import setup from '${SETUP}'`,
    );
}

function buildScript(text: string, { notes, tsconfig }: Draft): string {
  const command = `toolwright generate${tsconfig === 'tsconfig.json' ? '' : ` --project ${tsconfig}`}`;
  const scripts = valueAt(readJson(text), ['scripts']);
  const [build, before] = ['build', 'prebuild'].map((name) => valueAt(scripts, [name]));
  if ([build, before].some((script) => String(script ?? '').includes('toolwright generate'))) return text;
  if (typeof build !== 'string') {
    notes.push(`package.json has no build script; before the compiler runs: npx ${command}`);
    return text;
  }
  const script = typeof before === 'string' && before !== '' ? `${command} && ${before}` : command;
  notes.push(`While the compiler watches, this has to run beside it: npx ${command} --watch`);
  return setValue(text, ['scripts', 'prebuild'], script);
}
