import type { Answer } from '../../core/contract/call.js';
import type { UserMessage } from '../../core/contract/llm-provider.js';
import { canonicalJson } from '../../core/kernel/json.js';
import { bytesOf } from '../../core/kernel/node-http.js';
import type { AskedChat, ReadEvent } from './turn-readings.js';

/** What to do with a request, given the state of the chat. */
export type Decision =
  | {
      readonly kind: 'prompt';
      readonly key: string;
      readonly content: UserMessage['content'];
      /** Key of the turn to replace. */
      readonly replaces?: string;
    }
  | { readonly kind: 'answers'; readonly key: string; readonly answers: readonly Answer[] }
  /** The request was sent before; its outcome is reported again. */
  | { readonly kind: 'again'; readonly of: 'prompt' | 'answers'; readonly key: string };

/** Encodes the events of a turn as server-sent events. */
export type WriteFrames = (
  events: AsyncIterable<ReadEvent>,
  how: FramesOptions,
) => AsyncGenerator<string, undefined>;

interface FramesOptions {
  /** The events continue a message that the reader has. */
  readonly goesOn: boolean;
  readonly asked: AskedChat;
}

/** A request of a client, parsed by its protocol. */
export interface PostedChat {
  readonly chatId: string;
  readonly decide: (asked: AskedChat) => Decision | Promise<Decision>;
  readonly frames: WriteFrames;
  /** The response for a request that was refused. */
  readonly refuse: (fault: HttpFault) => Response;
}

export interface ChatProtocol {
  readonly headers: Readonly<Record<string, string>>;
  /** @throws HttpFault for an invalid request. */
  readonly readPost: (body: unknown) => PostedChat;
  /** For a reader that reconnects. */
  readonly reconnect: (address: ChatAddress) => {
    readonly frames: WriteFrames;
    /** The reader always gets the open turn from its start, and a stream even if no turn is open. */
    readonly isWhole: boolean;
  };
  /** Past messages, in the format of the front end. */
  readonly history: (asked: AskedChat) => Promise<readonly object[]>;
}

interface ChatAddress {
  readonly chatId: string;
  readonly query: URLSearchParams;
}

/** A client's request. Of its messages only the last ones are used: the server has the history. */
export type IncomingChat =
  | { readonly kind: 'post'; readonly chatId: string; readonly posted: PostedChat }
  | ({ readonly kind: 'reconnect'; readonly lastEvent: number | undefined } & ChatAddress)
  | { readonly kind: 'history'; readonly chatId: string }
  | { readonly kind: 'stop'; readonly chatId: string };

/** Parses a request. Throws an {@link HttpFault} for an invalid request. */
export async function readChatRequest(
  request: Request,
  { protocol, maxRequestBytes }: { readonly protocol: ChatProtocol; readonly maxRequestBytes: number },
): Promise<IncomingChat> {
  switch (request.method) {
    case 'POST': {
      const posted = protocol.readPost(await readJson(request, maxRequestBytes));
      return { kind: 'post', chatId: posted.chatId, posted };
    }
    case 'GET': {
      const { isHistory, ...address } = addressOf(request);
      if (isHistory) return { kind: 'history', chatId: address.chatId };
      const given = request.headers.get('last-event-id') ?? '';
      const lastEvent = /^\d{1,15}$/.test(given) ? Number(given) : undefined;
      return { kind: 'reconnect', ...address, lastEvent };
    }
    case 'DELETE':
      return { kind: 'stop', chatId: addressOf(request).chatId };
    default:
      throw new HttpFault(405, 'Only POST, GET and DELETE are possible here.');
  }
}

/** `…/{id}/stream`, which the AI SDK requests, `…/{id}/messages`, or `?id=…`. */
function addressOf({ url }: Request): ChatAddress & { readonly isHistory: boolean } {
  const { pathname, searchParams } = new URL(url);
  const [, encoded, what = pathname.endsWith('/messages') ? 'messages' : ''] =
    /\/([^/]+)\/(stream|messages)$/.exec(pathname) ?? [];
  try {
    const chatId = checkId(searchParams.get('id') ?? (encoded && decodeURIComponent(encoded)));
    return { chatId, query: searchParams, isHistory: what === 'messages' };
  } catch (error) {
    throw error instanceof HttpFault ? error : new HttpFault(400, 'The path is not encoded as it should be.');
  }
}

/** A refused request, with a message for its sender. */
export class HttpFault extends Error {
  readonly status: number;
  /** The request is a prompt, for which the chat is not ready. */
  readonly isPrompt: boolean;

  constructor(status: number, message: string, { isPrompt = false } = {}) {
    super(message);
    this.status = status;
    this.isPrompt = isPrompt;
  }

  get response(): Response {
    return Response.json(
      { error: { message: this.message } },
      { status: this.status, headers: { 'cache-control': 'no-store' } },
    );
  }
}

const LONGEST_ID = 200;
/** Entry keys contain two URL-encoded ids and must fit into a store. */
const LONGEST_ENCODED = 240;

export function checkId(id: unknown): string {
  if (typeof id === 'string' && id.trim() !== '' && id.length <= LONGEST_ID) {
    // Databases cannot store lone surrogates or U+0000, and limit the length of ids.
    const isStorable = id.isWellFormed() && !id.includes('\u0000');
    if (isStorable && encodeURIComponent(id).length <= LONGEST_ENCODED) return id;
  }
  const long = `${LONGEST_ID} characters (${LONGEST_ENCODED} as encodeURIComponent writes it)`;
  throw new HttpFault(400, `An id must be a text of 1 to ${long}, none of them U+0000.`);
}

async function readJson(request: Request, maxRequestBytes: number): Promise<unknown> {
  const [type = ''] = (request.headers.get('content-type') ?? '').split(';');
  // Only JSON: a form on a foreign page can send other types without a CORS check.
  if (type.trim().toLowerCase() !== 'application/json')
    throw new HttpFault(415, 'The content type must be application/json.');
  const bytes = await bytesOf(request, maxRequestBytes);
  if (bytes === undefined) throw new HttpFault(413, `The body has more than ${maxRequestBytes} bytes.`);
  let body: unknown;
  try {
    body = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new HttpFault(400, 'The body is not JSON.');
  }
  let level: readonly unknown[] = [body];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > DEEPEST) throw new HttpFault(400, `The body is nested deeper than ${DEEPEST} levels.`);
    level = level.flatMap((value) =>
      typeof value === 'object' && value !== null ? Object.values(value) : [],
    );
  }
  return body;
}

/** Below the depth that parsers accept, so that serializing cannot overflow the stack. */
const DEEPEST = 500;

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
  if (!isData) throw new HttpFault(422, 'A file that is not an image must come as a data: address.');
  return { type: 'file', file: { filename: name ?? 'file', file_data: url } };
}
