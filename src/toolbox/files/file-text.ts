import { nodeCrypto } from '../../kernel/node-module.js';

/** What the bytes of a file are, as far as the tools can handle them. */
type FileContent =
  | { readonly kind: 'text'; readonly text: string; readonly lineEnd: '\n' | '\r\n' }
  | { readonly kind: 'image'; readonly mimeType: string }
  | { readonly kind: 'binary'; readonly why: string };

/** Where a zero byte tells that something is no text. */
const LOOKED_AT_BYTES = 8_192;

const TEXT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads bytes as text in UTF-8, or tells what else they are. */
export function contentOf(bytes: Uint8Array): FileContent {
  const mimeType = imageType(bytes);
  if (mimeType !== undefined) return { kind: 'image', mimeType };
  if (startsWith(bytes, [0xff, 0xfe]) || startsWith(bytes, [0xfe, 0xff]))
    return { kind: 'binary', why: 'it is text in UTF-16, and only UTF-8 is read' };
  if (hasZero(bytes)) return { kind: 'binary', why: 'it is binary' };
  try {
    const text = TEXT.decode(bytes);
    return { kind: 'text', text, lineEnd: lineEndOf(text) };
  } catch {
    return { kind: 'binary', why: 'it is not text in UTF-8' };
  }
}

/** Whether bytes are no text, by their beginning. */
export function hasZero(bytes: Uint8Array): boolean {
  return bytes.subarray(0, LOOKED_AT_BYTES).includes(0);
}

/** That of most lines; a file that mixes them keeps each as it is. */
function lineEndOf(text: string): '\n' | '\r\n' {
  const first = text.indexOf('\n');
  return first > 0 && text[first - 1] === '\r' ? '\r\n' : '\n';
}

const IMAGES: readonly (readonly [string, readonly number[], number])[] = [
  ['image/png', [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], 0],
  ['image/jpeg', [0xff, 0xd8, 0xff], 0],
  ['image/gif', [0x47, 0x49, 0x46, 0x38], 0],
  ['image/webp', [0x57, 0x45, 0x42, 0x50], 8],
];

/** By what the bytes begin with: the ending of a name may say anything. */
function imageType(bytes: Uint8Array): string | undefined {
  return IMAGES.find(([, start, at]) => startsWith(bytes.subarray(at), start))?.[0];
}

function startsWith(bytes: Uint8Array, start: readonly number[]): boolean {
  return bytes.length >= start.length && start.every((byte, index) => bytes[index] === byte);
}

/** What tells one content of a file from another: 12 characters that a model can repeat. */
export function versionOf(bytes: Uint8Array): string {
  return nodeCrypto().createHash('sha256').update(bytes).digest('hex').slice(0, 12);
}

/** Text as bytes. */
export function encodeText(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Lines without their ends; the end of the last line is no line of its own. */
export function linesOf(text: string): readonly string[] {
  const lines = text.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

/** A line of which only so much is shown, and how much is not. */
export function shownLine(line: string, most: number): string {
  if (line.length <= most) return line;
  // Not in the middle of a character.
  const end = line.slice(0, most).isWellFormed() ? most : most - 1;
  return `${line.slice(0, end)} … (${line.length - end} more characters)`;
}
