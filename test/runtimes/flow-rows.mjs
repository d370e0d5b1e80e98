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

/** In Bun, a Response that a tool makes of a text has no content type. */
const BUN_RESPONSES = [
  'bytes and files that a tool returns › become text if a stream or Response contains text',
  'bytes and files that a tool returns › are errors if a Response failed or was already read',
];

/** Where a part of the flow tests runs, out of one file in a folder of its own. */
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
    but: BUN_RESPONSES,
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

function row(name, command, runIn, { but = [], ...bundle } = MAIN.esm) {
  return { name, command, but, run: async (folders) => runIn(await flowTests(folders, bundle)) };
}

/** How the tests of a row ended; `problem` where others failed than the page says. */
export async function flowOutcome({ run, but }, folders) {
  const { passed, failed } = JSON.parse(await run(folders));
  const counts = `${passed} passed, ${failed.length} failed`;
  const isKnown = (text) => but.some((name) => text.startsWith(name));
  const others = failed.filter((text) => !isKnown(text));
  if (others.length > 0 || failed.length !== but.length) return { counts, problem: failed.join('\n') };
  return { counts, problem: passed === 0 ? 'there were no tests' : undefined };
}
