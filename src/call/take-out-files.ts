import { type Content, type ContentPart, ToolResult } from '../contract/tool-result.js';
import { cutDetails } from './result-text.js';

/** Texts shorter than this may have a small picture in them. */
const SHORTEST = 4_000;
/** Pictures that models look at; of others, and of more, only a note stays. */
const PICTURES = /^image\/(?:png|jpeg|gif|webp)$/;
const MOST_PICTURES = 8;
const MOST_CHARS = 7_000_000;

const DATA_URL = /data:([a-z]+\/[a-z0-9.+-]+)(?:;[a-z0-9=_.-]+)*;base64,([A-Za-z0-9+/_-]{200,}={0,2})/gi;
/** What no text has: a word of so many letters and digits. */
const LONG_RUN = /[A-Za-z0-9+/_-]{2000,}={0,2}/g;

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
  const named = text.includes(';base64,')
    ? text.replace(DATA_URL, (_url, mimeType: string, data: string) => {
        const name = keep(mimeType.toLowerCase(), data);
        return `[${name}${mimeType}, ${bytesOf(data)} bytes${name === '' ? ' of Base64 left out' : ''}]`;
      })
    : text;
  return named.replace(LONG_RUN, (run) =>
    isBase64(run) ? `[${bytesOf(run)} bytes of Base64 left out]` : run,
  );
}

/** Of the beginning: files have letters of both cases and digits in any part of them. */
function isBase64(run: string): boolean {
  const some = run.slice(0, 1_000);
  return /[A-Z]/.test(some) && /[a-z]/.test(some) && /\d/.test(some) && new Set(some).size > 30;
}

function bytesOf(base64: string): number {
  return Math.floor((base64.replace(/=+$/, '').length * 3) / 4);
}
