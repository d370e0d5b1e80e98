import type { JsonObject, JsonSchema } from '../../core/contract/json-schema.js';
import { escapePattern } from '../../core/kernel/escape-pattern.js';
import { readExactJson } from '../../core/kernel/exact-json.js';
import { isRecord, jsonType } from '../../core/kernel/json.js';
import { readRelaxedJson } from '../../tools/checking/relaxed-json.js';
import { REASONING_CLOSERS, REASONING_OPENERS } from './reasoning-marks.js';
import { jsonSpan, type ReadJson, type TextCursor } from './text-cursor.js';

/** The names of tools, and the schemas of their arguments. */
export interface KnownTools {
  /** Every name counts as a tool, because no tools were given. */
  readonly any: boolean;
  /** Calls of other tools are reported too, between marks that only calls have. */
  readonly reportsUnknown: boolean;
  has(name: string): boolean;
  /** Whether a call of this name should be read further. */
  mayBe(name: string): boolean;
  /** Whether a tool may have a parameter of this name: any, if its schema is unknown. */
  takes(tool: string, name: string): boolean;
  /** Schema of a parameter, if it is known. */
  parameter(tool: string, name: string): JsonSchema | undefined;
}

/** A format in which models write calls. */
interface TextCallFormat {
  /** The start of such a call; the format is tried only there. `''` is the beginning of a message. */
  readonly openers: readonly string[];
  /**
   * Other texts of the same form: `data` is JSON of any kind, `prose` includes code and examples, so that quotation
   * marks and code fences make it text. Absent if only calls have such marks.
   */
  readonly looksLike?: 'data' | 'prose';
  /**
   * Reads the text after the opener, and leaves the cursor after the call. Returns `undefined` if it is not a call
   * (the cursor's `ranOut` states whether more text could make it one). The result must not depend on later text: a
   * prefix of a text must not contain a call that the whole text does not. `start` is the start of the opener.
   */
  read(
    cursor: TextCursor,
    context: { readonly tools: KnownTools; readonly opener: string; readonly start: number },
  ): readonly DraftCall[] | undefined;
}

/** A call that was found in text, before it has an id. */
export interface DraftCall {
  readonly name: string;
  /** An object, or the raw text if it is not a strict JSON object: the read step repairs it and records the repair. */
  readonly arguments: JsonObject | string;
  /** The id that the model wrote, if any. */
  readonly id?: string;
}

/** `{"name": …, "arguments": …}` or an array of those, anywhere in the text; strict JSON only. */
const bareJson: TextCallFormat = {
  openers: ['{', '['],
  looksLike: 'data',
  read(cursor, { opener, start }) {
    cursor.space();
    // Most brackets in a text cannot start a call.
    if (cursor.peek() !== (opener === '[' ? '{' : '"')) return undefined;
    const { text } = cursor;
    const span = jsonSpan(text, start);
    if (span.kind === 'open') {
      cursor.ranOut = true;
      return undefined;
    }
    cursor.at = span.kind === 'closed' ? span.end : span.resumeAt;
    if (span.kind === 'broken') return undefined;
    return callsInJson({ value: readExactJson(text.slice(start, span.end))?.value }, { text, marked: false });
  },
};

const LANGUAGE = /[\w-]*/y;
const MEANS_JSON = /^(?:|json5?c?|tool_calls?|tool|function_call)$/i;

/** A call at the start of a code fence, which belongs to it. */
const fencedJson: TextCallFormat = {
  openers: ['```'],
  looksLike: 'data',
  read(cursor) {
    const language = cursor.match(LANGUAGE);
    if (language === undefined) return undefined;
    cursor.space();
    const json = cursor.json({ relaxed: MEANS_JSON.test(language) });
    if (json === undefined) return undefined;
    const calls = callsInJson(json, { text: cursor.text, marked: false });
    if (calls.length > 0) cursor.closers(['```']);
    return calls;
  },
};

const SEPARATOR = /\s*[;,]?\s*/y;

/** Marks before JSON, and their possible closing marks. */
const JSON_MARKS: ReadonlyMap<string, readonly string[]> = new Map([
  // Hermes, Qwen, Reka, older Granite.
  ['<tool_call>', ['</tool_call>']],
  ['<tool_calls>', ['</tool_calls>']],
  ['<function_call>', ['</function_call>']],
  // Granite 3.
  ['<|tool_call|>', ['<|/tool_call|>']],
  // Llama 3.1 and 3.2.
  ['<|python_tag|>', ['<|eom_id|>', '<|eot_id|>']],
  // Command R7B.
  ['<|START_ACTION|>', ['<|END_ACTION|>']],
]);

/** JSON calls after a mark: one object, several separated by `;`, `,` or nothing, or an array. */
const taggedJson: TextCallFormat = {
  openers: [...JSON_MARKS.keys()],
  read(cursor, { opener }) {
    cursor.space();
    const first = readCalls(cursor);
    if (first === undefined || first.length === 0) return first;
    const calls = [...first];
    for (;;) {
      const before = cursor.at;
      cursor.match(SEPARATOR);
      const more = readCalls(cursor);
      if (more === undefined || more.length === 0) {
        cursor.at = before;
        break;
      }
      calls.push(...more);
    }
    cursor.tailOpen = cursor.ranOut;
    if (!cursor.tailOpen) cursor.closers(JSON_MARKS.get(opener) ?? []);
    return calls;
  },
};

function readCalls(cursor: TextCursor): readonly DraftCall[] | undefined {
  const json = cursor.json({ relaxed: true });
  return json && callsInJson(json, { text: cursor.text, marked: true });
}

/** Apertus: `<|tools_prefix|>[{"name": {"key": "value"}}]<|tools_suffix|>`. */
const apertusTools: TextCallFormat = {
  openers: ['<|tools_prefix|>'],
  read(cursor) {
    cursor.space();
    const json = cursor.json({ relaxed: false });
    if (json === undefined || !Array.isArray(json.value)) return undefined;
    const calls: DraftCall[] = [];
    for (const item of json.value as readonly unknown[]) {
      const [entry, ...others] = isRecord(item) ? Object.entries(item) : [];
      if (entry === undefined || others.length > 0 || !isRecord(entry[1])) continue;
      calls.push({ name: entry[0], arguments: entry[1] });
    }
    if (calls.length > 0) cursor.closers(['<|tools_suffix|>']);
    return calls;
  },
};

const NAME = /[\w.-]{1,200}/y;

/** Mistral: `[TOOL_CALLS]` with a JSON array, or since v11 with `name[CALL_ID]id[ARGS]{…}` per call. */
const mistralMarks: TextCallFormat = {
  openers: ['[TOOL_CALLS]'],
  read(cursor) {
    cursor.space();
    let calls: readonly DraftCall[] | undefined;
    if ('{['.includes(cursor.peek())) calls = readCalls(cursor);
    else {
      const name = cursor.match(NAME);
      if (name === undefined) return undefined;
      const id = cursor.take('[CALL_ID]') ? cursor.match(NAME) : undefined;
      cursor.take('[ARGS]');
      const call = markedCall(cursor, name);
      calls = call && [id === undefined ? call : { ...call, id }];
    }
    if (calls !== undefined) cursor.closers(['[/TOOL_CALLS]']);
    return calls;
  },
};

/** The call of a name that was read, with the following JSON object as its arguments. */
function markedCall(cursor: TextCursor, name: string): DraftCall | undefined {
  cursor.space();
  if (cursor.peek() !== '{') return undefined;
  const start = cursor.at;
  const json = cursor.json({ relaxed: true });
  if (json === undefined) return undefined;
  // Invalid JSON stays raw text: the read step repairs it and records the repair.
  const raw = cursor.text.slice(start, cursor.at);
  return { name, arguments: json.members === undefined ? (json.value as DraftCall['arguments']) : raw };
}

/**
 * The calls in a JSON value: `{ name, arguments }`, Llama's `parameters`, Command R's `tool_name`, the OpenAI forms
 * with `function` and `tool_calls`, or an array of those. `marked`: a call may omit its arguments, because marks show
 * that it is a call.
 */
function callsInJson(
  json: ReadJson,
  { text, marked }: { readonly text: string; readonly marked: boolean },
): readonly DraftCall[] {
  const calls = callsInValue(json.value, marked);
  if (json.members === undefined) return calls;
  // If it is not strict JSON, the raw text is used: the read step repairs it and records the repair, so that tools
  // can refuse repaired arguments.
  const span = json.members.get('arguments') ?? json.members.get('parameters');
  const [call, ...others] = calls;
  if (call === undefined || others.length > 0 || Array.isArray(json.value)) return [];
  const isEmpty = typeof call.arguments === 'object' && Object.keys(call.arguments).length === 0;
  if (span === undefined) return marked && isEmpty ? [call] : [];
  const raw = text.slice(span.start, span.end);
  return [{ ...call, arguments: parseObject(raw) ?? raw }];
}

function callsInValue(value: unknown, marked: boolean): readonly DraftCall[] {
  if (Array.isArray(value))
    return value.flatMap((item) => (isRecord(item) ? callsInValue(item, marked) : []));
  if (!isRecord(value)) return [];
  const { tool_calls: list, function: wrapped, id = value.tool_call_id } = value;
  if (Array.isArray(list)) return callsInValue(list, false);
  const call = isRecord(wrapped) ? toCall(wrapped, false) : toCall(value, marked);
  if (call === undefined) return [];
  return [typeof id === 'string' && id !== '' ? { ...call, id } : call];
}

function toCall(value: JsonObject, marked: boolean): DraftCall | undefined {
  const { tool_name, name = tool_name } = value;
  const key = ['arguments', 'parameters'].find((candidate) => Object.hasOwn(value, candidate));
  if (typeof name !== 'string' || (key === undefined && !marked)) return undefined;
  const sent = key === undefined ? {} : value[key];
  if (isRecord(sent)) {
    // A model that quotes a tool's definition does not call it.
    const isSchema = sent.type === 'object' && isRecord(sent.properties);
    return key === 'parameters' && isSchema ? undefined : { name, arguments: sent };
  }
  if (typeof sent === 'string') return { name, arguments: parseObject(sent) ?? sent };
  return { name, arguments: sent === null ? {} : JSON.stringify(sent) };
}

function parseObject(text: string): JsonObject | undefined {
  const value = readExactJson(text)?.value;
  return isRecord(value) ? value : undefined;
}

// The tokens have full-width bars; some servers decode them to ASCII bars.
const BARS = ['\uff5c', '|'];

/** DeepSeek V3 and R1 (`function<sep>name`, arguments fenced) and V3.1 (`name<sep>{…}`). */
const deepseekTokens: TextCallFormat = {
  openers: BARS.flatMap((bar) => ['calls▁begin', 'calls', 'call▁begin'].map((word) => token(word, bar))),
  read(cursor, { opener }) {
    const bar = opener[1] ?? '';
    cursor.space();
    cursor.take(token('call▁begin', bar));
    let name = cursor.match(NAME);
    if (name === undefined || !cursor.take(token('sep', bar))) return undefined;
    cursor.space();
    if (cursor.peek() !== '{') {
      name = cursor.match(NAME);
      if (name === undefined) return undefined;
      cursor.space();
      cursor.take('```json');
    }
    return cursor.closed(markedCall(cursor, name), ['```', token('call▁end', bar), token('calls▁end', bar)]);
  },
};

function token(word: string, bar: string): string {
  return `<${bar}tool▁${word}${bar}>`;
}

const NUMBERED_NAME = /[\w.:-]{1,200}/y;
const NAMESPACE = 'functions.';

/** Kimi K2: `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`. */
const kimiTokens: TextCallFormat = {
  openers: ['<|tool_calls_section_begin|>', '<|tool_call_begin|>'],
  read(cursor, { opener, tools }) {
    cursor.space();
    if (opener === '<|tool_calls_section_begin|>' && !cursor.take('<|tool_call_begin|>')) return undefined;
    cursor.space();
    const numbered = cursor.match(NUMBERED_NAME);
    cursor.space();
    if (numbered === undefined || !cursor.take('<|tool_call_argument_begin|>')) return undefined;
    const written = numbered.replace(/:\d+$/, '');
    // The namespace is usually not part of the tool's name.
    const isName = !written.startsWith(NAMESPACE) || (!tools.any && tools.has(written));
    const name = isName ? written : written.slice(NAMESPACE.length);
    return cursor.closed(markedCall(cursor, name), ['<|tool_call_end|>', '<|tool_calls_section_end|>']);
  },
};

const WORDS = /[\s\w]{0,40}/y;

/** gpt-oss: `to=functions.name<|channel|>commentary json<|message|>{…}<|call|>`, in either order. */
const harmonyChannel: TextCallFormat = {
  // The preceding header of the message is not text for people.
  openers: [
    '',
    '<|channel|>commentary ',
    '<|channel|>analysis ',
    '<|start|>assistant ',
    '<|start|>assistant<|channel|>commentary ',
  ].map((header) => `${header}to=functions.`),
  read(cursor) {
    const name = cursor.match(NAME);
    if (name === undefined) return undefined;
    do {
      if (cursor.match(WORDS) === undefined) return undefined;
    } while (cursor.take('<|channel|>') || cursor.take('<|constrain|>'));
    if (!cursor.take('<|message|>')) return undefined;
    return cursor.closed(markedCall(cursor, name), ['<|call|>']);
  },
};

const LINE_BREAK = /[ \t\r]*\n/y;

/**
 * Functionary 3.2: `all` or a function name, its content on the next line, and further parts after `>>>`. The first
 * `>>>` is usually part of the prompt; without it, only a known name shows a call.
 */
const functionaryTurns: TextCallFormat = {
  openers: ['>>>', ''],
  looksLike: 'prose',
  read(cursor, { opener, tools, start }) {
    const call = opener === '' && tools.any ? undefined : readTurn(cursor, tools);
    // Text that starts here may still be a call of another format.
    if (call === undefined) cursor.at = start + opener.length;
    return cursor.closed(call, ['<|eot_id|>', '<|eom_id|>']);
  },
};

function readTurn(cursor: TextCursor, tools: KnownTools): DraftCall | undefined {
  const name = cursor.match(NAME);
  if (name === undefined || !tools.has(name) || cursor.match(LINE_BREAK) === undefined) return undefined;
  cursor.space();
  if (cursor.peek() !== '{') return undefined;
  const value = cursor.json({ relaxed: false })?.value;
  // Some models write the name of a tool above a whole call in JSON.
  const isCall = callsInValue(value, false).some((call) => tools.has(call.name));
  return isRecord(value) && !isCall ? { name, arguments: value } : undefined;
}

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
const FUNCTION_CLOSERS = ['</function>', '</tool_call>', '</seed:tool_call>'];

/**
 * `<function=name>` with JSON after it (Llama 3.1), or with `<parameter=key>value</parameter>` in it (Qwen3-Coder,
 * Nemotron, StepFun, Seed-OSS), with or without `<tool_call>` around it.
 */
const FUNCTION_DIALECT: Dialect = {
  before: WRAPPERS,
  // If the model omits the inner closing tag, the outer one closes both.
  after: FUNCTION_CLOSERS,
  passed: [],
  openers: ['<function=', '<function name='],
  parameters: ['<parameter=', '<parameter name='],
  ends: FUNCTION_CLOSERS,
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
const DSML_BARS = ['｜', '|', '｜｜', '||'];
const STEP_TOKENS = ['calls_begin', 'call_begin', 'sep', 'call_end', 'calls_end'].map(
  (word) => `<｜tool_${word}｜>`,
);

const INVOKE_DIALECTS: readonly Dialect[] = [
  // MiniMax M2, and models that were trained on its output.
  invokeDialect('', tags('minimax:tool_call', 'function_calls', 'tool_calls')),
  // DeepSeek V3.2 and V4.
  ...DSML_BARS.map((bar) => {
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
  const byOpener = new Map<string, Dialect>();
  for (const dialect of dialects)
    for (const mark of [...dialect.before, ...dialect.openers]) byOpener.set(mark, dialect);
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

const ARG_KEY = /[^<>\n]{1,200}/y;
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
    // `name` or `function<tool_sep>name`, then a JSON object, in a fence or bare.
    const written = '<{`'.includes(cursor.peek()) ? name : tagName(cursor);
    if (written !== undefined) {
      cursor.space();
      cursor.take('```json');
      const call = markedCall(cursor, written);
      if (call !== undefined) {
        cursor.closers(['```', tag('/tool_call')]);
        return call;
      }
    }
  }
  if (!tools.mayBe(name)) return undefined;
  const call = readParameters(cursor, { name, tools, ends: [tag('/tool_call')] }, (takes) => {
    if (!cursor.take(tag('arg_key'))) return undefined;
    const key = cursor.match(ARG_KEY)?.trim();
    if (key === undefined || !cursor.take(tag('/arg_key'))) return undefined;
    cursor.space();
    const text = cursor.take(tag('arg_value')) ? readValue(cursor, takes) : undefined;
    return text === undefined ? undefined : { key, text };
  });
  // Without parameters, only a known name shows a call.
  return tools.has(name) || Object.keys(call?.arguments ?? {}).length > 0 ? call : undefined;
}

const TAG_NAME = /[^\s"<>/{}[\]()=]{1,200}/y;

/** The name in a tag such as `<function=name>`, without quotes and white space. */
function tagName(cursor: TextCursor): string | undefined {
  cursor.space();
  if (cursor.take('"')) cursor.space();
  const name = cursor.match(TAG_NAME);
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
  const trimmed = text.trim();
  if (!/^[-\d[{(tTfFnN]/.test(trimmed)) return text;
  // The line break ends a number or word, which at the end of a text could continue.
  const reading = readRelaxedJson(`${trimmed}\n`, 0);
  if (reading.kind !== 'read' || reading.end !== trimmed.length) return text;
  const { value } = reading;
  if (types === undefined) return value;
  return types.has(jsonType(value)) || (typeof value === 'number' && types.has('integer')) ? value : text;
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
    known ??= new RegExp(
      [
        escapePattern(closer),
        `(?<next>${tags.next.source})`,
        `(?<outer>${tags.outer.source})`,
        `(?<call>${CALL})`,
        ...[...REASONING_OPENERS.keys(), ...REASONING_CLOSERS].map(escapePattern),
      ].join('|'),
      'g',
    );
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

const FUNCTION_NAME = /[\p{L}_][\p{L}\p{N}_.-]{0,199}/uy;
const KEYWORD = /[\p{L}_][\p{L}\p{N}_]{0,199}/uy;
const NEXT_LINE = /[ \t\r]*\n\s*/y;
const PYTHON_MARKS: ReadonlyMap<string, readonly string[]> = new Map([
  // Llama 4.
  ['<|python_start|>', ['<|python_end|>']],
  // LFM2.
  ['<|tool_call_start|>', ['<|tool_call_end|>']],
  // Llama 3 built-in tools.
  ['<|python_tag|>', ['<|eom_id|>', '<|eot_id|>']],
  // Gemma 3.
  ['```tool_code', ['```']],
  // OLMo 3, one call per line.
  ['<function_calls>', ['</function_calls>']],
]);

/** Calls in Python between marks: `[f(a=1), g(b='x')]`, or a single `f(a=1)`; keyword arguments only. */
const pythonicCalls: TextCallFormat = {
  openers: [...PYTHON_MARKS.keys()],
  read(cursor, { opener, tools }) {
    cursor.space();
    const calls = cursor.take('[') ? readPythonList(cursor, tools) : readLines(cursor, tools);
    if (calls !== undefined && !cursor.tailOpen) cursor.closers(PYTHON_MARKS.get(opener) ?? []);
    return calls;
  },
};

/** The list without marks, which Llama 4 also writes. */
const pythonicList: TextCallFormat = {
  openers: ['['],
  looksLike: 'prose',
  read: (cursor, { tools }) => readPythonList(cursor, tools),
};

function readPythonList(cursor: TextCursor, tools: KnownTools): readonly DraftCall[] | undefined {
  const calls: DraftCall[] = [];
  do {
    const call = readPythonCall(cursor, tools);
    if (call === undefined) return undefined;
    calls.push(call);
    cursor.space();
  } while (cursor.take(','));
  return cursor.take(']') ? calls : undefined;
}

/** A call, and further calls on separate lines. */
function readLines(cursor: TextCursor, tools: KnownTools): readonly DraftCall[] | undefined {
  const calls = readSingle(cursor, tools)?.slice();
  if (calls === undefined) return undefined;
  for (;;) {
    const before = cursor.at;
    cursor.match(NEXT_LINE);
    const more = cursor.at === before ? undefined : readSingle(cursor, tools);
    if (more === undefined) {
      cursor.at = before;
      cursor.tailOpen = cursor.ranOut;
      return calls;
    }
    calls.push(...more);
  }
}

/** Gemma prints its calls: `print(default_api.f(a=1))`. */
function readSingle(cursor: TextCursor, tools: KnownTools): readonly DraftCall[] | undefined {
  const isPrinted = cursor.take('print(');
  cursor.take('default_api.');
  const call = readPythonCall(cursor, tools);
  if (isPrinted) cursor.space();
  return call === undefined || (isPrinted && !cursor.take(')')) ? undefined : [call];
}

function readPythonCall(cursor: TextCursor, tools: KnownTools): DraftCall | undefined {
  cursor.space();
  const written = cursor.match(FUNCTION_NAME);
  if (written === undefined) return undefined;
  const name = tools.has(written) ? written : written.replace(/\.call$/, '');
  if (!tools.mayBe(name) || !cursor.take('(')) return undefined;
  const entries = readEntries(cursor, ')', (): Entry | undefined => {
    const key = cursor.match(KEYWORD);
    cursor.space();
    if (key === undefined || !cursor.take('=')) return undefined;
    const reading = cursor.relaxed();
    return reading && [key, reading.value];
  });
  return entries && { name, arguments: Object.fromEntries(entries) };
}

type Entry = readonly [key: string, value: unknown];

/** The entries up to a closing mark, with commas between them. */
function readEntries<Value>(
  cursor: TextCursor,
  closer: string,
  read: () => Value | undefined,
): readonly Value[] | undefined {
  const entries: Value[] = [];
  for (;;) {
    cursor.space();
    if (cursor.take(closer)) return entries;
    const entry = read();
    if (entry === undefined) return undefined;
    entries.push(entry);
    cursor.space();
    if (!cursor.take(',') && cursor.peek() !== closer) return undefined;
  }
}

const GEMMA_KEY = /[^\s:{}[\],<>"]{1,200}/y;
const MOST_LEVELS = 100;

/** The start and end of a call, and the quotation marks of texts. */
const GEMMA_MARKS: ReadonlyMap<string, { readonly closer: string; readonly quote: string }> = new Map([
  // Gemma 4.
  ['<|tool_call>', { closer: '<tool_call|>', quote: '<|"|>' }],
  // FunctionGemma.
  ['<start_function_call>', { closer: '<end_function_call>', quote: '<escape>' }],
]);

/** `call:f{a:<|"|>text<|"|>,b:1,c:[true]}`, between the marks of Gemma 4 or FunctionGemma. */
const gemmaCalls: TextCallFormat = {
  openers: [...GEMMA_MARKS.keys()],
  read(cursor, { opener, tools }) {
    const marks = GEMMA_MARKS.get(opener);
    if (marks === undefined) return undefined;
    cursor.space();
    if (!cursor.take('call:')) return undefined;
    const name = cursor.match(NAME);
    if (name === undefined || !tools.mayBe(name)) return undefined;
    const args = readObject(cursor, marks.quote, 0);
    return cursor.closed(args && { name, arguments: args }, [marks.closer]);
  },
};

/** Reads the value at the cursor; returns `undefined` if there is no value. */
function readValue(cursor: TextCursor, quote: string, level: number): unknown {
  cursor.space();
  if (level > MOST_LEVELS) return undefined;
  if (cursor.take(quote)) return cursor.until(quote);
  if (cursor.peek() === '{') return readObject(cursor, quote, level);
  if (cursor.take('[')) return readEntries(cursor, ']', () => readValue(cursor, quote, level + 1));
  return cursor.relaxed()?.value;
}

function readObject(cursor: TextCursor, quote: string, level: number): JsonObject | undefined {
  if (!cursor.take('{')) return undefined;
  const entries = readEntries(cursor, '}', (): Entry | undefined => {
    const key = cursor.take(quote) ? cursor.until(quote) : cursor.match(GEMMA_KEY);
    cursor.space();
    if (key === undefined || !cursor.take(':')) return undefined;
    const value = readValue(cursor, quote, level + 1);
    return value === undefined ? undefined : [key, value];
  });
  return entries && Object.fromEntries(entries);
}

/** Every format; formats with the same opener are tried in this order. */
export const ALL_FORMATS: readonly TextCallFormat[] = [
  // JSON between marks.
  taggedJson,
  apertusTools,
  mistralMarks,
  deepseekTokens,
  kimiTokens,
  harmonyChannel,
  functionaryTurns,
  // Tags.
  tagFormat([FUNCTION_DIALECT]),
  ...ARG_KEY_FORMATS,
  tagFormat(INVOKE_DIALECTS),
  // Code.
  gemmaCalls,
  pythonicCalls,
  pythonicList,
  fencedJson,
  bareJson,
];
