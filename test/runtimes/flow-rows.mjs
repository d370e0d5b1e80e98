import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { flowTests } from './flow-tests.mjs';
import { BIN, node, run } from './processes.mjs';
import { inWorkerd, WORKER_BUILD } from './worker.mjs';

const MAIN = {
  esm: { name: 'flow-esm', file: 'main.mjs', format: 'esm' },
  cjs: { name: 'flow-cjs', file: 'main.cjs', format: 'cjs' },
};
const WITHOUT_CODE = '--disallow-code-generation-from-strings';

/** These fail in Bun, where a Response created from a text has no content type. */
const BUN_RESPONSES = [
  'bytes and files that a tool returns › become text if a stream or Response contains text',
  'bytes and files that a tool returns › are errors if a Response failed or was already read',
];

/** The runtimes that run a part of the flow tests, bundled into one file. */
export const FLOW_ROWS = [
  row('Node.js, one ESM file', '`node main.mjs`', (folder) => node(folder, ['main.mjs'])),
  row('Node.js without code generation, one ESM file', `\`node ${WITHOUT_CODE} main.mjs\``, (folder) =>
    node(folder, [WITHOUT_CODE, 'main.mjs']),
  ),
  row(
    'Node.js without code generation, one CommonJS file',
    `\`node ${WITHOUT_CODE} main.cjs\``,
    (folder) => node(folder, [WITHOUT_CODE, 'main.cjs']),
    MAIN.cjs,
  ),
  row('Bun, one ESM file', '`bun main.mjs`', (folder) => run(folder, `${BIN}bun`, ['main.mjs']), {
    ...MAIN.esm,
    expectedFailures: BUN_RESPONSES,
  }),
  row('Deno, one ESM file', '`deno run --allow-read --allow-env main.mjs`', (folder) =>
    run(folder, `${BIN}deno`, ['run', '--allow-read', '--allow-env', 'main.mjs']),
  ),
  row(
    'Cloudflare Workers, one ESM file',
    'workerd, `nodejs_compat`',
    (folder) => inWorkerd(readFileSync(join(folder, 'worker.js'), 'utf8')),
    { name: 'flow-worker', file: 'worker.js', format: 'esm', entry: 'worker.mjs', options: WORKER_BUILD },
  ),
];

function row(name, command, runIn, { expectedFailures = [], ...bundle } = MAIN.esm) {
  return { name, command, expectedFailures, run: async (folders) => runIn(await flowTests(folders, bundle)) };
}

/** The results of a row, with a `problem` if anything but the expected failures failed. */
export async function flowOutcome({ run, expectedFailures }, folders) {
  const { passed, failed } = JSON.parse(await run(folders));
  const counts = `${passed} passed, ${failed.length} failed`;
  const isExpected = (text) => expectedFailures.some((name) => text.startsWith(name));
  const unexpected = failed.filter((text) => !isExpected(text));
  if (unexpected.length > 0 || failed.length !== expectedFailures.length)
    return { counts, problem: failed.join('\n') };
  return { counts, problem: passed === 0 ? 'no tests were run' : undefined };
}
