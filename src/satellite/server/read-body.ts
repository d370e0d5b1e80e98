import { HttpFault } from './http-fault.js';

/** The JSON of a request's body. Throws an {@link HttpFault} where it is none, or too much. */
export async function readBody(request: Request, maxBytes: number): Promise<unknown> {
  const [type = ''] = (request.headers.get('content-type') ?? '').split(';');
  // Only JSON: what a form of a foreign page can send without asking must not count as a request.
  if (type.trim().toLowerCase() !== 'application/json')
    throw new HttpFault('unsupported_media_type', 'the content type must be application/json');
  const text = decode(await readBytes(request, maxBytes));
  try {
    return JSON.parse(text);
  } catch {
    throw new HttpFault('invalid_json', 'the body is no JSON');
  }
}

async function readBytes({ headers, body }: Request, maxBytes: number): Promise<Uint8Array> {
  const tooLarge = new HttpFault('body_too_large', `the body has more than ${maxBytes} bytes`);
  if (Number(headers.get('content-length')) > maxBytes) throw tooLarge;
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of body ?? []) {
      size += chunk.byteLength;
      if (size > maxBytes) throw tooLarge;
      chunks.push(chunk);
    }
  } catch (thrown) {
    if (thrown === tooLarge) throw thrown;
    throw new HttpFault('invalid_request', 'the body broke off');
  }
  return Buffer.concat(chunks);
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new HttpFault('invalid_json', 'the body is no UTF-8');
  }
}
