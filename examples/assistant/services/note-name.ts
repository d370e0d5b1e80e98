/** Letters, digits, `-`, `_` and spaces: nothing that could leave the folder, hide a file or name a device. */
const NAME = /^[\p{L}\p{N}][\p{L}\p{N} _-]{0,79}$/u;

const EXTENSION = '.md';

/** The name of the note in a file; `undefined` if the file is not a note. */
export function noteOfFile(file: string): string | undefined {
  if (!file.endsWith(EXTENSION)) return undefined;
  const name = file.slice(0, -EXTENSION.length);
  return NAME.test(name) ? name : undefined;
}

/** The file of a note. Throws if the name could lead out of the folder. */
export function fileOfNote(note: string): string {
  const name = note.endsWith(EXTENSION) ? note.slice(0, -EXTENSION.length) : note;
  if (!NAME.test(name)) throw new Error(`'${name.slice(0, 80)}' cannot be the name of a note.`);
  return `${name}${EXTENSION}`;
}

/** The name for a title: `Trip to Lisbon!` → `trip-to-lisbon`. */
export function nameForTitle(title: string): string {
  return title
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 80);
}
