import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Generated, generate } from '../../../src/dev/typegen/generate.js';
import { ROOT } from '../../structure/repository.js';
import { compilerOf } from './compilers.js';

/** A project of a few files in a folder of its own. */
export interface SmallProject extends Disposable {
  readonly folder: string;
  write(path: string, text: string): void;
  /** Makes a folder of the project stand at another place of it too, as package managers do. */
  link(path: string, target: string): void;
}

/** For what stands in declarations of the platform: `URL`, `AbortSignal`. Reading them takes longer than all else. */
export const WITH_PLATFORM = { lib: ['ES2023', 'DOM'] };

/** Writes a project with the packages of the repository; `toolwright` is its declaring side. */
export function smallProject(files: Readonly<Record<string, string>>, options: object = {}): SmallProject {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'toolwright-project-')));
  const door = join(ROOT, 'test/parts/typegen/fixtures/toolwright.ts');
  const compilerOptions = {
    target: 'ES2023',
    lib: ['ES2023'],
    module: 'NodeNext',
    strict: true,
    noEmit: true,
    experimentalDecorators: true,
    types: [],
    skipLibCheck: true,
    paths: { toolwright: [door], 'toolwright/decorators': [door] },
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

/** The packages of the repository, but for the compiler. */
export function withTypeScript({ folder }: SmallProject, compiler: string): void {
  const modules = join(folder, 'node_modules');
  rmSync(modules);
  mkdirSync(modules);
  symlinkSync(join(ROOT, 'node_modules', '@types'), join(modules, '@types'), 'junction');
  symlinkSync(compiler, join(modules, 'typescript'), 'junction');
}

/** What is generated for files of a project, with TypeScript 7. */
export async function generateFrom(files: Readonly<Record<string, string>>): Promise<Generated> {
  using project = smallProject(files, WITH_PLATFORM);
  const view = (await compilerOf('7.0')).open(join(project.folder, 'tsconfig.json'));
  return generate({ view, folder: project.folder });
}

/** What is generated for one toolset: the members of its class, and declarations before it. */
export function generateTool(
  members: string,
  before = '',
  files: Readonly<Record<string, string>> = {},
): Promise<Generated> {
  const text = `import { Args, Context, Param, Tool, ToolContext } from 'toolwright';\n${before}\nexport class Tools {\n${members}\n}\n`;
  return generateFrom({ ...files, 'src/tools.ts': text });
}
