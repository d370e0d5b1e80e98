import { createHmac, timingSafeEqual } from 'node:crypto';
import { canonicalJson } from '../checking/canonical-json.js';
import type { RunState } from '../contract/run-state.js';

/** The state with its signature; as it is where there is no secret. */
export function signState(state: RunState, secret: string | undefined): RunState {
  const { signature: _, ...unsigned } = state;
  return secret === undefined ? unsigned : { ...unsigned, signature: signatureOf(unsigned, secret) };
}

/** Whether nobody without the secret changed the state. */
export function isSignedWith({ signature, ...unsigned }: RunState, secret: string): boolean {
  const expected = Buffer.from(signatureOf(unsigned, secret));
  const given = Buffer.from(signature ?? '');
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function signatureOf(unsigned: Omit<RunState, 'signature'>, secret: string): string {
  return createHmac('sha256', secret).update(canonicalJson(unsigned)).digest('base64url');
}
