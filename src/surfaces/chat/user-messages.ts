import type { UserMessage } from '../../core/contract/llm-provider.js';
import { canonicalJson } from '../../core/kernel/json.js';
import { HttpFault } from './chat-request.js';

/**
 * The key under which a client's message enters its conversation. `attempt` is of one that is sent for another
 * time on purpose: edited, or to be answered anew.
 */
export function messageKey(messageId: string, attempt?: string): string {
  const key = `message ${encodeURIComponent(messageId)}`;
  return attempt === undefined ? key : `${key} ${encodeURIComponent(attempt)}`;
}

/** The client's message that entered under a key; `undefined` for anything else. */
export function messageIdOf(key: string): string | undefined {
  const [, encoded] = /^message (\S+)(?: \S+)?$/.exec(key) ?? [];
  return encoded && decodeURIComponent(encoded);
}

/** The same for the same JSON, whatever the order of its keys. */
export async function digestOf(value: unknown): Promise<string> {
  const bytes = new TextEncoder().encode(canonicalJson(value));
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Ids by which clients know turns, and what is in them: a message of the user cannot have one. */
const OF_SERVER = /^turn-\d/;

/** Refuses an id for a message that is new here, under which clients know something else, or will. */
export function checkNewMessage(id: string): void {
  if (OF_SERVER.test(id))
    throw new HttpFault(
      422,
      'Ids that begin with `turn-` and a number are the server’s: another id, please.',
    );
}

type Fields = Readonly<Record<string, unknown>>;

/** A file that a user sends along: a `data:` address, or one that the model's provider can read. */
interface SentFile {
  readonly url: string;
  readonly mediaType: string;
  readonly name?: string;
}

/** One piece of what a user says. */
export type SentPart = { readonly text: string } | { readonly file: SentFile };

/** What a user says, in the shape of Chat Completions, which every provider takes. */
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
