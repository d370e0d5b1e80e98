import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The headless shell comes first: it is faster, because the others also manage hidden windows. */
const NAMES = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
];
const FOLDERS = ['/usr/bin', '/snap/bin'];

/** Returns the path in `CHROMIUM_PATH` (empty means no Chromium) or the path of an installed Chromium. */
export function findChromium() {
  const { CHROMIUM_PATH: configured, PATH = '' } = process.env;
  if (configured !== undefined) return configured === '' ? undefined : configured;
  const folders = [...PATH.split(delimiter).filter(Boolean), ...FOLDERS];
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
