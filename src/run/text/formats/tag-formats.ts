import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { escapePattern } from '../../../core/kernel/escape-pattern.js';
import { jsonType } from '../../../core/kernel/json.js';
import { readRelaxedJson } from '../../../tools/checking/relaxed-json.js';
import type { DraftCall, KnownTools, TextCallFormat } from '../known-tools.js';
import { REASONING_CLOSERS, REASONING_OPENERS } from '../reasoning-marks.js';
import type { TextCursor } from '../text-cursor.js';
import { markedCall } from './json-formats.js';

/** A model family's tags: each parameter has a tag with its name. */
interface Dialect {
  /** The marks around calls. */
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** Marks that may stand between the first mark and the call. */
  readonly passed: readonly string[];
  /** The start of the tag with the name of the tool, and of those with the names of its parameters. */
  readonly openers: readonly string[];
  readonly parameters: readonly string[];
  /** The ends of the parameters. */
  readonly ends: readonly string[];
  readonly readValue: RawValueReader;
  /** Only between tags without types: JSON may replace the parameters, and each value has its own lines. */
  readonly isUntyped?: boolean;
}

const WRAPPERS = ['<tool_call>', '<seed:tool_call>'];
const CLOSERS = ['</function>', '</tool_call>', '</seed:tool_call>'];

/**
 * `<function=name>` with JSON after it (Llama 3.1), or with `<parameter=key>value</parameter>` in it (Qwen3-Coder,
 * Nemotron, StepFun, Seed-OSS), with or without `<tool_call>` around it.
 */
const FUNCTION_DIALECT: Dialect = {
  before: WRAPPERS,
  // If the model omits the inner closing tag, the outer one closes both.
  after: CLOSERS,
  passed: [],
  openers: ['<function=', '<function name='],
  parameters: ['<parameter=', '<parameter name='],
  ends: CLOSERS,
  readValue: rawValueReader({
    closer: '</parameter>',
    next: /<parameter(?:=| name=)"?(?<name>[^\s"<>/{}[\]()=]{1,200})"?>/,
    outer: /<\/function>\s*(?=<\/tool_call>|<\/seed:tool_call>|<tool_call>|<function=)/,
  }),
  isUntyped: true,
};

/** `<invoke name="f"><parameter name="k">value</parameter></invoke>`, with the marks of a family around it. */
function invokeDialect(
  prefix: string,
  { before, after }: { readonly before: readonly string[]; readonly after: readonly string[] },
): Dialect {
  const written = escapePattern(prefix);
  return {
    before,
    after,
    // Step 3 names the kind of tool between its marks.
    passed: [...before, ...after, 'function'],
    openers: [`<${prefix}invoke name=`],
    parameters: [`<${prefix}parameter name=`],
    ends: [`</${prefix}invoke>`],
    readValue: rawValueReader({
      closer: `</${prefix}parameter>`,
      next: new RegExp(`<${written}parameter name="(?<name>[^"<>\\s]{1,200})"[^<>]{0,40}>`),
      outer: new RegExp(`</${written}invoke>\\s*(?=<)`),
    }),
  };
}

/** Tags around the calls of a message. */
function tags(...names: readonly string[]) {
  return { before: names.map((name) => `<${name}>`), after: names.map((name) => `</${name}>`) };
}

// DeepSeek's marks have full-width bars; some servers decode them to ASCII bars.
const BARS = ['｜', '|', '｜｜', '||'];
const STEP_TOKENS = ['calls_begin', 'call_begin', 'sep', 'call_end', 'calls_end'].map(
  (word) => `<｜tool_${word}｜>`,
);

const INVOKE_DIALECTS: readonly Dialect[] = [
  // MiniMax M2, and models that were trained on its output.
  invokeDialect('', tags('minimax:tool_call', 'function_calls', 'tool_calls')),
  // DeepSeek V3.2 and V4.
  ...BARS.map((bar) => {
    const prefix = `${bar}DSML${bar}`;
    return invokeDialect(prefix, tags(`${prefix}function_calls`, `${prefix}tool_calls`));
  }),
  // DeepSeek V4.1.
  invokeDialect('｜DSML｜ ', tags('｜DSML｜ calls', '｜DSML｜ tool_calls')),
  // Step 3.
  invokeDialect('steptml:', { before: STEP_TOKENS.slice(0, 2), after: STEP_TOKENS.slice(2) }),
  // Muse.
  invokeDialect('atem:', tags('atem:function_calls')),
];

/** The format of several dialects. */
function tagFormat(dialects: readonly Dialect[]): TextCallFormat {
  const byOpener = new Map(
    dialects.flatMap((dialect) => [...dialect.before, ...dialect.openers].map((mark) => [mark, dialect])),
  );
  return {
    openers: [...byOpener.keys()],
    read(cursor, { opener, tools }) {
      const dialect = byOpener.get(opener);
      if (dialect === undefined) return undefined;
      const isOpen = dialect.openers.includes(opener) || passMarks(cursor, dialect);
      return isOpen ? cursor.closed(readTaggedCall(cursor, dialect, tools), dialect.after) : undefined;
    },
  };
}

/** Skips further marks before the call, and the start of its opening tag. */
function passMarks(cursor: TextCursor, { openers, passed }: Dialect): boolean {
  do {
    cursor.space();
    if (openers.some((mark) => cursor.take(mark))) return true;
  } while (passed.some((mark) => cursor.take(mark)));
  return false;
}

function readTaggedCall(cursor: TextCursor, dialect: Dialect, tools: KnownTools): DraftCall | undefined {
  const { parameters, ends, readValue, isUntyped } = dialect;
  const name = tagName(cursor);
  if (name === undefined || !tools.mayBe(name)) return undefined;
  if (cursor.take('/>')) return { name, arguments: {} };
  if (!cursor.take('>')) return undefined;
  if (isUntyped) {
    cursor.space();
    if (cursor.peek() === '{') return markedCall(cursor, name);
  }
  return readParameters(cursor, { name, tools, ends }, (takes) => {
    if (!parameters.some((tag) => cursor.take(tag))) return undefined;
    const key = tagName(cursor);
    // DeepSeek marks strings, to distinguish them from JSON.
    const isString = !isUntyped && cursor.take('string="true"');
    if (!isUntyped && !isString) cursor.take('string="false"');
    if (key === undefined || !cursor.take('>')) return undefined;
    const value = readValue(cursor, takes);
    // Qwen's template puts each value on separate lines: one line break on either side is not part of it.
    const text = isUntyped ? value?.replace(/^\n/, '').replace(/\n$/, '') : value;
    return text === undefined ? undefined : { key, text, isString };
  });
}

/** A parameter as it was written. */
interface WrittenParameter {
  readonly key: string;
  readonly text: string;
  /** The tag marks the value as a string. */
  readonly isString?: boolean;
}

/** A call whose name was read, with its parameters up to one of the end marks. */
function readParameters(
  cursor: TextCursor,
  call: { readonly name: string; readonly tools: KnownTools; readonly ends: readonly string[] },
  read: (takes: (name: string) => boolean) => WrittenParameter | undefined,
): DraftCall | undefined {
  const { name, tools, ends } = call;
  const entries: [string, unknown][] = [];
  for (;;) {
    cursor.space();
    if (ends.some((tag) => cursor.take(tag))) return { name, arguments: Object.fromEntries(entries) };
    const parameter = read((next) => tools.takes(name, next));
    if (parameter === undefined) return undefined;
    const { key, text, isString } = parameter;
    entries.push([key, isString ? text : readParameterText(text, tools.parameter(name, key))]);
  }
}

const KEY = /[^<>\n]{1,200}/y;
// Hunyuan 4 adds a suffix to all of its tags.
const SUFFIXES = ['', ':opensource'];

/** Returns a family's tag by name. */
type Tags = (name: string) => string;

/**
 * `<tool_call>name<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>`: GLM 4.5 and later; Hunyuan, with
 * `<tool_calls>` around it and `<tool_sep>` after the name; its older models write JSON instead.
 */
const ARG_KEY_FORMATS = SUFFIXES.map((suffix): TextCallFormat => {
  const tag: Tags = (name) => `<${name}${suffix}>`;
  const readValue = rawValueReader({
    closer: tag('/arg_value'),
    next: new RegExp(
      `${tag('arg_key')}\\s*(?<name>[^<>\\n]{1,200}?)\\s*${tag('/arg_key')}\\s*${tag('arg_value')}`,
    ),
    outer: new RegExp(`${tag('/tool_call')}\\s*(?=${tag('/tool_calls')}|${tag('tool_call')})`),
  });
  return {
    openers: [tag('tool_call'), tag('tool_calls')],
    read(cursor, { opener, tools }) {
      cursor.space();
      if (opener === tag('tool_calls') && !cursor.take(tag('tool_call'))) return undefined;
      return cursor.closed(readArgKeys(cursor, { tag, readValue }, tools), [tag('/tool_calls')]);
    },
  };
});

function readArgKeys(
  cursor: TextCursor,
  { tag, readValue }: { readonly tag: Tags; readonly readValue: RawValueReader },
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
  const call = readParameters(cursor, { name, tools, ends: [tag('/tool_call')] }, (takes) => {
    if (!cursor.take(tag('arg_key'))) return undefined;
    const key = cursor.match(KEY)?.trim();
    if (key === undefined || !cursor.take(tag('/arg_key'))) return undefined;
    cursor.space();
    const text = cursor.take(tag('arg_value')) ? readValue(cursor, takes) : undefined;
    return text === undefined ? undefined : { key, text };
  });
  // Without parameters, only a known name shows a call.
  return tools.has(name) || Object.keys(call?.arguments ?? {}).length > 0 ? call : undefined;
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
export const TAG_FORMATS: readonly TextCallFormat[] = [
  tagFormat([FUNCTION_DIALECT]),
  ...ARG_KEY_FORMATS,
  tagFormat(INVOKE_DIALECTS),
];
