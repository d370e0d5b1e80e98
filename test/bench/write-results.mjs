/* Writes the tables of a run to results.md, which docs/internals/benchmark.md summarizes. */
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

const RESULTS = join(import.meta.dirname, 'results.md');
const HEAD = `# Results of the benchmark

[Benchmark](../../docs/internals/benchmark.md) describes how these figures are measured. \`npm run bench -- --write\` writes them.`;

/** Describes the command and the machine of a run in one line. */
export function describeRun({ quick, write, check }) {
  const flags = [quick && '--quick', write && '--write', check && '--check'].filter(Boolean);
  const command = ['npm run bench', ...(flags.length > 0 ? ['--', ...flags] : [])].join(' ');
  const day = new Date().toISOString().slice(0, 10);
  return `\`${command}\`, ${day}, ${process.platform} ${process.arch}, ${availableParallelism()} cores, Node ${process.version}`;
}

export function readResults() {
  return readFileSync(RESULTS, 'utf8');
}

export function writeResults(values, tables) {
  writeFileSync(RESULTS, `${[HEAD, describeRun(values), ...tables, versions()].join('\n\n')}\n`);
}

/** The versions of the peers in `package.json`, without packages that only peers require. */
function versions() {
  const { dependencies } = JSON.parse(readFileSync(join(import.meta.dirname, 'package.json'), 'utf8'));
  const list = Object.entries(dependencies)
    .filter(([name]) => !/^@(opentelemetry|modelcontextprotocol)\//.test(name))
    .map(([name, version]) => `${name} ${version}`);
  return `Versions: ${list.join(', ')}.`;
}
