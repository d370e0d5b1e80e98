import { describe, expect, test } from '@jest/globals';
import { entryPoints, publicNames } from './entry-points.js';
import { pathExists, readManifest, readText } from './repository.js';
import { sourceFiles } from './source-files.js';

// A plain string, because jest.config.js has no types.
const { default: jestConfig } = (await import('../../jest.config.js' as string)) as {
  default: { moduleNameMapper: Record<string, string> };
};
const MAPPER = Object.entries(jestConfig.moduleNameMapper);

describe('package.json exports', () => {
  test('every entry point is an index.ts that exists', () => {
    const missing = entryPoints().filter(({ path }) => !path.endsWith('/index.ts') || !pathExists(path));
    expect(missing).toEqual([]);
  });

  test('the entry points are decorators and every index.ts in src', () => {
    const indexes = sourceFiles()
      .map(({ path }) => path)
      .filter((path) => path.startsWith('src/') && path.endsWith('/index.ts') && path !== 'src/index.ts');
    const listed = entryPoints().map(({ path }) => path);
    expect(listed.sort()).toEqual(['decorators/index.ts', 'src/index.ts', ...indexes].sort());
  });

  test('a subpath ends with the name of its folder', () => {
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
  'the project in test/%s depends on all dependencies of this package',
  (folder) => {
    const { dependencies } = JSON.parse(readText(`test/${folder}/package.json`));
    expect(dependencies).toMatchObject(readManifest().dependencies ?? {});
  },
);

/** Matches the patterns of npm that `package.json` uses: a path, or `**` for any folders in between. */
function matches(pattern: string, path: string): boolean {
  const [before, after] = pattern.split('/**/');
  if (after === undefined) return path === pattern;
  return path.startsWith(`${before}/`) && path.endsWith(after.replace('*', ''));
}

describe('the public names', () => {
  test.each(entryPoints())('every export of $name has a declaration', (entryPoint) => {
    const undeclared = publicNames(entryPoint).filter(({ declarations }) => declarations.length === 0);
    expect(undeclared.map(({ name }) => name)).toEqual([]);
  });

  test.each(entryPoints())('every export of $name has a docstring', (entryPoint) => {
    const undocumented = publicNames(entryPoint).filter(
      ({ declarations }) => !declarations.every(({ documented }) => documented),
    );
    expect(undocumented.map(({ name, declarations }) => `${name} (${declarations[0]?.file.path})`)).toEqual(
      [],
    );
  });
});

/** The file that Jest maps a module name to, without `<rootDir>/`. */
function mapName(name: string): string {
  const [pattern, target] = MAPPER.find(([rule]) => new RegExp(rule).test(name)) ?? [name, name];
  return name.replace(new RegExp(pattern), target).replace('<rootDir>/', '');
}
