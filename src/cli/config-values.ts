import { findNodeAtLocation, type JSONPath, type Node, parseTree } from 'jsonc-parser';

/** A plugin that a configuration in code is to have. */
interface CodeAddition {
  readonly name: string;
  readonly from: string;
  readonly call: string;
}

/** Where the object of a configuration begins; one that has a name and no type is exported by its name. */
const CONFIGURATIONS =
  /(?:\bdefineConfig\(|\bexport default|\bmodule\.exports =|^(?:export )?const \w+: \w+ =|^const (\w+) =(?=[\s\S]*^(?:export default|module\.exports =) \1\b))\s*\{/gm;

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

/** The same text with one value set; everything else stays as it is, byte for byte. */
export function setValue(text: string, path: JSONPath, value: unknown): string {
  const tree = treeOf(text);
  const there = findNodeAtLocation(tree, path);
  if (there !== undefined) return spliced(text, there, print(value));
  const holder = findNodeAtLocation(tree, path.slice(0, -1));
  const key = String(path.at(-1));
  if (holder?.type !== 'object') return setValue(text, path.slice(0, -1), { [key]: value });
  return withEntry(text, holder, `${JSON.stringify(key)}: ${print(value)}`);
}

/** The same text with an entry at the end of a list, which is made where there is none. */
export function addEntry(text: string, path: JSONPath, entry: string): string {
  const list = findNodeAtLocation(treeOf(text), path);
  return list?.type === 'array' ? withEntry(text, list, print(entry)) : setValue(text, path, [entry]);
}

function treeOf(text: string): Node {
  return (
    parseTree(text, [], { allowTrailingComma: true }) ?? { type: 'object', offset: 0, length: text.length }
  );
}

/** On a line of its own where the entry before it has one; a comment behind that stays where it is. */
function withEntry(text: string, holder: Node, entry: string): string {
  const last = holder.children?.at(-1);
  if (last === undefined) return intoEmpty(text, holder, entry);
  const end = last.offset + last.length;
  const line = /^[ \t]*(,?)[ \t]*(?:\/\/.*|\/\*.*\*\/[ \t]*)?(?=\n)/.exec(text.slice(end));
  const indent = indentAt(text, last.offset);
  if (line === null || indent === undefined) return spliced(text, { offset: end, length: 0 }, `, ${entry}`);
  const [rest, comma] = line;
  const kept = comma === '' ? `,${rest}` : rest;
  return spliced(text, { offset: end, length: rest.length }, `${kept}\n${indent}${entry}${comma}`);
}

function intoEmpty(text: string, holder: Node, entry: string): string {
  const [open = '', close = ''] = holder.type === 'array' ? '[]' : ['{ ', ' }'];
  // Comments in it are kept: what is inserted stands before them.
  const inner = text.slice(holder.offset + 1, holder.offset + holder.length - 1);
  const body = inner.trim() === '' ? entry : `${entry} ${inner.trim()}\n`;
  return spliced(text, holder, `${open}${body}${close}`);
}

/** What stands before a place on its line, if that is only space. */
function indentAt(text: string, offset: number): string | undefined {
  const before = text.slice(text.lastIndexOf('\n', offset) + 1, offset);
  return before.trim() === '' ? before : undefined;
}

function spliced(text: string, { offset, length }: Pick<Node, 'offset' | 'length'>, by: string): string {
  return `${text.slice(0, offset)}${by}${text.slice(offset + length)}`;
}

/** On one line, as people write it. */
function print(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(print).join(', ')}]`;
  return `{ ${Object.entries(value)
    .map(([key, entry]) => `${JSON.stringify(key)}: ${print(entry)}`)
    .join(', ')} }`;
}
