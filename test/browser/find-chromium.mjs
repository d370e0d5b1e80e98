import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Without windows first: the others keep some, hidden, which takes them more time than the pages of the tests. */
const NAMES = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
];
const FOLDERS = ['/usr/bin', '/snap/bin'];

/** The path of a Chromium: what `CHROMIUM_PATH` says (empty: none), or one of this machine. */
export function findChromium() {
  const { CHROMIUM_PATH: named, PATH = '' } = process.env;
  if (named !== undefined) return named === '' ? undefined : named;
  const folders = [...PATH.split(delimiter).filter(Boolean), ...FOLDERS];
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram);
}

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
