import type { UserMessage } from '../../core/contract/llm-provider.js';
import { canonicalJson } from '../../core/kernel/json.js';
import { HttpFault } from './chat-request.js';

/**
 * The conversation key of a client's message. `attempt` distinguishes a message that was sent again on purpose: edited,
 * or to be answered again.
 */
export function messageKey(messageId: string, attempt?: string): string {
  const key = `message ${encodeURIComponent(messageId)}`;
  return attempt === undefined ? key : `${key} ${encodeURIComponent(attempt)}`;
}

/** The id of the client's message with this key; `undefined` for other keys. */
export function messageIdOf(key: string): string | undefined {
  const [, encoded] = /^message (\S+)(?: \S+)?$/.exec(key) ?? [];
  return encoded && decodeURIComponent(encoded);
}

/** A digest of JSON that does not depend on the order of keys. */
export async function digestOf(value: unknown): Promise<string> {
  const bytes = new TextEncoder().encode(canonicalJson(value));
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Ids of turns and their contents; messages of a user cannot have such ids. */
const OF_SERVER = /^turn-\d/;

/** Refuses ids for new messages that clients use, or will use, for something else. */
export function checkNewMessage(id: string): void {
  if (OF_SERVER.test(id))
    throw new HttpFault(
      422,
      'Ids that begin with `turn-` and a number are the server’s: another id, please.',
    );
}

type Fields = Readonly<Record<string, unknown>>;

/** A file from the user: a `data:` URL, or a URL that the model's provider can read. */
interface SentFile {
  readonly url: string;
  readonly mediaType: string;
  readonly name?: string;
}

/** A part of a user's message. */
export type SentPart = { readonly text: string } | { readonly file: SentFile };

/** A user's message in the form of Chat Completions, which every provider accepts. */
export function userContent(parts: readonly SentPart[]): UserMessage['content'] {
  const texts = parts.flatMap((part) => ('text' in part ? [part.text] : []));
  const text = texts.join('\n');
  if (texts.length === parts.length) {
    if (text.trim() === '') throw new HttpFault(400, 'The message says nothing.');
    return text;
  }
  const files = parts.flatMap((part) => ('file' in part ? [filePart(part.file)] : []));
  return text.trim() === '' ? files : [{ type: 'text', text }, ...files];
}

function filePart({ url, mediaType, name }: SentFile): Fields {
  const isData = url.startsWith('data:');
  if (!isData && !/^https?:\/\//.test(url))
    throw new HttpFault(422, 'A file must come as a data: address or be at an http address.');
  if (mediaType.startsWith('image/')) return { type: 'image_url', image_url: { url } };
  if (!isData) throw new HttpFault(422, 'A file that is no image must come as a data: address.');
  return { type: 'file', file: { filename: name ?? 'file', file_data: url } };
}
