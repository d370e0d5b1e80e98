import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inject, singleton } from 'tsyringe';
import { DATA_FOLDER } from './data-folder.js';

/** Files that are exported for the user. */
@singleton()
export class ExportFolder {
  readonly #folder: string;

  constructor(@inject(DATA_FOLDER) dataFolder: string) {
    this.#folder = join(dataFolder, 'exports');
  }

  /** Writes a table as CSV (RFC 4180) and returns its path. */
  async writeCsv(name: string, rows: readonly (readonly (string | number)[])[]): Promise<string> {
    await mkdir(this.#folder, { recursive: true });
    const path = join(this.#folder, `${name}.csv`);
    await writeFile(path, `${rows.map((row) => row.map(toField).join(',')).join('\r\n')}\r\n`);
    return path;
  }
}

function toField(value: string | number): string {
  // A spreadsheet would read a leading `=` and similar characters as a formula.
  const text = typeof value === 'string' && /^[=+\-@\t]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
