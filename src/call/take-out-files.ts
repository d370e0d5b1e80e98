import { type Content, type ContentPart, ToolResult } from '../contract/tool-result.js';
import { cutDetails } from './result-text.js';

/** Texts shorter than this may have a small picture in them. */
const SHORTEST = 4_000;
/** Pictures that models look at; of others, and of more, only a note stays. */
const PICTURES = /^image\/(?:png|jpeg|gif|webp)$/;
const MOST_PICTURES = 8;
const MOST_CHARS = 7_000_000;

const DATA_URL = /data:([a-z]+\/[a-z0-9.+-]+)(?:;[a-z0-9=_.-]+)*;base64,/gi;
const SHORTEST_DATA = 200;
/** What no text has: a word of so many letters and digits. */
const LONGEST_WORD = 2_000;
const BASE64 = /[A-Za-z0-9+/_-]/;
const NO_BASE64 = /[^A-Za-z0-9+/_-]/g;

/**
 * A result whose text has files in it, as Base64, which say nothing to a model as text: pictures become parts, and where
 * each of them stood is a note. The whole text stays in its details.
 */
export function takeOutFiles(result: ToolResult): ToolResult {
  const { forLLM, content } = result;
  if (forLLM.length < SHORTEST) return result;
  const pictures: ContentPart[] = [];
  const text = withoutFiles(forLLM, (mimeType, data) => {
    if (!PICTURES.test(mimeType) || pictures.length >= MOST_PICTURES || data.length > MOST_CHARS) return '';
    pictures.push({ type: 'image', mimeType, data });
    return `image-${pictures.length}: `;
  });
  if (text === forLLM) return result;
  const details = cutDetails(result);
  if (pictures.length === 0 && content === undefined)
    return new ToolResult({ ...result, forLLM: text, details });
  const others = content?.filter(({ type }) => type !== 'text') ?? [];
  const parts: Content = [{ type: 'text', content: text }, ...others, ...pictures];
  return new ToolResult({ ...result, forLLM: text, content: parts, details });
}

/** A text with a note in place of each file; `keep` may take it, and gives what the note is to begin with. */
export function withoutFiles(
  text: string,
  keep: (mimeType: string, data: string) => string = () => '',
): string {
  const named = withoutDataUrls(text, keep);
  let left = '';
  let from = 0;
  let seen = 0;
  // Whatever is longer has a character at one of these places. A pattern that repeats would run out of stack.
  for (let at = LONGEST_WORD - 1; at < named.length; at += LONGEST_WORD) {
    if (at < seen || !BASE64.test(named.charAt(at))) continue;
    let start = at;
    while (start > seen && BASE64.test(named.charAt(start - 1))) start -= 1;
    seen = endOfRun(named, at);
    const run = named.slice(start, seen);
    if (run.length < LONGEST_WORD || !isBase64(run)) continue;
    left += `${named.slice(from, start)}[${bytesOf(run)} bytes of Base64 left out]`;
    from = seen;
  }
  return left + named.slice(from);
}

function withoutDataUrls(text: string, keep: (mimeType: string, data: string) => string): string {
  let left = '';
  let from = 0;
  for (const { 0: head, 1: mimeType = '', index } of text.matchAll(DATA_URL)) {
    const end = endOfRun(text, index + head.length);
    const data = text.slice(index + head.length, end);
    if (data.length < SHORTEST_DATA || index < from) continue;
    const name = keep(mimeType.toLowerCase(), data);
    const note = `[${name}${mimeType}, ${bytesOf(data)} bytes${name === '' ? ' of Base64 left out' : ''}]`;
    left += text.slice(from, index) + note;
    from = end;
  }
  return left + text.slice(from);
}

/** Where a run of Base64 ends, with the signs that fill it up. */
function endOfRun(text: string, from: number): number {
  NO_BASE64.lastIndex = from;
  const end = NO_BASE64.exec(text)?.index ?? text.length;
  return end + (/^={0,2}/.exec(text.slice(end, end + 2))?.[0].length ?? 0);
}

/** Of the beginning: files have letters of both cases and digits in any part of them. */
function isBase64(run: string): boolean {
  const some = run.slice(0, 1_000);
  return /[A-Z]/.test(some) && /[a-z]/.test(some) && /\d/.test(some) && new Set(some).size > 30;
}

function bytesOf(base64: string): number {
  return Math.floor((base64.replace(/=+$/, '').length * 3) / 4);
}
