// Compares validation (interpreted, as generated code, and with errors) with the JSON Schema Test Suite.
// npm run measure:schemas -- <folder with the suite's `tests`>
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { interpretSchema } from '../../dist/src/tools/checking/interpreter/interpret-schema.js';
import { schemaFaults } from '../../dist/src/tools/checking/schema-faults.js';

const folder = join(process.argv[2] ?? process.env.TOOLWRIGHT_SUITES ?? '.', 'tests');
if (!existsSync(folder)) {
  console.log(`${folder} does not exist; nothing was measured.`);
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
  // Skips schemas that refer to other files, boolean schemas, and schemas that are rejected at start-up.
  const measured = groups.filter(
    ({ schema, path }) =>
      typeof schema === 'object' &&
      !JSON.stringify(schema).includes('localhost:1234') &&
      !path.includes('optional') &&
      schemaFaults({ $schema, ...schema }).length === 0,
  );
  const tests = measured.reduce((sum, group) => sum + group.tests.length, 0);
  console.log(`${draft}: ${measured.length} of ${groups.length} schemas, ${tests} values`);
  for (const [engine, compile] of Object.entries(ENGINES)) {
    const failures = measured.flatMap(({ schema, path, description, tests: values }) =>
      values
        .filter(({ data, valid }) => isValid(compile, { $schema, ...schema }, data) !== valid)
        .map((value) => `${path}: ${description}: ${value.description}`),
    );
    console.log(`  ${engine}: ${tests - failures.length} correct, ${failures.length} wrong`);
    if (process.argv.includes('--list')) for (const line of failures) console.log(`    ${line}`);
  }
}

function isValid(compile, schema, value) {
  try {
    return compile(schema)(value);
  } catch (error) {
    return error.message;
  }
}
