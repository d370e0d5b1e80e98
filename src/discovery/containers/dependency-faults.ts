import type { ClassType } from '../../contract/declaration.js';
import type { AuthorFault } from '../../errors/author-fault.js';
import { type ConstructorParameter } from './constructor-parameters.js';
import { isLostType } from './providers.js';

/** Something wrong in what a class depends on. */
export type DependencyFault = Omit<AuthorFault, 'where' | 'parameter'>;

/** A class needs arguments, and no metadata says which. */
export function unknownConstructor(target: ClassType): DependencyFault {
  const unknowns = Array.from({ length: target.length }, () => '?').join(', ');
  return {
    problem: `${target.name}(${unknowns}) needs arguments, but nothing says which`,
    causes: [
      'the class has no decorator',
      'the build tool emits no decorator metadata (esbuild, tsx): run `npx toolwright generate` and import the file that it writes',
    ],
    fix: `@injectable() before class ${target.name}, @inject(…) on every parameter, or a provider for it in the container`,
  };
}

/** Nothing provides a constructor's parameter; the `?` shows which. */
export function missingProvider(of: {
  readonly class: ClassType;
  readonly parameters: readonly ConstructorParameter[];
  readonly index: number;
  readonly path: readonly string[];
}): DependencyFault {
  const token = of.parameters[of.index]?.token;
  const signature = of.parameters.map((parameter, index) =>
    index === of.index ? '?' : nameOf(parameter.token),
  );
  const via = of.path.length > 1 ? ` (${of.path.join(' → ')})` : '';
  const problem = `nothing provides parameter #${of.index} (${nameOf(token)}) of ${of.class.name}(${signature.join(', ')})${via}`;
  if (!isLostType(token)) {
    return {
      problem,
      causes: ['the token was never registered in this container'],
      fix: `container.register(${nameOf(token)}, …) before discoverTools`,
    };
  }
  return {
    problem,
    causes: [
      'the type is an interface, a union or a primitive',
      'it is imported with `import type`',
      'two files import each other',
    ],
    fix: '@inject(TOKEN) at the parameter and container.register(TOKEN, …), or @inject(delay(() => Class)) for a cycle',
  };
}

/** A singleton would keep the scoped instance of the first call for ever. */
export function capturedScope(of: {
  readonly singleton: string;
  readonly scoped: string;
  readonly path: readonly string[];
}): DependencyFault {
  const path = [...of.path, of.scoped].join(' → ');
  return {
    problem: `the singleton ${of.singleton} would keep the scoped ${of.scoped} of its first call for ever (${path})`,
    fix: `@Toolset({ scope: 'scoped' }) or a shorter lifetime for ${of.singleton}, or resolve it in the call: context.resolve(${of.scoped})`,
  };
}

/** A token as an author would write it. */
export function nameOf(token: unknown): string {
  if (typeof token === 'function') return token.name;
  return typeof token === 'string' ? `'${token}'` : String(token);
}
