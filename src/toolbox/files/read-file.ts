import { ToolResult, toolResult } from '../../core/contract/tool-result.js';
import { nodeCrypto } from '../../core/kernel/node-module.js';
import {
  type ByteRange,
  type FileBytes,
  type FileSystem,
  FileSystemError,
  missing,
  wrongKind,
} from './file-system.js';

interface LinesWanted {
  readonly path: string;
  readonly fromLine: number;
  readonly lines: number;
  readonly limits: { readonly bytes: number; readonly imageBytes: number; readonly fileBytes: number };
}

const MOST_OF_A_LINE = 2_000;

/** Numbered lines, an image, or a description of other content. */
export async function readByLines(files: FileSystem, wanted: LinesWanted): Promise<ToolResult> {
  const { limits } = wanted;
  const path = files.pathOf(wanted.path);
  const info = await files.info(path);
  if (info === undefined) throw missing(path);
  if (info.kind === 'file' && info.size > limits.fileBytes) return readHuge(files, { ...wanted, path });
  const { bytes } = await files.read(path);
  const content = contentOf(bytes);
  if (content.kind === 'image' && bytes.length > limits.imageBytes)
    return toolResult(
      `${path}: an image of ${bytes.length} bytes; more than ${limits.imageBytes} are not shown.`,
    );
  if (content.kind === 'image') return imageResult(path, bytes, content.mimeType);
  if (content.kind === 'binary')
    return toolResult(
      `${path}: ${bytes.length} bytes that cannot be shown as lines: ${content.why}. Read some of them with fromByte and bytes.`,
    );
  const lines = linesOf(content.text);
  const shown = numbered(lines.slice(wanted.fromLine - 1), wanted);
  const version = `version ${fileVersion(bytes)}`;
  if (lines.length === 0) return toolResult(`${path}: empty, ${version}`);
  if (wanted.fromLine > lines.length)
    return toolResult(`${path}: ${lines.length} lines, ${version}; there is no line ${wanted.fromLine}`);
  const last = wanted.fromLine + shown.length - 1;
  const ends = content.lineEnd === '\r\n' ? ', lines end in \\r\\n' : '';
  const rest =
    last < lines.length ? `\n(${lines.length - last} more lines; read on with fromLine ${last + 1})` : '';
  return toolResult(
    `${path}: lines ${wanted.fromLine}–${last} of ${lines.length}, ${version}${ends}\n${shown.join('\n')}${rest}`,
  );
}

/** As many of the requested lines as fit; at least one. */
function numbered(
  lines: readonly string[],
  { fromLine, lines: most, limits }: LinesWanted,
): readonly string[] {
  const shown: string[] = [];
  let room = limits.bytes;
  for (const line of lines.slice(0, most)) {
    const text = `${fromLine + shown.length}\t${shownLine(line, MOST_OF_A_LINE)}`;
    room -= Buffer.byteLength(text) + 1;
    if (room < 0 && shown.length > 0) break;
    shown.push(text);
  }
  return shown;
}

function imageResult(path: string, bytes: Uint8Array, mimeType: string): ToolResult {
  const text = `${path}: ${mimeType}, ${bytes.length} bytes`;
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  return new ToolResult({
    forLLM: text,
    content: [
      { type: 'text', content: text },
      { type: 'image', data, mimeType },
    ],
  });
}

const PIECE_BYTES = 1024 * 1024;

/** Reads a large file in pieces up to the requested lines. It gets no version, because it cannot be edited. */
async function readHuge(files: FileSystem, wanted: LinesWanted): Promise<ToolResult> {
  const { path, fromLine, lines: most, limits } = wanted;
  const decoder = new TextDecoder();
  const found: string[] = [];
  let [line, left, stamp, size, from] = [1, '', '', Number.POSITIVE_INFINITY, 0];
  for (; from < size && found.length < most; from += PIECE_BYTES) {
    const piece: FileBytes = await files.read(path, { from, most: PIECE_BYTES });
    if (from === 0 && hasZero(piece.bytes)) return toolResult(`${path}: ${piece.size} bytes; it is binary.`);
    if (stamp !== '' && stamp !== piece.stamp)
      throw new FileSystemError('changed', `'${path}' changed while it was read. Read it again.`);
    ({ size, stamp } = piece);
    const parts = (left + decoder.decode(piece.bytes, { stream: true })).split('\n');
    // The start of an unfinished line; of a line without end, only this much is stored.
    left = (parts.pop() ?? '').slice(0, PIECE_BYTES);
    for (const part of parts) {
      if (line >= fromLine && found.length < most) found.push(part.endsWith('\r') ? part.slice(0, -1) : part);
      line += 1;
    }
  }
  const isRead = from >= size;
  if (isRead && left !== '') {
    if (found.length < most && line >= fromLine) found.push(left);
    line += 1;
  }
  const shown = numbered(found, { ...wanted, limits });
  const about = `${path}: ${size} bytes, too large to be read whole or edited`;
  if (shown.length === 0) return toolResult(`${about}; there is no line ${fromLine}`);
  const last = fromLine + shown.length - 1;
  const rest = isRead && last === line - 1 ? '' : `\n(read on with fromLine ${last + 1})`;
  return toolResult(`${about}; lines ${fromLine}–${last}\n${shown.join('\n')}${rest}`);
}

const MOST_HEX_BYTES = 2_048;

/** Bytes as whole characters if they are text, otherwise in hexadecimal. */
export async function readByBytes(
  files: FileSystem,
  { path, from, most }: Required<ByteRange> & { readonly path: string },
): Promise<ToolResult> {
  const known = files.pathOf(path);
  const { bytes, size } = await files.read(known, { from, most });
  if (size === 0) return toolResult(`${known}: empty`);
  if (from >= size) return toolResult(`${known}: ${size} bytes; there is no byte ${from}`);
  if (bytes.length === 0) throw wrongKind(known, 'other', 'file');
  const text = wholeCharacters(bytes);
  const shown = text === undefined ? bytes.subarray(0, MOST_HEX_BYTES) : text.bytes;
  const start = from + (text?.skipped ?? 0);
  const end = start + shown.length;
  const rest = end < size ? `\n(${size - end} more bytes; read on with fromByte ${end})` : '';
  const form = text === undefined ? ', in hexadecimal' : '';
  const body = text?.text ?? Buffer.from(shown).toString('hex').match(/../g)?.join(' ');
  return toolResult(`${known}: bytes ${start}–${end - 1} of ${size}${form}\n${body}${rest}`);
}

/** Text without cut characters at both ends; `undefined` if it is not text. */
function wholeCharacters(bytes: Uint8Array) {
  if (hasZero(bytes)) return undefined;
  // A continuation byte of a character.
  const isInside = (byte = 0): boolean => (byte & 0xc0) === 0x80;
  let skipped = 0;
  while (skipped < 3 && isInside(bytes[skipped])) skipped += 1;
  let end = bytes.length;
  while (end > skipped && end > bytes.length - 3 && isInside(bytes[end - 1])) end -= 1;
  for (const part of [bytes.subarray(skipped), bytes.subarray(skipped, Math.max(skipped, end - 1))]) {
    try {
      return { text: new TextDecoder('utf-8', { fatal: true }).decode(part), bytes: part, skipped };
    } catch {
      // Try again without the cut character at the end.
    }
  }
  return undefined;
}

/** The content of a file, as far as the tools can handle it. */
type FileContent =
  | { readonly kind: 'text'; readonly text: string; readonly lineEnd: '\n' | '\r\n' }
  | { readonly kind: 'image'; readonly mimeType: string }
  | { readonly kind: 'binary'; readonly why: string };

/** A zero byte within this range shows that a file is binary. */
const LOOKED_AT_BYTES = 8_192;

const TEXT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes bytes as UTF-8 text, or reports their kind. */
export function contentOf(bytes: Uint8Array): FileContent {
  const mimeType = imageType(bytes);
  if (mimeType !== undefined) return { kind: 'image', mimeType };
  if (startsWith(bytes, [0xff, 0xfe]) || startsWith(bytes, [0xfe, 0xff]))
    return { kind: 'binary', why: 'it is text in UTF-16, and only UTF-8 is read' };
  if (hasZero(bytes)) return { kind: 'binary', why: 'it is binary' };
  try {
    const text = TEXT.decode(bytes);
    // The first line decides; lines in a mixed file keep their endings.
    return { kind: 'text', text, lineEnd: /^[^\n]*\r\n/.test(text) ? '\r\n' : '\n' };
  } catch {
    return { kind: 'binary', why: 'it is not text in UTF-8' };
  }
}

/** Whether bytes are binary, decided by their start. */
export function hasZero(bytes: Uint8Array): boolean {
  return bytes.subarray(0, LOOKED_AT_BYTES).includes(0);
}

const IMAGES: readonly (readonly [string, readonly number[], number])[] = [
  ['image/png', [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], 0],
  ['image/jpeg', [0xff, 0xd8, 0xff], 0],
  ['image/gif', [0x47, 0x49, 0x46, 0x38], 0],
  ['image/webp', [0x57, 0x45, 0x42, 0x50], 8],
];

/** By the first bytes, because the file extension may be wrong. */
function imageType(bytes: Uint8Array): string | undefined {
  return IMAGES.find(([, start, at]) => startsWith(bytes.subarray(at), start))?.[0];
}

function startsWith(bytes: Uint8Array, start: readonly number[]): boolean {
  return bytes.length >= start.length && start.every((byte, index) => bytes[index] === byte);
}

/** A short hash of a file's content: 12 characters that a model can repeat. */
export function fileVersion(bytes: Uint8Array): string {
  return nodeCrypto().createHash('sha256').update(bytes).digest('hex').slice(0, 12);
}

export function encodeText(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Lines without their endings; the ending of the last line starts no further line. */
function linesOf(text: string): readonly string[] {
  const lines = text.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

/** A line cut to `most` characters, with the number of those left out. */
export function shownLine(line: string, most: number): string {
  if (line.length <= most) return line;
  // Do not cut a surrogate pair.
  const end = line.slice(0, most).isWellFormed() ? most : most - 1;
  return `${line.slice(0, end)} … (${line.length - end} more characters)`;
}
