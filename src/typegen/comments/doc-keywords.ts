import type { DocComment, DocTag } from './doc-comment.js';

/** What the tags of a comment say in JSON Schema, and which of them cannot be read. */
export interface DocKeywords {
  readonly keywords: Readonly<Record<string, unknown>>;
  readonly fallback?: DocDefault;
  /** `@integer`, `@asType integer`, `@type integer`: TypeScript has no whole numbers. */
  readonly isInteger: boolean;
  /** Sentences without a full stop: `its @minimum is no number: "two"`. */
  readonly problems: readonly string[];
}

/** What `@default` says: as it stands there, and as the value that it may be. */
export interface DocDefault {
  readonly text: string;
  readonly value: unknown;
}

type Reader = (text: string) => unknown;

const number: Reader = (text) => (text === '' || Number.isNaN(Number(text)) ? undefined : Number(text));
const words: Reader = (text) => unquote(text) || undefined;
const flag: Reader = (text) => text !== 'false';

const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ...[
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
    'multipleOf',
    'minLength',
    'maxLength',
    'minItems',
    'maxItems',
    'minProperties',
    'maxProperties',
  ].map((name) => [name, number] as const),
  ['pattern', pattern],
  ['format', words],
  ['title', words],
  ['uniqueItems', flag],
  ['deprecated', () => true],
]);

/** The constraints and examples that the tags give, by JSON Schema's own names; and the default. */
export function docKeywords(comment: DocComment | undefined): DocKeywords {
  const keywords: Record<string, unknown> = {};
  const examples: unknown[] = [];
  const problems: string[] = [];
  let fallback: DocDefault | undefined;
  for (const tag of comment?.tags ?? []) {
    if (tag.name === 'default' || tag.name === 'defaultValue')
      fallback = { text: unfenced(tag.text), value: jsonOrText(tag.text) };
    else if (tag.name === 'example' || tag.name === 'examples') examples.push(...examplesOf(tag));
    const value = READERS.get(tag.name)?.(tag.text);
    if (value !== undefined) keywords[tag.name] = value;
    else if (READERS.has(tag.name))
      problems.push(`its @${tag.name} cannot be read: ${JSON.stringify(tag.text)}`);
  }
  if (examples.length > 0) keywords.examples = examples;
  return { keywords, fallback, isInteger: (comment?.tags ?? []).some(saysInteger), problems };
}

function saysInteger({ name, text }: DocTag): boolean {
  if (name === 'integer' || name === 'int') return true;
  return (name === 'asType' || name === 'type') && /^\{?(integer|int)\}?$/.test(text);
}

function examplesOf({ name, text }: DocTag): readonly unknown[] {
  const value = jsonOrText(text);
  return name === 'examples' && Array.isArray(value) ? value : [value];
}

/** A value as JSON, or as the words that it is: `@default 20`, `@example cus_123`. */
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

/** Without the backticks that keep a text as it is. */
function unquote(text: string): string {
  return text.trim().replace(/^`([\s\S]*)`$/, '$1');
}

/** JSON Schema reads patterns as Unicode; one that cannot be read so would fail at the first call. */
function pattern(text: string): string | undefined {
  const source = unquote(text).replace(/^\/([\s\S]*)\/u?$/, '$1');
  try {
    new RegExp(source, 'u');
    return source === '' ? undefined : source;
  } catch {
    return undefined;
  }
}
