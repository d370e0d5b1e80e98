import { canonicalJson } from '../checking/canonical-json.js';
import { nodeCrypto } from '../kernel/node-module.js';

/** Something that is kept outside and taken back. */
export interface Signable {
  readonly signature?: string;
}

let madeSecret: string | undefined;

/**
 * Signs what names owners where no secret is configured: what this process gave out is known here again, and
 * what comes from elsewhere counts as unsigned. Made when it is needed: Workers allow no randomness before that.
 */
function processSecret(): string {
  madeSecret ??= nodeCrypto().randomBytes(32).toString('base64url');
  return madeSecret;
}

/** With what something is signed. */
export interface SigningKey {
  readonly secret: string | undefined;
  /** It names owners: it is signed without a secret, too. */
  readonly isOwned: boolean;
}

/** The state with its signature; without one where it needs none and there is no secret. */
export function signState<State extends Signable>(state: State, { secret, isOwned }: SigningKey): State {
  const { signature: _, ...unsigned } = state;
  const key = secret ?? (isOwned ? processSecret() : undefined);
  const signature = key === undefined ? {} : { signature: signatureOf(unsigned, key) };
  return { ...unsigned, ...signature } as State;
}

/** Whether nobody without the secret changed the state; without a secret, whether this process signed it. */
export function isSignedWith({ signature, ...unsigned }: Signable, secret = processSecret()): boolean {
  if (typeof signature !== 'string') return false;
  const expected = Buffer.from(signatureOf(unsigned, secret));
  const given = Buffer.from(signature);
  return given.length === expected.length && nodeCrypto().timingSafeEqual(given, expected);
}

function signatureOf(unsigned: object, secret: string): string {
  return nodeCrypto().createHmac('sha256', secret).update(canonicalJson(unsigned)).digest('base64url');
}
