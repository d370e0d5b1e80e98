import { describe, expect, test } from '@jest/globals';
import { doors, publicNames } from './doors.js';
import { isThere, readManifest, readText } from './repository.js';
import { sourceTree } from './source-tree.js';

// The name is a plain string for the compiler: a configuration has no types.
const { default: jestConfig } = (await import('../../jest.config.js' as string)) as {
  default: { moduleNameMapper: Record<string, string> };
};
const MAPPER = Object.entries(jestConfig.moduleNameMapper);

describe('package.json exports', () => {
  test('every door is an index.ts that exists', () => {
    const missing = doors().filter(({ path }) => !path.endsWith('/index.ts') || !isThere(path));
    expect(missing).toEqual([]);
  });

  test('every leaf with an index.ts is a door, and no other folder but the root and decorators is', () => {
    const leaves = sourceTree()
      .map(({ path }) => path)
      .filter((path) => path.startsWith('src/') && path.endsWith('/index.ts') && path !== 'src/index.ts');
    const listed = doors().map(({ path }) => path);
    expect(listed.sort()).toEqual(['decorators/index.ts', 'src/index.ts', ...leaves].sort());
  });

  test('the subpath is the folder’s name', () => {
    const folders = doors().map(({ name, path }) => [name, path.split('/').at(-2)]);
    expect(
      folders.filter(([name, folder]) => name !== 'toolwright' && name?.split('/').at(-1) !== folder),
    ).toEqual([]);
  });

  test('the paths of tsconfig.json are the same doors', () => {
    const { compilerOptions } = JSON.parse(readText('tsconfig.json')) as {
      compilerOptions: { paths: Record<string, string[]> };
    };
    expect(compilerOptions.paths).toEqual(
      Object.fromEntries(doors().map(({ name, path }) => [name, [`./${path}`]])),
    );
  });

  test('the typesVersions for compilers that know no exports are the same doors', () => {
    const { typesVersions } = readManifest();
    const built = (path: string) => `./dist/${path.replace(/\.ts$/, '.d.ts')}`;
    const subpaths = doors().filter(({ name }) => name !== 'toolwright');
    expect(typesVersions).toEqual({
      '*': Object.fromEntries(
        subpaths.map(({ name, path }) => [name.replace('toolwright/', ''), [built(path)]]),
      ),
    });
  });

  test('jest.config.js maps every door to the same file', () => {
    const mapped = doors().map(({ name }) => ({ name, path: mapName(name) }));
    expect(mapped).toEqual(doors());
  });

  test('the packed files contain every door', () => {
    const { files } = readManifest();
    const outside = doors().filter(
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
  test.each(doors())('every name of $name leads to a declaration', (door) => {
    const lost = publicNames(door).filter(({ declarations }) => declarations.length === 0);
    expect(lost.map(({ name }) => name)).toEqual([]);
  });

  test.each(doors())('every name of $name has a docstring', (door) => {
    const bare = publicNames(door).filter(
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
