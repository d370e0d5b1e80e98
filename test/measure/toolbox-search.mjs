// Measures searching a tree of 50,000 files: the time, compared with ripgrep if it is installed, and the memory.
// npm run measure:toolbox
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DiskFileSystem, FileTools } from '../../dist/src/toolbox/files/index.js';

const ROUNDS = 3;
const root = mkdtempSync(join(tmpdir(), 'toolbox-search-'));
try {
  createTree();
  const tools = new FileTools(new DiskFileSystem({ root }));
  const cases = [
    ['a text', { text: 'needle' }, ['-F', 'needle']],
    ['a text in every file, first 100 lines', { text: 'value_1' }, ['-F', '-m1', 'value_1']],
    ['a regular expression', { text: 'need(le)+ is', regex: true }, ['-e', 'need(le)+ is']],
    ['ignoring case', { text: 'NEEDLE', ignoreCase: true }, ['-i', 'needle']],
  ];
  for (const [label, { text, regex = false, ignoreCase = false }, rgArguments] of cases) {
    const ownTimes = [];
    const ripgrepTimes = [];
    // Alternating, so that both run under the same load.
    for (let round = 0; round < ROUNDS; round += 1) {
      ownTimes.push(await timeOf(() => tools.searchFiles(text, regex, ignoreCase, '.', undefined, 0, 1000)));
      ripgrepTimes.push(await timeOf(() => ripgrep(rgArguments)));
    }
    const [ownTime, ripgrepTime] = [median(ownTimes), median(ripgrepTimes)];
    const comparison =
      ripgrepTime === undefined
        ? 'ripgrep is not installed'
        : `ripgrep ${ripgrepTime.toFixed(0)} ms, ratio ${(ownTime / ripgrepTime).toFixed(1)}`;
    console.log(`${label}: ${ownTime.toFixed(0)} ms (${comparison})`);
  }
  globalThis.gc?.();
  const before = process.memoryUsage();
  let peak = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss);
  }, 20);
  for (let round = 0; round < 10; round += 1)
    await tools.searchFiles('need(le)+ is', true, false, '.', undefined, 0, 1000);
  clearInterval(timer);
  globalThis.gc?.();
  const after = process.memoryUsage();
  const megabytes = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MB`;
  console.log(
    `10 searches (500,000 files): heap ${megabytes(before.heapUsed)} before, ${megabytes(after.heapUsed)} after; ` +
      `resident ${megabytes(before.rss)} before, ${megabytes(peak)} at most`,
  );
} finally {
  rmSync(root, { recursive: true, force: true });
}

function createTree() {
  let count = 0;
  for (let folder = 0; folder < 50; folder += 1)
    for (let subfolder = 0; subfolder < 20; subfolder += 1) {
      const path = join(root, `package-${folder}`, `module-${subfolder}`);
      mkdirSync(path, { recursive: true });
      for (let file = 0; file < 50; file += 1) {
        count += 1;
        const lines = Array.from(
          { length: 60 },
          (_, line) =>
            `export const value_${line} = compute(${(count * 31 + line * 17) % 997}, 'text of line ${line}'); // note\n`,
        );
        if (count % 500 === 0) lines.push('the needle is here\n');
        writeFileSync(join(path, `file-${file}.ts`), lines.join(''));
      }
    }
}

function ripgrep(rgArguments) {
  try {
    execFileSync('rg', ['--no-config', '-n', ...rgArguments, '.'], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 2 ** 30,
    });
    return true;
  } catch {
    return false;
  }
}

async function timeOf(work) {
  const start = performance.now();
  const done = await work();
  return done === false ? undefined : performance.now() - start;
}

function median(times) {
  const sorted = times.filter((time) => time !== undefined).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
