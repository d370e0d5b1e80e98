// How far the checks agree with the JSON Schema Test Suite, interpreted, as generated code and with errors.
// npm run measure:schemas -- <folder with the suite's `tests`>
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { interpretSchema } from '../../dist/src/tools/checking/interpreter/interpret-schema.js';
import { schemaFaults } from '../../dist/src/tools/checking/schema-faults.js';

const folder = join(process.argv[2] ?? process.env.TOOLWRIGHT_SUITES ?? '.', 'tests');
if (!existsSync(folder)) {
  console.log(`${folder} is not there: nothing measured.`);
  process.exit(0);
}
const DRAFTS = {
  draft7: 'http://json-schema.org/draft-07/schema#',
  'draft2019-09': 'https://json-schema.org/draft/2019-09/schema',
  'draft2020-12': 'https://json-schema.org/draft/2020-12/schema',
};
const ENGINES = {
  interpreted: (schema) => interpretSchema(schema).test,
  generated: (schema) => {
    const { test, generate = () => test } = interpretSchema(schema);
    return generate();
  },
  'with errors': (schema) => {
    const { check } = interpretSchema(schema);
    return (value) => check(value) === undefined;
  },
};

for (const [draft, $schema] of Object.entries(DRAFTS)) {
  const groups = readdirSync(join(folder, draft), { recursive: true })
    .filter((path) => path.endsWith('.json'))
    .flatMap((path) =>
      JSON.parse(readFileSync(join(folder, draft, path), 'utf8')).map((group) => ({ ...group, path })),
    );
  // Other files' schemas are not loaded, booleans are not parameters, and what is refused at start-up is not asked.
  const asked = groups.filter(
    ({ schema, path }) =>
      typeof schema === 'object' &&
      !JSON.stringify(schema).includes('localhost:1234') &&
      !path.includes('optional') &&
      schemaFaults({ $schema, ...schema }).length === 0,
  );
  const tests = asked.reduce((sum, group) => sum + group.tests.length, 0);
  console.log(`${draft}: ${asked.length} of ${groups.length} schemas, ${tests} values`);
  for (const [engine, make] of Object.entries(ENGINES)) {
    const wrong = asked.flatMap(({ schema, path, description, tests: values }) =>
      values
        .filter(({ data, valid }) => verdict(make, { $schema, ...schema }, data) !== valid)
        .map((value) => `${path}: ${description}: ${value.description}`),
    );
    console.log(`  ${engine}: ${tests - wrong.length} right, ${wrong.length} wrong`);
    if (process.argv.includes('--list')) for (const line of wrong) console.log(`    ${line}`);
  }
}

function verdict(make, schema, value) {
  try {
    return make(schema)(value);
  } catch (error) {
    return error.message;
  }
}
