import { lstatSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import type { Generated } from '../typegen/generate.js';
import { GENERATED_MARK } from '../typegen/generated-mark.js';
import type { CommandSurroundings } from './command.js';
import { unifiedDiff } from './unified-diff.js';
import { UserFault } from './user-fault.js';

/** Writes the file; a file that is right already keeps its time, so that watchers stay quiet. */
export function writeGeneratedFile({ outFile, text }: Generated, folder: string): boolean {
  const before = readIfThere(outFile);
  if (before === text) return false;
  const path = shownPath(outFile, folder);
  if (before?.trim() && !before.includes(GENERATED_MARK)) {
    throw new UserFault(`${path} was not generated, and is left alone: --out names another file`);
  }
  if (before === undefined && isLink(outFile))
    throw new UserFault(`${path} is a link that leads nowhere, and is left alone: remove it`);
  try {
    mkdirSync(dirname(outFile), { recursive: true });
    replaceFile(before === undefined ? outFile : realpathSync(outFile), text);
  } catch (error) {
    throw new UserFault(`${path} cannot be written: ${error instanceof Error ? error.message : error}`, 1);
  }
  return true;
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  }
}

/** All or nothing: whoever reads the file at the same time must not find half of it. */
function replaceFile(path: string, text: string): void {
  const unfinished = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(unfinished, text);
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

/** For CI: 1 and the difference where the file is not what would be generated now. */
export function checkGeneratedFile(
  { outFile, text }: Generated,
  { folder, out, error }: CommandSurroundings,
): 0 | 1 {
  const path = shownPath(outFile, folder);
  const before = readIfThere(outFile);
  if (before === text) return 0;
  if (before !== undefined) out(unifiedDiff({ path, before, after: text }));
  error(
    `toolwright: ${path} ${before === undefined ? 'is not there' : 'is out of date'}: npx toolwright generate\n`,
  );
  return 1;
}

/** A path as the user would write it. */
export function shownPath(file: string, folder: string): string {
  return relative(folder, file).replaceAll('\\', '/');
}

/** With the line ends that are generated: git may have changed them on the way. */
function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').replaceAll('\r\n', '\n');
  } catch {
    return undefined;
  }
}
