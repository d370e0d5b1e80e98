import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { escapePattern } from '../../../core/kernel/escape-pattern.js';
import { jsonType } from '../../../core/kernel/json.js';
import { readRelaxedJson } from '../../../tools/checking/relaxed-json.js';
import type { DraftCall, KnownTools, TextCallFormat } from '../known-tools.js';
import { REASONING_CLOSERS, REASONING_OPENERS } from '../reasoning-marks.js';
import type { TextCursor } from '../text-cursor.js';
import { markedCall } from './json-formats.js';

const WRAPPERS = ['<tool_call>', '<seed:tool_call>'];
const OPENERS = ['<function=', '<function name='];
const PARAMETERS = ['<parameter=', '<parameter name='];
const CLOSERS = ['</function>', '</tool_call>', '</seed:tool_call>'];

const readValue = rawValueReader({
  closer: '</parameter>',
  next: /<parameter(?:=| name=)"?(?<name>[^\s"<>/{}[\]()=]{1,200})"?>/,
  outer: /<\/function>\s*(?=<\/tool_call>|<\/seed:tool_call>|<tool_call>|<function=)/,
});

/**
 * `<function=name>` with JSON after it (Llama 3.1), or with `<parameter=key>value</parameter>` in it (Qwen3-Coder,
 * Nemotron, StepFun, Seed-OSS), with or without `<tool_call>` around it.
 */
const functionTag: TextCallFormat = {
  openers: [...WRAPPERS, ...OPENERS],
  read(cursor, { opener, tools }) {
    if (WRAPPERS.includes(opener)) {
      cursor.space();
      if (!OPENERS.some((tag) => cursor.take(tag))) return undefined;
    }
    return cursor.closed(readFunction(cursor, tools), CLOSERS);
  },
};

function readFunction(cursor: TextCursor, tools: KnownTools): DraftCall | undefined {
  const name = tagName(cursor);
  if (name === undefined || !tools.mayBe(name)) return undefined;
  if (cursor.take('/>')) return { name, arguments: {} };
  if (!cursor.take('>')) return undefined;
  cursor.space();
  if (cursor.peek() === '{') return markedCall(cursor, name);
  const entries: [string, unknown][] = [];
  for (;;) {
    cursor.space();
    // If the model omits the inner closing tag, the outer one closes both.
    if (CLOSERS.some((tag) => cursor.take(tag))) return { name, arguments: Object.fromEntries(entries) };
    if (!PARAMETERS.some((tag) => cursor.take(tag))) return undefined;
    const key = tagName(cursor);
    if (key === undefined || !cursor.take('>')) return undefined;
    const value = readValue(cursor, (next) => tools.takes(name, next));
    if (value === undefined) return undefined;
    // Qwen's template puts each value on separate lines: one line break on either side is not part of it.
    const text = value.replace(/^\n/, '').replace(/\n$/, '');
    entries.push([key, readParameterText(text, tools.parameter(name, key))]);
  }
}

/** A model family's tags: their prefix, and the marks around the calls. */
interface Dialect {
  readonly prefix: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** Tags around the calls of a message. */
function tags(...names: readonly string[]): Pick<Dialect, 'before' | 'after'> {
  return { before: names.map((name) => `<${name}>`), after: names.map((name) => `</${name}>`) };
}

// DeepSeek's marks have full-width bars; some servers decode them to ASCII bars.
const BARS = ['｜', '|', '｜｜', '||'];
const STEP_TOKENS = ['calls_begin', 'call_begin', 'sep', 'call_end', 'calls_end'].map(
  (word) => `<｜tool_${word}｜>`,
);

const INVOKE_DIALECTS: readonly Dialect[] = [
  // MiniMax M2, and models that were trained on its output.
  { prefix: '', ...tags('minimax:tool_call', 'function_calls', 'tool_calls') },
  // DeepSeek V3.2 and V4.
  ...BARS.map((bar) => {
    const prefix = `${bar}DSML${bar}`;
    return { prefix, ...tags(`${prefix}function_calls`, `${prefix}tool_calls`) };
  }),
  // DeepSeek V4.1.
  { prefix: '｜DSML｜ ', ...tags('｜DSML｜ calls', '｜DSML｜ tool_calls') },
  // Step 3.
  { prefix: 'steptml:', before: [...STEP_TOKENS.slice(0, 2)], after: STEP_TOKENS.slice(2) },
  // Muse.
  { prefix: 'atem:', ...tags('atem:function_calls') },
];

const VALUES = new Map(INVOKE_DIALECTS.map(({ prefix }) => [prefix, valueReader(prefix)]));

/** `<invoke name="f"><parameter name="k">value</parameter></invoke>`, with the marks of a family around it. */
const invokeTags: TextCallFormat = {
  openers: INVOKE_DIALECTS.flatMap(({ prefix, before }) => [...before, `<${prefix}invoke name=`]),
  read(cursor, { opener, tools }) {
    const dialect = INVOKE_DIALECTS.find(({ prefix, before }) =>
      opener.endsWith('name=') ? opener === `<${prefix}invoke name=` : before.includes(opener),
    );
    if (dialect === undefined) return undefined;
    if (!opener.endsWith('name=') && !passWrappers(cursor, dialect)) return undefined;
    return cursor.closed(readInvoke(cursor, dialect.prefix, tools), dialect.after);
  },
};

/** Skips further marks before the call, up to its opening tag. */
function passWrappers(cursor: TextCursor, { prefix, before, after }: Dialect): boolean {
  for (;;) {
    cursor.space();
    if (cursor.take(`<${prefix}invoke name=`)) return true;
    // Step 3 names the kind of tool between its marks.
    const isPassed = [...before, ...after, 'function'].some((mark) => cursor.take(mark));
    if (!isPassed) return false;
  }
}

function readInvoke(cursor: TextCursor, prefix: string, tools: KnownTools): DraftCall | undefined {
  const name = tagName(cursor);
  if (name === undefined || !tools.mayBe(name)) return undefined;
  if (cursor.take('/>')) return { name, arguments: {} };
  if (!cursor.take('>')) return undefined;
  const entries: [string, unknown][] = [];
  for (;;) {
    cursor.space();
    if (cursor.take(`</${prefix}invoke>`)) return { name, arguments: Object.fromEntries(entries) };
    if (!cursor.take(`<${prefix}parameter name=`)) return undefined;
    const key = tagName(cursor);
    // DeepSeek marks strings, to distinguish them from JSON.
    const isString = cursor.take('string="true"');
    if (!isString) cursor.take('string="false"');
    if (key === undefined || !cursor.take('>')) return undefined;
    const value = VALUES.get(prefix)?.(cursor, (next) => tools.takes(name, next));
    if (value === undefined) return undefined;
    entries.push([key, isString ? value : readParameterText(value, tools.parameter(name, key))]);
  }
}

function valueReader(prefix: string) {
  return rawValueReader({
    closer: `</${prefix}parameter>`,
    next: new RegExp(
      `<${prefix.replaceAll('|', '\\|')}parameter name="(?<name>[^"<>\\s]{1,200})"[^<>]{0,40}>`,
    ),
    outer: new RegExp(`</${prefix.replaceAll('|', '\\|')}invoke>\\s*(?=<)`),
  });
}

const KEY = /[^<>\n]{1,200}/y;
// Hunyuan 4 adds a suffix to all of its tags.
const SUFFIXES = ['', ':opensource'];

/** Returns a family's tag by name. */
type Tags = (name: string) => string;

const ARG_KEY_DIALECTS = SUFFIXES.map((suffix) => {
  const tag: Tags = (name) => `<${name}${suffix}>`;
  const closer = tag('/arg_value');
  const next = new RegExp(
    `${tag('arg_key')}\\s*(?<name>[^<>\\n]{1,200}?)\\s*${tag('/arg_key')}\\s*${tag('arg_value')}`,
  );
  const outer = new RegExp(`${tag('/tool_call')}\\s*(?=${tag('/tool_calls')}|${tag('tool_call')})`);
  return { tag, readValue: rawValueReader({ closer, next, outer }) };
});

/**
 * `<tool_call>name<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>`: GLM 4.5 and later; Hunyuan, with
 * `<tool_calls>` around it and `<tool_sep>` after the name; its older models write JSON instead.
 */
const argKeyTags: TextCallFormat = {
  openers: ARG_KEY_DIALECTS.flatMap(({ tag }) => [tag('tool_call'), tag('tool_calls')]),
  read(cursor, { opener, tools }) {
    const dialect = ARG_KEY_DIALECTS.find(
      ({ tag }) => opener === tag('tool_call') || opener === tag('tool_calls'),
    );
    if (dialect === undefined) return undefined;
    const { tag } = dialect;
    cursor.space();
    if (opener === tag('tool_calls') && !cursor.take(tag('tool_call'))) return undefined;
    return cursor.closed(readCall(cursor, dialect, tools), [tag('/tool_calls')]);
  },
};

function readCall(
  cursor: TextCursor,
  { tag, readValue }: (typeof ARG_KEY_DIALECTS)[number],
  tools: KnownTools,
): DraftCall | undefined {
  const name = tagName(cursor);
  if (name === undefined) return undefined;
  if (cursor.take(tag('tool_sep'))) {
    cursor.space();
    const json = readJson(cursor, { name, tag });
    if (json !== undefined) return json;
  }
  if (!tools.mayBe(name)) return undefined;
  const entries: [string, unknown][] = [];
  for (;;) {
    cursor.space();
    if (cursor.take(tag('/tool_call')))
      return entries.length > 0 || tools.has(name)
        ? { name, arguments: Object.fromEntries(entries) }
        : undefined;
    if (!cursor.take(tag('arg_key'))) return undefined;
    const key = cursor.match(KEY)?.trim();
    if (key === undefined || !cursor.take(tag('/arg_key'))) return undefined;
    cursor.space();
    if (!cursor.take(tag('arg_value'))) return undefined;
    const value = readValue(cursor, (next) => tools.takes(name, next));
    if (value === undefined) return undefined;
    entries.push([key, readParameterText(value, tools.parameter(name, key))]);
  }
}

/** `name` or `function<tool_sep>name`, then a JSON object, in a fence or bare. */
function readJson(cursor: TextCursor, { name, tag }: { readonly name: string; readonly tag: Tags }) {
  const written = '<{`'.includes(cursor.peek()) ? name : tagName(cursor);
  if (written === undefined) return undefined;
  cursor.space();
  cursor.take('```json');
  const call = markedCall(cursor, written);
  if (call !== undefined) cursor.closers(['```', tag('/tool_call')]);
  return call;
}

const NAME = /[^\s"<>/{}[\]()=]{1,200}/y;

/** The name in a tag such as `<function=name>`, without quotes and white space. */
function tagName(cursor: TextCursor): string | undefined {
  cursor.space();
  if (cursor.take('"')) cursor.space();
  const name = cursor.match(NAME);
  cursor.space();
  if (cursor.take('"')) cursor.space();
  return name;
}

/**
 * The value of the text between two tags. Formats with one tag per parameter write text without quotes, so only the
 * schema can distinguish `"42"` from `42`. Without a schema, text in the form of a number, literal, object or array
 * becomes that.
 */
function readParameterText(text: string, schema: JsonSchema | undefined): unknown {
  const types = typesOf(schema);
  if (types?.size === 1 && types.has('string')) return text;
  const value = readLiteral(text);
  if (value === undefined) return text;
  if (types === undefined) return value;
  return types.has(jsonType(value)) || (typeof value === 'number' && types.has('integer')) ? value : text;
}

function readLiteral(text: string): unknown {
  const trimmed = text.trim();
  if (!/^[-\d[{(tTfFnN]/.test(trimmed)) return undefined;
  // The line break ends a number or word, which at the end of a text could continue.
  const reading = readRelaxedJson(`${trimmed}\n`, 0);
  return reading.kind === 'read' && reading.end === trimmed.length ? reading.value : undefined;
}

/** The JSON types that a schema allows; `undefined` if it states none. */
function typesOf(schema: JsonSchema | undefined): ReadonlySet<string> | undefined {
  if (schema === undefined) return undefined;
  if (typeof schema.type === 'string') return new Set([schema.type]);
  if (Array.isArray(schema.type)) return new Set(schema.type);
  if (schema.enum !== undefined) return new Set(schema.enum.map(jsonType));
  if (Object.hasOwn(schema, 'const')) return new Set([jsonType(schema.const)]);
  if (schema.anyOf === undefined) return undefined;
  const branches = schema.anyOf.map(typesOf);
  return branches.includes(undefined) ? undefined : new Set(branches.flatMap((types) => [...(types ?? [])]));
}

/** The tags around values that are written without quotes. */
interface RawValueTags {
  /** The closing tag of a value. */
  readonly closer: string;
  /** The start of the next value, because models forget closing tags. */
  readonly next: RegExp;
  /** The end of the call, which follows the last value if that was not closed. */
  readonly outer: RegExp;
}

/** Reads the value at the cursor; `takes` returns whether a name may be that of the next value. */
type RawValueReader = (cursor: TextCursor, takes: (name: string) => boolean) => string | undefined;

const CALL = '<[^\\s<>"/]{0,20}(?:tool_call|function|invoke)';

/**
 * Creates a reader of such values. Tags belong to a value only if they cannot be meant as tags: an existing parameter
 * of the tool starts the next value. If reasoning ends within a value and another call follows, the value was part of
 * the reasoning and not a call: the search for calls continues at the end of the reasoning.
 */
function rawValueReader(tags: RawValueTags): RawValueReader {
  const { closer } = tags;
  let known: RegExp | undefined;
  return (cursor, takes) => {
    known ??= patternOf(tags);
    const pattern = known;
    const { text, at: start } = cursor;
    let openThoughts = 0;
    let thoughtEnd: number | undefined;
    pattern.lastIndex = start;
    for (let found = pattern.exec(text); found !== null; found = pattern.exec(text)) {
      const [mark] = found;
      const { next, name = '', outer, call } = found.groups ?? {};
      const isNext = next !== undefined && takes(name);
      if (mark === closer || ((isNext || outer !== undefined) && thoughtEnd === undefined)) {
        cursor.at = mark === closer ? pattern.lastIndex : found.index;
        return text.slice(start, found.index);
      }
      if (thoughtEnd !== undefined && (isNext || call !== undefined)) {
        cursor.at = thoughtEnd;
        return undefined;
      }
      if (REASONING_OPENERS.has(mark)) openThoughts += 1;
      else if (REASONING_CLOSERS.has(mark) && openThoughts > 0) openThoughts -= 1;
      else if (REASONING_CLOSERS.has(mark)) thoughtEnd ??= found.index;
    }
    cursor.ranOut = true;
    return undefined;
  };
}

function patternOf({ closer, next, outer }: RawValueTags): RegExp {
  const reasoning = [...REASONING_OPENERS.keys(), ...REASONING_CLOSERS].map(escapePattern);
  const parts = [
    escapePattern(closer),
    `(?<next>${next.source})`,
    `(?<outer>${outer.source})`,
    `(?<call>${CALL})`,
  ];
  return new RegExp([...parts, ...reasoning].join('|'), 'g');
}

/** Calls in tags; formats with the same opener are tried in this order. */
export const TAG_FORMATS: readonly TextCallFormat[] = [functionTag, argKeyTags, invokeTags];
