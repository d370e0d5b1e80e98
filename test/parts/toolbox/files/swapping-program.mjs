// Swaps `a/b` of a folder between a folder and a link to another folder, as fast as it can.
import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [, , root, outside] = process.argv;
const place = join(root, 'a', 'b');
const aside = join(root, 'a', '.aside');
process.stdout.write('ready\n');
for (let round = 0; ; round += 1) {
  try {
    rmSync(aside, { recursive: true, force: true });
    symlinkSync(outside, aside);
    renameSync(place, join(root, 'a', '.gone'));
    renameSync(aside, place);
    rmSync(join(root, 'a', '.gone'), { recursive: true, force: true });
    // Now the file itself is a link, which must not be followed either.
    rmSync(place, { recursive: true, force: true });
    mkdirSync(place);
    if (round % 2 === 0) symlinkSync(join(outside, 'data.txt'), join(place, 'data.txt'));
    else writeFileSync(join(place, 'data.txt'), 'inside\n');
    writeFileSync(join(place, 'other.txt'), 'inside\n');
    linkSync(join(place, 'other.txt'), join(place, 'third.txt'));
  } catch {
    putBack(round);
  }
}

/** Restores the folders, because the tools move and remove files at the same time. */
function putBack(round) {
  try {
    mkdirSync(join(root, 'a'), { recursive: true });
    if (round % 3 === 0) rmSync(place, { recursive: true, force: true });
    mkdirSync(place, { recursive: true });
  } catch {
    // The next round tries again.
  }
}
