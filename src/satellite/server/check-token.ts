import { createHash, timingSafeEqual } from 'node:crypto';
import { HttpFault } from './http-fault.js';

/** Throws an {@link HttpFault} unless the request brings the token; takes as long for every wrong one. */
export function checkToken({ headers }: Request, token: string | undefined): void {
  if (token === undefined) return;
  const [, sent = ''] = /^bearer +(.*)$/i.exec(headers.get('authorization') ?? '') ?? [];
  if (timingSafeEqual(digest(sent.trim()), digest(token.trim()))) return;
  throw new HttpFault('unauthorized', 'a bearer token is needed', { 'www-authenticate': 'Bearer' });
}

/** Digests have one length, whatever was sent. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
