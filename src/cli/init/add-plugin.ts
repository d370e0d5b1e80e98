/** A plugin that a configuration in code is to have. */
export interface CodeAddition {
  readonly name: string;
  readonly from: string;
  readonly call: string;
}

/** Where the object of a configuration begins. */
const CONFIGURATIONS =
  /(?:\bdefineConfig\(|\bexport default|\bmodule\.exports =|^(?:export )?const \w+: \w+ =)\s*\{/gm;

/**
 * The code with a plugin as the first of its `plugins`; nothing where there is more than one place for it, or
 * none. Everything else stays as it is.
 */
export function addPlugin(code: string, addition: CodeAddition): string | undefined {
  const [list, otherList] = places(code, /\bplugins\s*:\s*\[/g);
  if (otherList !== undefined) return undefined;
  const added =
    list === undefined
      ? addSetting(code, `plugins: [${addition.call}],`)
      : insert(code, list, firstEntry(code, list, addition.call));
  return added === undefined ? undefined : `${importLine(code, addition)}\n${added}`;
}

/** The code with a line at the beginning of its one configuration; nothing where there is not exactly one. */
export function addSetting(code: string, line: string): string | undefined {
  const [place, other] = places(code, CONFIGURATIONS);
  if (place === undefined || other !== undefined) return undefined;
  return insert(code, place, /^[ \t]*\S/.test(code.slice(place)) ? ` ${line}` : `\n  ${line}`);
}

/** The ends of all matches that stand in no comment of their own line. */
function places(code: string, pattern: RegExp): readonly number[] {
  return [...code.matchAll(pattern)]
    .filter(({ index }) => !/(\/\/|^\s*\/?\*)/.test(code.slice(code.lastIndexOf('\n', index) + 1, index)))
    .map(({ index, 0: text }) => index + text.length);
}

function firstEntry(code: string, place: number, call: string): string {
  const [, indent, first = ''] = /^(\n[ \t]*)?\s*(\S)?/.exec(code.slice(place)) ?? [];
  if (first === ']') return call;
  return indent === undefined ? `${call}, ` : `${indent}${call},`;
}

function importLine(code: string, { name, from }: CodeAddition): string {
  const isModule = /^(import|export)\b/m.test(code);
  return isModule
    ? `import { ${name} as toolwright } from '${from}';`
    : `const { ${name}: toolwright } = require('${from}');`;
}

function insert(code: string, place: number, text: string): string {
  return `${code.slice(0, place)}${text}${code.slice(place)}`;
}
