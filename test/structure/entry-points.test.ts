import { describe, expect, test } from '@jest/globals';
import { entryPoints, publicNames } from './entry-points.js';
import { isThere, readManifest, readText } from './repository.js';
import { sourceTree } from './source-tree.js';

// The name is a plain string for the compiler: a configuration has no types.
const { default: jestConfig } = (await import('../../jest.config.js' as string)) as {
  default: { moduleNameMapper: Record<string, string> };
};
const MAPPER = Object.entries(jestConfig.moduleNameMapper);

describe('package.json exports', () => {
  test('every entry point is an index.ts that exists', () => {
    const missing = entryPoints().filter(({ path }) => !path.endsWith('/index.ts') || !isThere(path));
    expect(missing).toEqual([]);
  });

  test('every index.ts of src and decorators is an entry point', () => {
    const leaves = sourceTree()
      .map(({ path }) => path)
      .filter((path) => path.startsWith('src/') && path.endsWith('/index.ts') && path !== 'src/index.ts');
    const listed = entryPoints().map(({ path }) => path);
    expect(listed.sort()).toEqual(['decorators/index.ts', 'src/index.ts', ...leaves].sort());
  });

  test('the subpath is the folder’s name', () => {
    const folders = entryPoints().map(({ name, path }) => [name, path.split('/').at(-2)]);
    expect(
      folders.filter(([name, folder]) => name !== 'toolwright' && name?.split('/').at(-1) !== folder),
    ).toEqual([]);
  });

  test('tsconfig.json maps the same entry points', () => {
    const { compilerOptions } = JSON.parse(readText('tsconfig.json')) as {
      compilerOptions: { paths: Record<string, string[]> };
    };
    expect(compilerOptions.paths).toEqual(
      Object.fromEntries(entryPoints().map(({ name, path }) => [name, [`./${path}`]])),
    );
  });

  test('typesVersions, for older module resolution, lists the same entry points', () => {
    const { typesVersions } = readManifest();
    const built = (path: string) => `./dist/${path.replace(/\.ts$/, '.d.ts')}`;
    const subpaths = entryPoints().filter(({ name }) => name !== 'toolwright');
    expect(typesVersions).toEqual({
      '*': Object.fromEntries(
        subpaths.map(({ name, path }) => [name.replace('toolwright/', ''), [built(path)]]),
      ),
    });
  });

  test('jest.config.js maps every entry point to the same file', () => {
    const mapped = entryPoints().map(({ name }) => ({ name, path: mapName(name) }));
    expect(mapped).toEqual(entryPoints());
  });

  test('the packed files contain every entry point', () => {
    const { files } = readManifest();
    const outside = entryPoints().filter(
      ({ path }) => !files.some((pattern) => matches(pattern, `dist/${path.replace(/\.ts$/, '.js')}`)),
    );
    expect(outside).toEqual([]);
  });
});

test.each(['nest-new/11', 'nest-new/12', 'next/project'])(
  'the project of test/%s locks every package that this one brings',
  (folder) => {
    const { dependencies } = JSON.parse(readText(`test/${folder}/package.json`));
    expect(dependencies).toMatchObject(readManifest().dependencies ?? {});
  },
);

/** npm's patterns, as far as the manifest uses them: a path, or `**` for any folders in between. */
function matches(pattern: string, path: string): boolean {
  const [before, after] = pattern.split('/**/');
  if (after === undefined) return path === pattern;
  return path.startsWith(`${before}/`) && path.endsWith(after.replace('*', ''));
}

describe('the public names', () => {
  test.each(entryPoints())('every name of $name leads to a declaration', (entryPoint) => {
    const lost = publicNames(entryPoint).filter(({ declarations }) => declarations.length === 0);
    expect(lost.map(({ name }) => name)).toEqual([]);
  });

  test.each(entryPoints())('every name of $name has a docstring', (entryPoint) => {
    const bare = publicNames(entryPoint).filter(
      ({ declarations }) => !declarations.every(({ documented }) => documented),
    );
    expect(bare.map(({ name, declarations }) => `${name} (${declarations[0]?.file.path})`)).toEqual([]);
  });
});

/** What Jest makes of a module's name, without its `<rootDir>/`. */
function mapName(name: string): string {
  const [pattern, target] = MAPPER.find(([rule]) => new RegExp(rule).test(name)) ?? [name, name];
  return name.replace(new RegExp(pattern), target).replace('<rootDir>/', '');
}
