import { BOUNDS, regularExpression } from '../../tools/schema/keywords.js';
import type { CompilerView, SyntaxNode } from './load-compiler.js';

/** One block tag: `@minimum 1`. */
interface DocTag {
  readonly name: string;
  readonly text: string;
}

/** The content of a TSDoc comment. */
export interface DocComment {
  readonly summary: string;
  /** In order; includes the tags in `{@…}` of the summary. */
  readonly tags: readonly DocTag[];
  /** `@param` by its name, which may be a path: `page.size`. */
  readonly params: ReadonlyMap<string, DocComment>;
}

const LAST_COMMENT = /\/\*\*(?!\/)((?:(?!\*\/)[\s\S])*)\*\/(?:\s|\/\/[^\n]*|\/\*(?!\*)[\s\S]*?\*\/)*$/;
const TRIVIA = /^(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/;

/** The TSDoc comment before a declaration. */
export function commentOf(view: CompilerView, node: SyntaxNode): DocComment | undefined {
  const isVariable = node.kind === view.syntaxKinds.VariableDeclaration;
  return docCommentAt(view.fileOf(node).text, isVariable ? (node.parent?.parent?.pos ?? node.pos) : node.pos);
}

/**
 * The TSDoc comment before a position, if spaces and comments start at `from`. It is read from the text, because
 * compilers return comments in different forms.
 */
export function docCommentAt(text: string, from: number): DocComment | undefined {
  const trivia = TRIVIA.exec(text.slice(from))?.[0] ?? '';
  const body = LAST_COMMENT.exec(trivia)?.[1];
  return body === undefined ? undefined : parseDocComment(body);
}

/** Parses the text of a comment. In a comment of one line, tags may follow the text. */
export function parseDocComment(body: string): DocComment {
  const lines = body.split('\n').map((line) => line.replace(/^\s*\*? ?/, '').trimEnd());
  const isOneLine = lines.length === 1;
  const [summary = '', ...blocks] = splitBlocks(isOneLine ? (lines[0] ?? '').split(BEFORE_TAG) : lines);
  const params = new Map<string, DocComment>();
  const tags: DocTag[] = [];
  let remarks = '';
  let ofParam: DocTag[] | undefined;
  // Tags after the text of a `@param` belong to that parameter.
  const read = blocks.flatMap((block) => {
    const parts = PARAM_TAGS.has(readTag(block).name) ? block.split(BEFORE_TAG) : [block];
    return parts.map((part, index) => ({ tag: readTag(part), isBehind: isOneLine || index > 0 }));
  });
  for (const { tag, isBehind } of read) {
    const { name, text: rest } = tag;
    if (PARAM_TAGS.has(name)) {
      const [, param = '', words = ''] = PARAM.exec(rest) ?? [];
      const said = readText(words);
      ofParam = [...said.tags];
      params.set(param, { ...said, tags: ofParam });
      continue;
    }
    const isOfParam = isBehind ? !OF_METHOD.has(name) : VALUE_TAGS.has(name);
    if (ofParam !== undefined && isOfParam) {
      ofParam.push(tag);
      continue;
    }
    ofParam = undefined;
    if (name === 'remarks') remarks = rest;
    else tags.push({ name, text: WORDED.has(name) ? readText(rest).summary : rest });
  }
  const said = readText(remarks === '' ? summary : `${summary}\n\n${remarks}`);
  return { summary: said.summary, tags: [...said.tags, ...tags], params };
}

type Reader = (text: string) => unknown;

const number: Reader = (text) => (text === '' || Number.isNaN(Number(text)) ? undefined : Number(text));
const words: Reader = (text) => unquote(text) || undefined;
const flag: Reader = (text) => text !== 'false';

const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ...BOUNDS.map((name) => [name, number] as const),
  ['pattern', pattern],
  ['format', words],
  ['title', words],
  ['uniqueItems', flag],
  ['deprecated', () => true],
]);

const OTHER_TAGS = [
  ...['integer', 'int', 'asType', 'default', 'defaultValue', 'example', 'param', 'return', 'returns'],
];

/** Tags about values only: in the comment of a method, they belong to the parameter before them. */
export const VALUE_TAGS: ReadonlySet<string> = new Set(
  [...READERS.keys(), 'integer', 'int', 'asType', 'default', 'defaultValue'].filter(
    (name) => name !== 'deprecated',
  ),
);

/** Before a known tag; `@` has other meanings, too. */
const BEFORE_TAG = new RegExp(`\\s(?=@(?:${[...READERS.keys(), ...OTHER_TAGS].join('|')})(?:\\s|$))`);

/** `@param {string} [name=1] - text`, of which only the name and the text are used. */
const PARAM = /^(?:\{[^}]*\}\s*)?\[?([\w$.[\]]+?)(?:=[^\]]*)?\]?(?:\s+-)?(?:\s+([\s\S]*))?$/;

const PARAM_TAGS: ReadonlySet<string> = new Set(['param', 'arg', 'argument']);

/** Tags that never belong to a parameter, even after its text. */
const OF_METHOD: ReadonlySet<string> = new Set(['returns', 'return', 'remarks']);

function readTag(block: string): DocTag {
  const [, name = '', text = ''] = /^@([\w.]+)[ \t]*([\s\S]*)$/.exec(block) ?? [];
  return { name, text: text.trim() };
}

/** Tags with text for people. */
const WORDED: ReadonlySet<string> = new Set(['returns', 'return', 'deprecated']);

/** Splits lines at those that start with a tag, except within fenced code. */
function splitBlocks(lines: readonly string[]): readonly string[] {
  const blocks: string[][] = [[]];
  let isFenced = false;
  for (const line of lines) {
    if (line.trimStart().startsWith('```')) isFenced = !isFenced;
    // Several short tags may share a line: `@minimum 1 @maximum 50`. Those after `@param` are the parameter's.
    const parts = !isFenced && /^\s*@(?!param\b)\w/.test(line) ? line.trim().split(BEFORE_TAG) : [line];
    for (const part of parts) {
      if (!isFenced && /^\s*@\w/.test(part)) blocks.push([part.trim()]);
      else blocks.at(-1)?.push(part);
    }
  }
  return blocks.map((block) => block.join('\n'));
}

/** Text without its inline tags, which are returned separately; links keep their text. */
function readText(text: string): DocComment {
  const tags: DocTag[] = [];
  const plain = text
    .replace(/\{@(?:link|linkcode|linkplain)\s+([^}|\s]+)(?:\s*\|\s*|\s+)?([^}]*)\}/g, (_, to, words) =>
      words.trim() === '' ? to : words.trim(),
    )
    .replace(/\s*\{@([\w.]+)\s*((?:[^{}]|\{[^{}]*\})*)\}/g, (_, name, value) => {
      tags.push({ name, text: value.trim() });
      return '';
    });
  // Joins lines that were wrapped; lists, tables and code are unchanged.
  const lines: string[] = [];
  let isFenced = false;
  let isOpen = false;
  for (const line of plain.trim().split('\n')) {
    const isFence = line.trimStart().startsWith('```');
    const last = lines.length - 1;
    if (isOpen && !isFence && line.trim() !== '' && !OWN_LINE.test(line)) {
      lines[last] = `${lines[last]} ${line.trim()}`;
      continue;
    }
    lines.push(isFenced ? line : line.trimEnd());
    if (isFence) isFenced = !isFenced;
    isOpen = !isFenced && !isFence && line.trim() !== '';
  }
  return { summary: lines.join('\n').replace(/\n{3,}/g, '\n\n'), tags, params: new Map() };
}

const OWN_LINE = /^\s*([-*|>]|\d+\.)\s/;

/** The JSON Schema keywords of a comment's tags, and the tags that cannot be read. */
interface DocKeywords {
  readonly keywords: Readonly<Record<string, unknown>>;
  readonly fallback?: DocDefault;
  /** `@integer`, `@asType integer`, `@type integer`: TypeScript has no integer type. */
  readonly isInteger: boolean;
  /** Continue the path of the value: `has a @minimum that cannot be read: "two"`. */
  readonly problems: readonly { readonly problem: string; readonly fix: string }[];
}

/** The value of `@default`: as text, and parsed. */
interface DocDefault {
  readonly text: string;
  readonly value: unknown;
}

/** The constraints, examples and default from the tags, with the names of JSON Schema. */
export function docKeywords(comment: DocComment | undefined): DocKeywords {
  const keywords: Record<string, unknown> = {};
  const examples: unknown[] = [];
  const problems: DocKeywords['problems'][number][] = [];
  let fallback: DocDefault | undefined;
  for (const tag of comment?.tags ?? []) {
    if (tag.name === 'default' || tag.name === 'defaultValue')
      fallback = { text: unfenced(tag.text), value: jsonOrText(tag.text) };
    else if (tag.name === 'example' || tag.name === 'examples') {
      const value = jsonOrText(tag.text);
      examples.push(...(tag.name === 'examples' && Array.isArray(value) ? value : [value]));
    }
    const read = READERS.get(tag.name);
    const value = read?.(tag.text);
    if (value !== undefined) keywords[tag.name] = value;
    else if (read !== undefined) {
      const form = read === number ? 'a number' : read === pattern ? 'a regular expression' : 'a text';
      problems.push({
        problem: `has a @${tag.name} that cannot be read: ${JSON.stringify(tag.text)}`,
        fix: `@${tag.name} with ${form}`,
      });
    }
  }
  if (examples.length > 0) keywords.examples = examples;
  const isInteger = (comment?.tags ?? []).some(
    ({ name, text }) =>
      name === 'integer' ||
      name === 'int' ||
      ((name === 'asType' || name === 'type') && /^\{?(integer|int)\}?$/.test(text)),
  );
  return { keywords, fallback, isInteger, problems };
}

/** A value as JSON, or as plain text: `@default 20`, `@example cus_123`. */
function jsonOrText(text: string): unknown {
  const plain = unfenced(text);
  try {
    return JSON.parse(plain);
  } catch {
    return plain.replace(/^'([\s\S]*)'$/, '$1');
  }
}

function unfenced(text: string): string {
  return unquote(text.replace(/^```\w*\n([\s\S]*?)\n?```$/, '$1'));
}

/** Removes the backticks around a text. */
function unquote(text: string): string {
  return text.trim().replace(/^`([\s\S]*)`$/, '$1');
}

/** Patterns must be valid with the Unicode flag of JSON Schema; others would fail at the first call. */
function pattern(text: string): string | undefined {
  const source = unquote(text).replace(/^\/([\s\S]*)\/u?$/, '$1');
  return source === '' || regularExpression(source) === undefined ? undefined : source;
}
