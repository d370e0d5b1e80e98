import { finished, PassThrough, type Readable } from 'node:stream';

/** An input that does not end by itself: what was asked before is answered before its connection ends. */
export interface HeldInput {
  readonly input: Readable;
  /** Reads no more. */
  release(): void;
}

/** Passes an input on, and tells of its end instead. */
export function holdInput(input: Readable, onEnd: (error?: Error | null) => void): HeldInput {
  const held = new PassThrough();
  input.pipe(held, { end: false });
  const forget = finished(input, { writable: false }, onEnd);
  return {
    input: held,
    release() {
      forget();
      input.unpipe(held);
    },
  };
}
