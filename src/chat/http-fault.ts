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

const LONGEST_ID = 200;
/** Keys of entries have two ids, encoded as in addresses, and have to fit into a store. */
const LONGEST_ENCODED = 240;

/** An id that a client has chosen. */
export function checkId(id: unknown): string {
  if (typeof id === 'string' && id.trim() !== '' && id.length <= LONGEST_ID && isKeepable(id)) return id;
  const long = `${LONGEST_ID} characters (${LONGEST_ENCODED} as encodeURIComponent writes it)`;
  throw new HttpFault(400, `An id must be a text of 1 to ${long}, none of them U+0000.`);
}

/** Databases keep neither half characters nor U+0000, and no text of any length as an id. */
function isKeepable(id: string): boolean {
  return id.isWellFormed() && !id.includes('\u0000') && encodeURIComponent(id).length <= LONGEST_ENCODED;
}

/** The body of a request. */
export async function readJson(request: Request, maxRequestBytes: number): Promise<unknown> {
  const [type = ''] = (request.headers.get('content-type') ?? '').split(';');
  // Only JSON: what a form of a foreign page can send without asking must not count.
  if (type.trim().toLowerCase() !== 'application/json')
    throw new HttpFault(415, 'The content type must be application/json.');
  const text = await readText(request, maxRequestBytes);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new HttpFault(400, 'The body is no JSON.');
  }
  checkDepth(body);
  return body;
}

/** Far below what can be read, but not written again for want of a stack. */
const DEEPEST = 500;

function checkDepth(body: unknown): void {
  let level: readonly unknown[] = [body];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > DEEPEST) throw new HttpFault(400, `The body is nested deeper than ${DEEPEST} levels.`);
    level = level.flatMap((value) =>
      typeof value === 'object' && value !== null ? Object.values(value) : [],
    );
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
