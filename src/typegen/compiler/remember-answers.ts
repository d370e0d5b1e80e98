import type { CompilerView } from './compiler-view.js';

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
