// Strict forms of other people's schemas: how many have one, and whether all of them lie within the documented
// subset, beside what OpenAI's own converter makes of the same.
// npm run measure:strict -- <folder with openai-strict.jsonl and mcp-tool-lists/>
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toStrictJsonSchema } from 'openai/lib/transform';
import { strictSchema } from '../../dist/src/index.js';
import { outsideSubset } from '../parts/schema/strict-subset.ts';
import { readSuite } from './read-suite.mjs';

const details = process.argv.includes('--details');
const rows = readSuite('openai-strict.jsonl').map(({ test, input, args, error }) => ({
  name: test,
  schema: input ?? args?.[0],
  isRefused: error !== undefined,
}));
const given = process.argv[2] ?? process.env.TOOLWRIGHT_SUITES ?? '.';
const folder = join(given, 'mcp-tool-lists');
const tools = (existsSync(folder) ? readdirSync(folder) : [])
  .filter((name) => name.endsWith('.json'))
  .flatMap((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')).tools)
  .map(({ name, inputSchema }) => ({ name, schema: inputSchema }));

let outside = 0;
measure('schemas of OpenAI’s own tests', rows);
measure(
  'of those, the ones its converters refuse',
  rows.filter(({ isRefused }) => isRefused),
);
measure('tools of MCP servers', tools);
process.exitCode = outside === 0 ? 0 : 1;

function measure(title, cases) {
  const schemas = cases.filter(({ schema }) => typeof schema === 'object' && schema !== null);
  const forms = schemas.map(({ name, schema }) => ({ name, schema, form: strictSchema(schema) }));
  const strict = forms.filter(({ form }) => form.isStrict);
  const wrong = strict.filter(({ form }) => outsideSubset(form.schema).length > 0);
  const theirs = schemas.map(({ schema }) => converted(schema)).filter((each) => each !== undefined);
  const within = theirs.filter((schema) => outsideSubset(schema).length === 0);
  outside += wrong.length;
  console.log(
    `${title}: ${share(strict, schemas)} have a strict form, ${wrong.length} of them outside the subset; ` +
      `the converter of the package openai converts ${share(theirs, schemas)}, ${within.length} of them within it`,
  );
  for (const { name, form } of wrong) console.log(`  ${name}: ${outsideSubset(form.schema).join('; ')}`);
  if (!details) return;
  for (const { name, form } of forms)
    if (!form.isStrict) console.log(`  ${name}: ${form.reasons.join('; ')}`);
}

/** What the package openai makes of a schema; nothing where it refuses. */
function converted(schema) {
  try {
    return toStrictJsonSchema(schema);
  } catch {
    return undefined;
  }
}

function share(part, whole) {
  return `${part.length} of ${whole.length} (${((100 * part.length) / whole.length).toFixed(1)} %)`;
}
