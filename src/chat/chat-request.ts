import { isRecord } from '../kernel/json.js';

type Fields = Readonly<Record<string, unknown>>;

/** What a client asks for. Of its messages only the last counts: what was said before is the server's to know. */
export type ChatRequest = { readonly chatId: string } & (
  | { readonly kind: 'prompt'; readonly messageId: string; readonly text: string }
  /** The parts of the assistant message that the client has answered, and arguments that it changed, by approval. */
  | { readonly kind: 'answers'; readonly parts: readonly Fields[]; readonly edits: Fields }
  | { readonly kind: 'reconnect'; readonly lastEvent: number | undefined }
  | { readonly kind: 'stop' }
);

/** Reads a request. Throws an {@link HttpFault} for what is none. */
export async function readChatRequest(request: Request, maxRequestBytes: number): Promise<ChatRequest> {
  switch (request.method) {
    case 'POST':
      return readPost(await readJson(request, maxRequestBytes));
    case 'GET':
      return { kind: 'reconnect', chatId: addressedChat(request), lastEvent: lastEventOf(request) };
    case 'DELETE':
      return { kind: 'stop', chatId: addressedChat(request) };
    default:
      throw new HttpFault(405, 'Only POST, GET and DELETE are possible here.');
  }
}

function readPost(body: unknown): ChatRequest {
  if (!isRecord(body)) throw new HttpFault(400, 'The body must be an object.');
  const { id, messages, trigger = 'submit-message', messageId, edits } = body;
  const chatId = checkId(id);
  if (trigger !== 'submit-message')
    throw new HttpFault(422, `The trigger ${JSON.stringify(trigger)} is not supported.`);
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  if (!isRecord(last) || !Array.isArray(last.parts))
    throw new HttpFault(400, 'The last message has no parts.');
  const parts = last.parts.filter(isRecord);
  if (last.role === 'assistant')
    return { kind: 'answers', chatId, parts, edits: isRecord(edits) ? edits : {} };
  if (last.role !== 'user')
    throw new HttpFault(400, 'The last message must be of the user or the assistant.');
  // An edited message stands for other words in a history that is not the client's to change.
  if (messageId !== undefined && messageId !== null) throw new HttpFault(422, 'Messages cannot be edited.');
  return { kind: 'prompt', chatId, messageId: checkId(last.id), text: textOf(parts) };
}

function textOf(parts: readonly Fields[]): string {
  if (parts.some(({ type }) => type === 'file')) throw new HttpFault(422, 'Files are not supported.');
  const texts = parts.filter(({ type, text }) => type === 'text' && typeof text === 'string');
  const text = texts.map((part) => part.text).join('\n');
  if (text.trim() === '') throw new HttpFault(400, 'The message says nothing.');
  return text;
}

const LONGEST_ID = 200;

function checkId(id: unknown): string {
  if (typeof id === 'string' && id.trim() !== '' && id.length <= LONGEST_ID) return id;
  throw new HttpFault(400, `An id must be a text of 1 to ${LONGEST_ID} characters.`);
}

/** `…/{id}/stream`, as the AI SDK asks for it, or `?id=…`. */
function addressedChat({ url }: Request): string {
  const { pathname, searchParams } = new URL(url);
  const [, encoded] = /\/([^/]+)\/stream$/.exec(pathname) ?? [];
  try {
    return checkId(searchParams.get('id') ?? (encoded && decodeURIComponent(encoded)));
  } catch (error) {
    throw error instanceof HttpFault ? error : new HttpFault(400, 'The path is not encoded as it should be.');
  }
}

function lastEventOf({ headers }: Request): number | undefined {
  const given = headers.get('last-event-id');
  return given !== null && /^\d{1,15}$/.test(given) ? Number(given) : undefined;
}

async function readJson(request: Request, maxRequestBytes: number): Promise<unknown> {
  const [type = ''] = (request.headers.get('content-type') ?? '').split(';');
  // Only JSON: what a form of a foreign page can send without asking must not count.
  if (type.trim().toLowerCase() !== 'application/json')
    throw new HttpFault(415, 'The content type must be application/json.');
  const text = await readText(request, maxRequestBytes);
  try {
    return JSON.parse(text);
  } catch {
    throw new HttpFault(400, 'The body is no JSON.');
  }
}

async function readText({ body }: Request, maxRequestBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let size = 0;
  let text = '';
  for await (const chunk of body ?? []) {
    size += chunk.byteLength;
    if (size > maxRequestBytes) throw new HttpFault(413, `The body has more than ${maxRequestBytes} bytes.`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** A request that gets no stream, in words for whoever sent it. */
export class HttpFault extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }

  get response(): Response {
    return Response.json(
      { error: { message: this.message } },
      { status: this.status, headers: { 'cache-control': 'no-store' } },
    );
  }
}
