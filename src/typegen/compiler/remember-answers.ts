import { posix } from 'node:path';
import type { CompilerView, Numbers, TupleElement } from './compiler-view.js';

/** What is asked about one node, symbol, type or signature; the answer never changes while the view is open. */
const QUESTIONS = [
  'fileOf',
  'symbolAt',
  'typeAt',
  'typeFromNode',
  'typeOfSymbol',
  'declaredType',
  'unalias',
  'declarations',
  'declaringFiles',
  'exportsOf',
  'symbolOf',
  'aliasOf',
  'constituents',
  'templateOf',
  'isArray',
  'isTuple',
  'tupleElements',
  'typeArguments',
  'propertiesOf',
  'baseTypes',
  'indexesOf',
  'callSignatures',
  'parametersOf',
  'returnType',
] as const satisfies readonly (keyof CompilerView)[];

/** The same view, which asks nothing twice: every question to TypeScript 7 is a message to another process. */
export function rememberAnswers(view: CompilerView): CompilerView {
  const remembered = QUESTIONS.map((name) => [name, remember(view[name] as Question)] as const);
  let files: ReturnType<CompilerView['projectFiles']> | undefined;
  const projectFiles = () => (files ??= view.projectFiles());
  return { ...view, ...Object.fromEntries(remembered), projectFiles };
}

type Question = (about: object) => unknown;

function remember(ask: Question): Question {
  const answers = new WeakMap<object, { readonly answer: unknown }>();
  return (about) => {
    const known = answers.get(about);
    if (known !== undefined) return known.answer;
    const answer = ask(about);
    answers.set(about, { answer });
    return answer;
  };
}

/** A project as its tsconfig.json describes it. */
export interface ProjectRoots {
  /** tsconfig.json, absolute, with `/`. */
  readonly project: string;
  /** The files that it lists or includes. */
  readonly roots: readonly string[];
  /** Folders of libraries that it maps to their sources. */
  readonly mapped: readonly string[];
}

/**
 * Whether a source is the project's own: listed by tsconfig.json, or imported from somewhere in its folder or in
 * that of a mapped library. Sources of other packages of a workspace are theirs to generate for.
 */
export function isOwnSource(path: string, { project, roots, mapped }: ProjectRoots): boolean {
  if (/\.d\.[cm]?ts$/.test(path) || path.includes('/node_modules/')) return false;
  if (roots.includes(path)) return true;
  return [posix.dirname(project), ...mapped].some((folder) => path.startsWith(`${folder}/`));
}

/** What an element of a tuple is, from the compiler's flags. */
export function tupleRole(flags: number, names: Numbers): TupleElement['role'] {
  if (flags & (names.Rest ?? 0)) return 'rest';
  if (flags & (names.Variadic ?? 0)) return 'variadic';
  return flags & (names.Optional ?? 0) ? 'optional' : 'required';
}
