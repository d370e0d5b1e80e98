import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** State that others store, encrypted: it cannot be read, changed, or used for another owner. */
export class SealedState {
  readonly #key: Buffer;
  readonly #lifeMs: number;

  /** Without a secret, only this process can open what it seals. */
  constructor(secret: string | undefined, lifeMs: number) {
    this.#lifeMs = lifeMs;
    this.#key = secret === undefined ? randomBytes(32) : createHash('sha256').update(secret).digest();
  }

  /** `owner` identifies the owner and the purpose. */
  seal(value: unknown, owner: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce).setAAD(Buffer.from(owner));
    const text = JSON.stringify({ value, until: Date.now() + this.#lifeMs });
    const sealed = Buffer.concat([cipher.update(text), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** The value; `undefined` if the text is invalid, has another owner, or is too old. */
  open(text: string, owner: string): unknown {
    const bytes = Buffer.from(text, 'base64url');
    const tagged = NONCE_BYTES + TAG_BYTES;
    // The decoder is lenient, but any change must invalidate the text.
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
