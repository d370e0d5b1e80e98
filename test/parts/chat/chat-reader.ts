import { readUIMessageStream, type UIMessage, type UIMessageChunk, uiMessageChunkSchema } from 'ai';
import type { ChatHandler } from 'toolwright/chat';

/** Calls a handler without a network. */
export interface AskedChat {
  post(body: object, headers?: Readonly<Record<string, string>>): Promise<Response>;
  get(
    id: string,
    headers?: Readonly<Record<string, string>>,
    what?: 'stream' | 'messages',
  ): Promise<Response>;
}

/** A user of chats; every request contains the user’s name. */
export function chatOf({ fetch }: Pick<ChatHandler, 'fetch'>, user = 'u1'): AskedChat {
  const headers = { 'content-type': 'application/json', 'x-user': user };
  return {
    post: (body, more) =>
      fetch(
        new Request('http://localhost/api/chat', {
          method: 'POST',
          headers: { ...headers, ...more },
          body: JSON.stringify(body),
        }),
      ),
    get: (id, more, what = 'stream') =>
      fetch(new Request(`http://localhost/api/chat/${id}/${what}`, { headers: { ...headers, ...more } })),
  };
}

/** A user message as `useChat` sends it. */
export function said(text: string, id: string = crypto.randomUUID()): UIMessage {
  return { id, role: 'user', parts: [{ type: 'text', text }] };
}

/** The data of a stream's frames, and the id of the last frame that has an id. */
export async function framesOf(
  response: Response,
): Promise<{ readonly data: readonly string[]; readonly ids: readonly number[] }> {
  const lines = (await response.text()).split('\n');
  const valuesOf = (name: string) =>
    lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
  return { data: valuesOf('data'), ids: valuesOf('id').map(Number) };
}

/** Reads a stream like the AI SDK: its chunks, the resulting message, and all protocol violations. */
export async function readMessage(response: Response, before?: UIMessage) {
  const { data, ids } = await framesOf(response);
  const violations: unknown[] = [];
  if (data.at(-1) !== '[DONE]') violations.push('no end');
  const chunks: UIMessageChunk[] = data.slice(0, -1).map((text) => JSON.parse(text));
  for (const chunk of chunks) {
    const checked = await uiMessageChunkSchema().validate?.(chunk);
    if (checked?.success !== true) violations.push({ chunk, checked });
  }
  const told = chunks.flatMap((chunk) => (chunk.type === 'error' ? [chunk.errorText] : []));
  let message = before;
  const onError = (error: unknown) => {
    if (!told.includes((error as Error).message)) violations.push(error);
  };
  const stream = ReadableStream.from<UIMessageChunk>(chunks);
  for await (const next of readUIMessageStream({
    stream,
    onError,
    ...(before ? { message: structuredClone(before) } : {}),
  }))
    message = next;
  return { chunks, ids, violations, message };
}
