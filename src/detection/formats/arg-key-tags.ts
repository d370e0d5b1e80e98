import type { DraftCall } from '../draft-call.js';
import type { KnownTools } from '../known-tools.js';
import { readParameterText } from '../parameter-text.js';
import type { TextCursor } from '../text-cursor.js';
import { markedCall } from './marked-call.js';
import { rawValueReader } from './raw-value.js';
import { tagName } from './tag-name.js';
import type { TextCallFormat } from './text-call-format.js';

const KEY = /[^<>\n]{1,200}/y;
// Hunyuan 4 writes a suffix into all of its tags.
const SUFFIXES = ['', ':opensource'];

/** A family's tags, by what they are called. */
type Tags = (name: string) => string;

const DIALECTS = SUFFIXES.map((suffix) => {
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
 * `<tool_calls>` around it and `<tool_sep>` behind the name, where its older models write JSON.
 */
export const argKeyTags: TextCallFormat = {
  openers: DIALECTS.flatMap(({ tag }) => [tag('tool_call'), tag('tool_calls')]),
  read(cursor, { opener, tools }) {
    const dialect = DIALECTS.find(({ tag }) => opener === tag('tool_call') || opener === tag('tool_calls'));
    if (dialect === undefined) return undefined;
    const { tag } = dialect;
    cursor.space();
    if (opener === tag('tool_calls') && !cursor.take(tag('tool_call'))) return undefined;
    const call = readCall(cursor, dialect, tools);
    if (call !== undefined) cursor.closers([tag('/tool_calls')]);
    return call && [call];
  },
};

function readCall(
  cursor: TextCursor,
  { tag, readValue }: (typeof DIALECTS)[number],
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
  if (call === undefined) return undefined;
  cursor.closers(['```', tag('/tool_call')]);
  return call;
}
