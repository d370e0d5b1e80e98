/* Puts the tables of a run into docs/internals/benchmark.md, between two markers; the text around them stays. */
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

const DOCS = join(import.meta.dirname, '..', '..', 'docs', 'internals', 'benchmark.md');
const BEGIN = '<!-- results: begin -->';
const END = '<!-- results: end -->';

/** One line on where and how a run was made. */
export function describeRun({ quick, write, check }) {
  const flags = [quick && '--quick', write && '--write', check && '--check'].filter(Boolean);
  const command = ['npm run bench', ...(flags.length > 0 ? ['--', ...flags] : [])].join(' ');
  const day = new Date().toISOString().slice(0, 10);
  return `\`${command}\`, ${day}, ${process.platform} ${process.arch}, ${availableParallelism()} cores, Node ${process.version}`;
}

/** What stands between the markers. */
export function readResults() {
  return readFileSync(DOCS, 'utf8').split(BEGIN)[1]?.split(END)[0] ?? '';
}

/** Replaces what stands between the markers. */
export function writeResults(values, tables) {
  const text = readFileSync(DOCS, 'utf8');
  const [before, rest] = text.split(BEGIN);
  const after = rest?.split(END)[1];
  if (after === undefined)
    throw new Error(`docs/internals/benchmark.md lacks the markers ${BEGIN} and ${END}`);
  const results = [describeRun(values), ...tables, versions()].join('\n\n');
  writeFileSync(DOCS, `${before}${BEGIN}\n\n${results}\n\n${END}${after}`);
}

/** What was measured against, as `package.json` pins it; what the peers themselves need is left out. */
function versions() {
  const { dependencies } = JSON.parse(readFileSync(join(import.meta.dirname, 'package.json'), 'utf8'));
  const list = Object.entries(dependencies)
    .filter(([name]) => !/^@(opentelemetry|modelcontextprotocol)\//.test(name))
    .map(([name, version]) => `${name} ${version}`);
  return `Versions: ${list.join(', ')}.`;
}
