import type { DraftCall } from '../draft-call.js';
import type { KnownTools } from '../known-tools.js';
import { readParameterText } from '../parameter-text.js';
import type { TextCursor } from '../text-cursor.js';
import { rawValueReader } from './raw-value.js';
import { tagName } from './tag-name.js';
import type { TextCallFormat } from './text-call-format.js';

/** One family's way of writing it: what its tags begin with, and what stands around the calls. */
interface Dialect {
  readonly prefix: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** Tags around the calls of a message. */
function tags(...names: readonly string[]): Pick<Dialect, 'before' | 'after'> {
  return { before: names.map((name) => `<${name}>`), after: names.map((name) => `</${name}>`) };
}

// DeepSeek's marks have full-width bars; some servers decode them to plain ones.
const BARS = ['｜', '|', '｜｜', '||'];
const STEP_TOKENS = ['calls_begin', 'call_begin', 'sep', 'call_end', 'calls_end'].map(
  (word) => `<｜tool_${word}｜>`,
);

const DIALECTS: readonly Dialect[] = [
  // MiniMax M2, and models that learnt it from others.
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

const VALUES = new Map(DIALECTS.map(({ prefix }) => [prefix, valueReader(prefix)]));

/** `<invoke name="f"><parameter name="k">value</parameter></invoke>`, with the marks of a family around it. */
export const invokeTags: TextCallFormat = {
  openers: DIALECTS.flatMap(({ prefix, before }) => [...before, `<${prefix}invoke name=`]),
  read(cursor, { opener, tools }) {
    const dialect = DIALECTS.find(({ prefix, before }) =>
      opener.endsWith('name=') ? opener === `<${prefix}invoke name=` : before.includes(opener),
    );
    if (dialect === undefined) return undefined;
    if (!opener.endsWith('name=') && !passWrappers(cursor, dialect)) return undefined;
    const call = readInvoke(cursor, dialect.prefix, tools);
    if (call === undefined) return undefined;
    cursor.closers(dialect.after);
    return [call];
  },
};

/** Further marks before the call, up to its opening tag. */
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
    // DeepSeek tells strings from JSON.
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
