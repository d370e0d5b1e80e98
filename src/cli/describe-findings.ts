import type { Finding } from '../typegen/analysis/class-draft.js';
import { shownPath } from './generated-file.js';

/** Everything that was found, as one block: one paragraph where it is one, otherwise numbered. */
export function describeFindings(findings: readonly Finding[], folder: string): string {
  const [only, second] = findings;
  if (only !== undefined && second === undefined) return `${describeOne(only, folder)}\n`;
  const numbered = findings.map((finding, index) => `${index + 1}. ${describeOne(finding, folder)}\n`);
  return [`${findings.length} things cannot be generated:\n`, ...numbered].join('\n');
}

function describeOne({ file, line, where, path, problem, fix }: Finding, folder: string): string {
  const place = `${shownPath(file, folder)}:${line}`;
  const subject = path ? `${path} ${problem}` : problem;
  return `${place} ${where}: ${subject}.\n   Write instead: ${fix}`;
}
