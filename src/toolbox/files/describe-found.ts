import { visibleLine } from '../../kernel/visible-text.js';
import { joinPath } from '../paths/folder-path.js';
import { type FileKind, type FileSystem, missing } from './file-system.js';
import { shownLine } from './file-text.js';
import type { FoundFiles, FoundLines } from './search-files.js';

const MOST_OF_A_LINE = 300;
const MOST_CHARACTERS = 60_000;

const KINDS: Readonly<Record<FileKind, string>> = {
  file: '',
  folder: '/',
  link: ' (link)',
  other: ' (device or pipe)',
};

/** Names in a folder, as the model is told them; of a file, what it is. */
export async function describeFolder(files: FileSystem, path: string, most: number): Promise<string> {
  const known = files.pathOf(path);
  const info = await files.info(known);
  if (info === undefined) throw missing(known);
  if (info.kind === 'file')
    return `${known}: a file, ${info.size} bytes, changed ${new Date(info.changedAt).toISOString()}`;
  const entries = await files.list(known);
  if (entries.length === 0) return `${known}: empty`;
  const lines: string[] = [];
  for (const { name, kind } of entries.slice(0, most)) {
    const size = kind === 'file' ? `, ${(await files.info(joinPath(known, name)))?.size ?? 0} bytes` : '';
    lines.push(visibleLine(name) + KINDS[kind] + size);
  }
  const rest = entries.length > most ? `\n(${entries.length - most} more)` : '';
  return `${known}: ${entries.length} ${entries.length === 1 ? 'entry' : 'entries'}\n${lines.join('\n')}${rest}`;
}

/** Paths, as the model is told them. */
export function describeFiles({ paths, isCut }: FoundFiles): string {
  if (paths.length === 0) return 'No file fits.';
  const rest = isCut
    ? `\n(more than ${paths.length}; look in a folder of them, or by a narrower pattern)`
    : '';
  return paths.map(visibleLine).join('\n') + rest;
}

/** Lines, file by file: `12:` before one that fits, `13-` before one beside it, `--` between places apart. */
export function describeLines({ files, count, searched, cut, tooLarge }: FoundLines): string {
  const parts: string[] = [];
  let room = MOST_CHARACTERS;
  let shown = 0;
  for (const { path, lines } of files) {
    const text: string[] = [visibleLine(path)];
    for (const [index, { line, text: content, isContext }] of lines.entries()) {
      const before = lines[index - 1];
      if (before !== undefined && before.line + 1 < line) text.push('--');
      text.push(`${line}${isContext ? '-' : ':'} ${shownLine(content, MOST_OF_A_LINE)}`);
    }
    const part = text.join('\n');
    room -= part.length;
    if (room < 0 && parts.length > 0) break;
    parts.push(part);
    shown += 1;
  }
  const about = [`${searched} ${searched === 1 ? 'file' : 'files'} searched`];
  if (cut === 'most') about.push(`there are more than ${count} lines: search for something narrower`);
  if (cut === 'time') about.push('it took too long and was ended; search in a smaller folder');
  if (shown < files.length)
    about.push(`${files.length - shown} more files with lines that fit are not shown`);
  if (tooLarge.length > 0)
    about.push(`only the beginning was searched of ${tooLarge.slice(0, 5).join(', ')}`);
  const head = count === 0 ? 'No line fits' : `${count} ${count === 1 ? 'line fits' : 'lines fit'}`;
  return [`${head} (${about.join('; ')}).`, ...parts].join('\n\n');
}
