// How long a search takes on a tree of 50,000 files, beside ripgrep where that is installed, and what memory it needs.
// npm run measure:toolbox
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DiskFileSystem, FileTools } from '../../dist/src/toolbox/files/index.js';

const ROUNDS = 3;
const root = mkdtempSync(join(tmpdir(), 'toolbox-search-'));
try {
  makeTree();
  const tools = new FileTools(new DiskFileSystem({ root }));
  const cases = [
    ['a text', { text: 'needle' }, ['-F', 'needle']],
    ['a text that is everywhere, first 100 lines', { text: 'value_1' }, ['-F', '-m1', 'value_1']],
    ['a regular expression', { text: 'need(le)+ is', regex: true }, ['-e', 'need(le)+ is']],
    ['without capitals', { text: 'NEEDLE', ignoreCase: true }, ['-i', 'needle']],
  ];
  for (const [what, { text, regex = false, ignoreCase = false }, words] of cases) {
    const own = [];
    const other = [];
    // Turn by turn, so that whatever else the machine does is the same for both.
    for (let round = 0; round < ROUNDS; round += 1) {
      own.push(await timeOf(() => tools.searchFiles(text, regex, ignoreCase, '.', undefined, 0, 1000)));
      other.push(await timeOf(() => ripgrep(words)));
    }
    const [mine, theirs] = [median(own), median(other)];
    const beside =
      theirs === undefined
        ? 'no ripgrep here'
        : `ripgrep ${theirs.toFixed(0)} ms, ${(mine / theirs).toFixed(1)} times as long`;
    console.log(`${what}: ${mine.toFixed(0)} ms (${beside})`);
  }
  globalThis.gc?.();
  const before = process.memoryUsage();
  let most = 0;
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss);
  }, 20);
  for (let round = 0; round < 10; round += 1)
    await tools.searchFiles('need(le)+ is', true, false, '.', undefined, 0, 1000);
  clearInterval(watch);
  globalThis.gc?.();
  const after = process.memoryUsage();
  const mega = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MB`;
  console.log(
    `10 searches (500,000 files): heap ${mega(before.heapUsed)} before and ${mega(after.heapUsed)} after; resident ${mega(before.rss)} before, at most ${mega(most)}`,
  );
} finally {
  rmSync(root, { recursive: true, force: true });
}

function makeTree() {
  let count = 0;
  for (let one = 0; one < 50; one += 1)
    for (let two = 0; two < 20; two += 1) {
      const folder = join(root, `package-${one}`, `module-${two}`);
      mkdirSync(folder, { recursive: true });
      for (let file = 0; file < 50; file += 1) {
        count += 1;
        const lines = Array.from(
          { length: 60 },
          (_, line) =>
            `export const value_${line} = compute(${(count * 31 + line * 17) % 997}, 'text of line ${line}'); // note\n`,
        );
        if (count % 500 === 0) lines.push('the needle is here\n');
        writeFileSync(join(folder, `file-${file}.ts`), lines.join(''));
      }
    }
}

function ripgrep(words) {
  try {
    execFileSync('rg', ['--no-config', '-n', ...words, '.'], {
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
  const sorted = times.filter((time) => time !== undefined).sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}
