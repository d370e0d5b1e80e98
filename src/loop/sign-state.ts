import { createHmac, timingSafeEqual } from 'node:crypto';
import { canonicalJson } from '../checking/canonical-json.js';

/** Something that is kept outside and taken back. */
export interface Signable {
  readonly signature?: string;
}

/** The state with its signature; without one where there is no secret. */
export function signState<State extends Signable>(state: State, secret: string | undefined): State {
  const { signature: _, ...unsigned } = state;
  const signature = secret === undefined ? {} : { signature: signatureOf(unsigned, secret) };
  return { ...unsigned, ...signature } as State;
}

/** Whether nobody without the secret changed the state. */
export function isSignedWith({ signature, ...unsigned }: Signable, secret: string): boolean {
  const expected = Buffer.from(signatureOf(unsigned, secret));
  const given = Buffer.from(typeof signature === 'string' ? signature : '');
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function signatureOf(unsigned: object, secret: string): string {
  return createHmac('sha256', secret).update(canonicalJson(unsigned)).digest('base64url');
}
