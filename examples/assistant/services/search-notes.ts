import type { Note } from './note-folder.js';

/** A note that a search found, with the lines that matched. */
export interface NoteHit {
  readonly name: string;
  readonly title: string;
  readonly lines: readonly string[];
}

/** Words without meaning for a search, which people and models write in queries. */
const COMMON = new Set(
  'a about an and are for in is it mention mentions my note notes of on or the to which with'.split(' '),
);

/** Notes with all words of a query; if there are none, notes with any of them. */
export function searchNotes(notes: readonly Note[], query: string): readonly NoteHit[] {
  const words = stemsOf(query);
  const wanted = words.filter((word) => !COMMON.has(word));
  const sought = wanted.length > 0 ? wanted : words;
  if (sought.length === 0) return [];
  const all = notes.filter(({ text }) => sought.every((word) => hasWord(text, word)));
  const chosen =
    all.length > 0 ? all : notes.filter(({ text }) => sought.some((word) => hasWord(text, word)));
  return chosen.map(({ name, title, text }) => ({ name, title, lines: matchingLines(text, sought) }));
}

function matchingLines(text: string, words: readonly string[]): readonly string[] {
  const lines = text.split('\n').filter((line) => words.some((word) => hasWord(line, word)));
  return lines.map((line) => line.replace(/^[#\s-]+/, '').trim());
}

function hasWord(text: string, stem: string): boolean {
  return stemsOf(text).some((word) => word.startsWith(stem));
}

/** Words without the plural `s`, so that `invoices` also finds `invoice`. */
function stemsOf(text: string): readonly string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.map((word) => (word.length > 3 && word.endsWith('s') ? word.slice(0, -1) : word));
}
