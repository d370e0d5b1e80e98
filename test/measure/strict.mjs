// Measures how many schemas of other projects have a strict form, and whether each form is within the documented
// subset, compared with OpenAI's own converter.
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
  isRejected: error !== undefined,
}));
const suites = process.argv[2] ?? process.env.TOOLWRIGHT_SUITES ?? '.';
const folder = join(suites, 'mcp-tool-lists');
const tools = (existsSync(folder) ? readdirSync(folder) : [])
  .filter((name) => name.endsWith('.json'))
  .flatMap((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')).tools)
  .map(({ name, inputSchema }) => ({ name, schema: inputSchema }));

let outside = 0;
measure('schemas of OpenAI’s own tests', rows);
measure(
  'those of them that its converters reject',
  rows.filter(({ isRejected }) => isRejected),
);
measure('tools of MCP servers', tools);
process.exitCode = outside === 0 ? 0 : 1;

function measure(title, cases) {
  const schemas = cases.filter(({ schema }) => typeof schema === 'object' && schema !== null);
  const forms = schemas.map(({ name, schema }) => ({ name, schema, form: strictSchema(schema) }));
  const strictForms = forms.filter(({ form }) => form.isStrict);
  const wrong = strictForms.filter(({ form }) => outsideSubset(form.schema).length > 0);
  const converted = schemas.map(({ schema }) => convert(schema)).filter((form) => form !== undefined);
  const within = converted.filter((schema) => outsideSubset(schema).length === 0);
  outside += wrong.length;
  console.log(
    `${title}: ${share(strictForms, schemas)} have a strict form, ${wrong.length} of them outside the subset; ` +
      `the package openai converts ${share(converted, schemas)}, ${within.length} of them within the subset`,
  );
  for (const { name, form } of wrong) console.log(`  ${name}: ${outsideSubset(form.schema).join('; ')}`);
  if (!details) return;
  for (const { name, form } of forms)
    if (!form.isStrict) console.log(`  ${name}: ${form.reasons.join('; ')}`);
}

/** Returns `undefined` if the package openai rejects the schema. */
function convert(schema) {
  try {
    return toStrictJsonSchema(schema);
  } catch {
    return undefined;
  }
}

function share(part, whole) {
  return `${part.length} of ${whole.length} (${((100 * part.length) / whole.length).toFixed(1)} %)`;
}
