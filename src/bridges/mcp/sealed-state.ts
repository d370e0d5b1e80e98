import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** How long a client may take to answer: people take their time. */
export const ANSWER_MS = 60 * 60 * 1000;

/** What a client keeps for the server: it can neither be read nor changed, nor used by or for anybody else. */
export class SealedState {
  readonly #key: Buffer;

  /** Without a secret, what is sealed can be opened by this process only. */
  constructor(secret?: string) {
    this.#key = secret === undefined ? randomBytes(32) : createHash('sha256').update(secret).digest();
  }

  /** `owner` says whose it is and what for. */
  seal(value: unknown, owner: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce).setAAD(Buffer.from(owner));
    const text = JSON.stringify({ value, until: Date.now() + ANSWER_MS });
    const sealed = Buffer.concat([cipher.update(text), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** The value; nothing where the text is not one of these, another's, or too old. */
  open(text: string, owner: string): unknown {
    const bytes = Buffer.from(text, 'base64url');
    const tagged = NONCE_BYTES + TAG_BYTES;
    // The decoder is lenient; what was changed at all is not what was sealed.
    if (bytes.length <= tagged || bytes.toString('base64url') !== text) return undefined;
    try {
      const decipher = createDecipheriv(CIPHER, this.#key, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(owner)).setAuthTag(bytes.subarray(NONCE_BYTES, tagged));
      const opened = Buffer.concat([decipher.update(bytes.subarray(tagged)), decipher.final()]);
      const { value, until } = JSON.parse(opened.toString());
      return Date.now() < until ? value : undefined;
    } catch {
      return undefined;
    }
  }
}
