/*
 * Measures the parsing of tool calls in text by model family, with texts and templates of other projects: as a whole,
 * and streamed through `withTextTools` in chunks of 1, 3 and 7 characters, which must give the same result.
 *
 *   node test/measure/text-tool-calls.mjs [folder] [--wrong]   (default: TOOLWRIGHT_SUITES; needs `npm run build`)
 *
 * The folder contains `text-tool-calls.jsonl` and `text-round-trip.jsonl`, one row per text:
 * `{ family, input, tools?, expected: { calls: [{ name, arguments }] } }`, or `asserts` instead of `expected`.
 * Only expectations about calls are checked. `found` compares the calls of the parser; `read` compares them after the
 * read step, which repairs arguments that are not strict JSON.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

const FILES = ['text-round-trip.jsonl', 'text-tool-calls.jsonl'];
const CHUNKS = [1, 3, 7];
const BUILT = '../../dist/src';

const folder =
  process.argv.slice(2).find((argument) => !argument.startsWith('--')) ?? process.env.TOOLWRIGHT_SUITES;
const showsWrong = process.argv.includes('--wrong');
await main();

async function main() {
  const present = folder ? FILES.filter((file) => existsSync(join(folder, file))) : [];
  if (present.length === 0) {
    const reason = folder
      ? `${folder} contains neither file`
      : 'no folder was given and TOOLWRIGHT_SUITES is not set';
    console.log(`text-tool-calls: skipped because ${reason}`);
    return;
  }
  const { ToolCallParser, withTextTools } = await import(`${BUILT}/index.js`);
  const { readArguments } = await import(`${BUILT}/tools/checking/read-arguments.js`);
  const outcomes = [];
  for (const file of present) {
    for (const row of readRows(join(folder, file))) {
      outcomes.push(await measure(row, { file, ToolCallParser, withTextTools, readArguments }));
    }
  }
  print(outcomes);
  if (outcomes.some(({ isSame }) => !isSame)) process.exitCode = 1;
}

function readRows(path) {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

async function measure(source, { file, ToolCallParser, withTextTools, readArguments }) {
  // Some sources use an empty list if no tools were given.
  const row = { ...source, tools: source.tools?.length ? source.tools : undefined };
  const calls = new ToolCallParser({ tools: row.tools }).parse(row.input).toolCalls;
  const read = calls.map((call) => {
    const result = readArguments(call.arguments);
    return result.ok ? { ...call, arguments: result.value } : call;
  });
  const outcome = { file, row, calls, isFound: isRight(row, calls), isRead: isRight(row, read) };
  return { ...outcome, isSame: await isSameInChunks(row, withTextTools) };
}

function isRight({ expected, asserts }, calls) {
  if (asserts) return asserts.every((assert) => holds(assert, { calls }));
  const plain = calls.map(({ name, arguments: args }) => ({ name, arguments: args }));
  const wanted = expected.calls.map(({ name, arguments: args }) => ({ name, arguments: args }));
  return isDeepStrictEqual(plain, wanted);
}

/** Assertions look like `[verb, 'calls[0].arguments.city', value]`; those about anything but calls are skipped. */
function holds([verb, path, wanted], found) {
  if (!path.startsWith('calls')) return true;
  const value = valueAt(found, path);
  const asText = typeof value === 'string' ? value : JSON.stringify(value);
  switch (verb) {
    case 'eq':
      return path.endsWith('_json') ? sameJson(value, wanted) : isDeepStrictEqual(value, wanted);
    case 'ne':
      return !isDeepStrictEqual(value, wanted);
    case 'contains':
      return asText?.includes(wanted) ?? false;
    case 'not_contains':
      return !asText?.includes(wanted);
    case 'empty':
      return value?.length === 0;
    case 'EmptyArgs':
      return isDeepStrictEqual(value, {});
    case 'HasKeys':
      return wanted.every((key) => Object.hasOwn(value ?? {}, key));
    case 'is_array':
      return Array.isArray(value);
    case 'is_object':
    case 'IsType':
      return typeof value === 'object' && value !== null;
    case 'is_string':
      return typeof value === 'string';
    default:
      return true;
  }
}

function valueAt(found, path) {
  const keys = path.match(/[^.[\]]+/g);
  return keys.reduce((value, key) => {
    if (key === 'arguments_json') return JSON.stringify(value?.arguments);
    return value?.[/^\d+$/.test(key) && Array.isArray(value) ? Number(key) : key];
  }, found);
}

function sameJson(value, wanted) {
  try {
    return isDeepStrictEqual(JSON.parse(value), JSON.parse(wanted));
  } catch {
    return value === wanted;
  }
}

async function isSameInChunks(row, withTextTools) {
  const tools = (row.tools ?? namesIn(row).map((name) => ({ name }))).map(toSchema);
  const request = {
    model: 'recorded',
    messages: [{ role: 'user', content: 'recorded' }],
    tools,
    options: {},
  };
  const response = { content: row.input, toolCalls: [], finishReason: 'stop' };
  const whole = await withTextTools({ chat: async () => response }).chat(request);
  for (const size of CHUNKS) {
    const provider = withTextTools({
      chat: async () => response,
      async *stream() {
        for (let at = 0; at < row.input.length; at += size) {
          yield { type: 'text-delta', text: row.input.slice(at, at + size) };
        }
        yield { type: 'response', response };
      },
    });
    let text = '';
    for await (const part of provider.stream(request)) {
      if (part.type === 'text-delta') text += part.text;
      else if (!isDeepStrictEqual(part.response, whole) || text !== whole.content) return false;
    }
  }
  return true;
}

/** Rows without tools are streamed with a tool for each name in the text. */
function namesIn({ input }) {
  return [...new Set(input.match(/[\p{L}_][\p{L}\p{N}_.-]{1,63}/gu))].slice(0, 500);
}

function toSchema(tool) {
  const { name, description = '', parameters = {} } = tool.function ?? tool;
  return { type: 'function', function: { name, description, parameters } };
}

function print(outcomes) {
  for (const [file, ofFile] of Map.groupBy(outcomes, (outcome) => outcome.file)) {
    console.log(`\n${file.padEnd(24)} rows    found            read             same in chunks`);
    const families = [...Map.groupBy(ofFile, ({ row }) => row.family)].sort();
    for (const [family, rows] of [...families, ['all', ofFile]]) {
      const cells = ['isFound', 'isRead', 'isSame'].map((key) =>
        share(rows.filter((row) => row[key]).length, rows),
      );
      console.log(`  ${family.padEnd(22)} ${String(rows.length).padStart(4)}    ${cells.join('  ')}`);
    }
  }
  if (!showsWrong) return;
  for (const { row, calls, isRead, isSame } of outcomes) {
    if (isRead && isSame) continue;
    console.log(
      `\n${isSame ? 'WRONG' : 'DIFFERS IN CHUNKS'} ${row.suite ?? row.template} ${row.ref ?? row.id}`,
    );
    console.log(`  text   ${JSON.stringify(row.input).slice(0, 300)}`);
    console.log(`  found  ${JSON.stringify(calls.map((call) => [call.name, call.arguments])).slice(0, 300)}`);
    console.log(`  wanted ${JSON.stringify(row.expected?.calls ?? row.asserts).slice(0, 300)}`);
  }
}

function share(count, rows) {
  return `${count}/${rows.length}`.padEnd(8) + `${((100 * count) / rows.length).toFixed(1)} %`.padEnd(7);
}
