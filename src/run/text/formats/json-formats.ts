import type { JsonObject } from '../../../core/contract/json-schema.js';
import { readExactJson } from '../../../core/kernel/exact-json.js';
import { isRecord } from '../../../core/kernel/json.js';
import type { DraftCall, KnownTools, TextCallFormat } from '../known-tools.js';
import { jsonSpan, type ReadJson, type TextCursor } from '../text-cursor.js';

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
const MARKS: ReadonlyMap<string, readonly string[]> = new Map([
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
  openers: [...MARKS.keys()],
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
    if (!cursor.tailOpen) cursor.closers(MARKS.get(opener) ?? []);
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
    const calls = json.value.flatMap((item) => {
      const [entry, ...others] = isRecord(item) ? Object.entries(item) : [];
      if (entry === undefined || others.length > 0 || !isRecord(entry[1])) return [];
      return [{ name: entry[0], arguments: entry[1] }];
    });
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
    const calls = '{['.includes(cursor.peek()) ? readCalls(cursor) : readNamed(cursor);
    if (calls !== undefined) cursor.closers(['[/TOOL_CALLS]']);
    return calls;
  },
};

function readNamed(cursor: TextCursor) {
  const name = cursor.match(NAME);
  if (name === undefined) return undefined;
  const id = cursor.take('[CALL_ID]') ? cursor.match(NAME) : undefined;
  cursor.take('[ARGS]');
  const call = markedCall(cursor, name);
  return call === undefined ? undefined : [id === undefined ? call : { ...call, id }];
}

/** The call of a name that was read, with the following JSON object as its arguments. */
export function markedCall(cursor: TextCursor, name: string): DraftCall | undefined {
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
 * with `function` and `tool_calls`, or an array of those.
 */
function callsInJson(json: ReadJson, { text, marked }: ShapeOptions): readonly DraftCall[] {
  const calls = callsInValue(json.value, marked);
  if (json.members === undefined) return calls;
  // If it is not strict JSON, the raw text is used: the read step repairs it and records the repair, so that tools
  // can refuse repaired arguments.
  const span = json.members.get('arguments') ?? json.members.get('parameters');
  const [call, ...others] = calls;
  if (call === undefined || others.length > 0 || Array.isArray(json.value)) return [];
  if (span === undefined) return marked && isEmpty(call.arguments) ? [call] : [];
  const raw = text.slice(span.start, span.end);
  return [{ ...call, arguments: parseObject(raw) ?? raw }];
}

function callsInValue(value: unknown, marked: boolean): readonly DraftCall[] {
  if (Array.isArray(value))
    return value.flatMap((item) => (isRecord(item) ? callsInObject(item, marked) : []));
  return isRecord(value) ? callsInObject(value, marked) : [];
}

function callsInObject(value: JsonObject, marked: boolean): readonly DraftCall[] {
  const list = own(value, 'tool_calls');
  if (Array.isArray(list)) return list.flatMap((item) => (isRecord(item) ? callsInObject(item, false) : []));
  const wrapped = own(value, 'function');
  const call = isRecord(wrapped) ? toCall(wrapped, false) : toCall(value, marked);
  if (call === undefined) return [];
  const id = own(value, 'id') ?? own(value, 'tool_call_id');
  return [typeof id === 'string' && id !== '' ? { ...call, id } : call];
}

function toCall(value: JsonObject, marked: boolean): DraftCall | undefined {
  const name = own(value, 'name') ?? own(value, 'tool_name');
  const key = ['arguments', 'parameters'].find((candidate) => Object.hasOwn(value, candidate));
  if (typeof name !== 'string' || (key === undefined && !marked)) return undefined;
  const sent = key === undefined ? {} : value[key];
  if (key === 'parameters' && isSchema(sent)) return undefined;
  return { name, arguments: normalizeArguments(sent) };
}

/** A model that quotes a tool's definition does not call it. */
function isSchema(value: unknown): boolean {
  return isRecord(value) && own(value, 'type') === 'object' && isRecord(own(value, 'properties'));
}

function normalizeArguments(sent: unknown): JsonObject | string {
  if (isRecord(sent)) return sent;
  if (typeof sent === 'string') return parseObject(sent) ?? sent;
  return sent === null ? {} : JSON.stringify(sent);
}

function own(value: JsonObject, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

function isEmpty(value: JsonObject | string): boolean {
  return typeof value === 'object' && Object.keys(value).length === 0;
}

function parseObject(text: string): JsonObject | undefined {
  const value = readExactJson(text)?.value;
  return isRecord(value) ? value : undefined;
}

/** How a JSON value is read. */
interface ShapeOptions {
  readonly text: string;
  /** A call may omit its arguments, because the marks show that it is a call. */
  readonly marked: boolean;
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
    const call = readCall(cursor, token('sep', bar));
    return cursor.closed(call, ['```', token('call▁end', bar), token('calls▁end', bar)]);
  },
};

function readCall(cursor: TextCursor, separator: string): DraftCall | undefined {
  const first = cursor.match(NAME);
  if (first === undefined || !cursor.take(separator)) return undefined;
  cursor.space();
  if (cursor.peek() === '{') return markedCall(cursor, first);
  const name = cursor.match(NAME);
  if (name === undefined) return undefined;
  cursor.space();
  cursor.take('```json');
  return markedCall(cursor, name);
}

function token(word: string, bar: string): string {
  return `<${bar}tool▁${word}${bar}>`;
}

const NUMBERED_NAME = /[\w.:-]{1,200}/y;

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
    const call = markedCall(cursor, plainName(numbered.replace(/:\d+$/, ''), tools));
    return cursor.closed(call, ['<|tool_call_end|>', '<|tool_calls_section_end|>']);
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

const NAMESPACE = 'functions.';

/** A tool's name without the namespace that some formats put before every function. */
function plainName(name: string, tools: KnownTools): string {
  if (!name.startsWith(NAMESPACE) || (!tools.any && tools.has(name))) return name;
  return name.slice(NAMESPACE.length);
}

/** Calls in JSON between special marks. */
export const MARKED_JSON: readonly TextCallFormat[] = [
  taggedJson,
  apertusTools,
  mistralMarks,
  deepseekTokens,
  kimiTokens,
  harmonyChannel,
  functionaryTurns,
];

/** Calls in JSON without marks. */
export const PLAIN_JSON: readonly TextCallFormat[] = [fencedJson, bareJson];
