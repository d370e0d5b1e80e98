import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Generated, generate } from '../../../src/dev/typegen/generate.js';
import { ROOT } from '../../structure/repository.js';
import { compilerOf } from './compilers.js';

/** A small project in a temporary folder. */
export interface SmallProject extends Disposable {
  readonly folder: string;
  write(path: string, text: string): void;
  /** Links a folder of the project to another path, as package managers do. */
  link(path: string, target: string): void;
}

/** Adds the types of the platform such as `URL` and `AbortSignal`. Loading them is slow. */
export const WITH_PLATFORM = { lib: ['ES2023', 'DOM'] };

/** Writes a project with the packages of the repository; `toolwright` contains only the decorators. */
export function smallProject(files: Readonly<Record<string, string>>, options: object = {}): SmallProject {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'toolwright-project-')));
  const entryPoint = join(ROOT, 'test/parts/typegen/fixtures/toolwright.ts');
  const compilerOptions = {
    target: 'ES2023',
    lib: ['ES2023'],
    module: 'NodeNext',
    strict: true,
    noEmit: true,
    experimentalDecorators: true,
    types: [],
    skipLibCheck: true,
    paths: { toolwright: [entryPoint], 'toolwright/decorators': [entryPoint] },
    ...options,
  };
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
  write('package.json', JSON.stringify({ name: 'small', type: 'module' }));
  write('tsconfig.json', JSON.stringify({ compilerOptions, include: ['src'] }));
  for (const [path, text] of Object.entries(files)) write(path, text);
  const link = (path: string, target: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    symlinkSync(join(folder, target), join(folder, path), 'junction');
  };
  return { folder, write, link, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Replaces the packages of the repository by `@types` and this compiler. */
export function withTypeScript({ folder }: SmallProject, compiler: string): void {
  const modules = join(folder, 'node_modules');
  rmSync(modules);
  mkdirSync(modules);
  symlinkSync(join(ROOT, 'node_modules', '@types'), join(modules, '@types'), 'junction');
  symlinkSync(compiler, join(modules, 'typescript'), 'junction');
}

/** Generates the file for a project, with TypeScript 7. */
export async function generateFrom(files: Readonly<Record<string, string>>): Promise<Generated> {
  using project = smallProject(files, WITH_PLATFORM);
  const view = (await compilerOf('7.0')).open(join(project.folder, 'tsconfig.json'));
  return generate({ view, folder: project.folder });
}

/** Generates the file for one toolset with these class members and preceding declarations. */
export function generateTool(
  members: string,
  before = '',
  files: Readonly<Record<string, string>> = {},
): Promise<Generated> {
  const text = `import { Args, Context, Param, Tool, ToolContext } from 'toolwright';\n${before}\nexport class Tools {\n${members}\n}\n`;
  return generateFrom({ ...files, 'src/tools.ts': text });
}
