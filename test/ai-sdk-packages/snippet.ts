import { readText } from '../structure/repository.js';

type Names = Readonly<Record<string, unknown>>;

/** Returns the n-th code block under a heading of a page. */
export function snippetOf(path: string, heading: string, at = 0): string {
  const [, section = ''] = readText(path).split(`\n## ${heading}\n`);
  const [content = ''] = section.split('\n## ');
  const code = [...content.matchAll(/^```[jt]s\n([\s\S]*?)^```/gm)][at]?.[1];
  if (code === undefined) throw new Error(`${path} has no snippet under «${heading}»`);
  return code;
}

/** Runs a snippet that declares `run`, with these names in its scope, and returns its `run`. */
export async function runSnippet<Result>(code: string, names: Names): Promise<Result> {
  const body = code.replace(
    /^import \{ (.*?) \} from '(.*?)';.*$/gm,
    (_, imported, from) => `const { ${imported} } = await load('${from}');`,
  );
  const run = new Function(...Object.keys(names), `return (async () => {\n${body}\nreturn run;\n})();`);
  return run(...Object.values(names));
}
