import { Writable } from 'node:stream';

/** What a program has written so far, for those who wait for it to say something. */
export class HeardOutput {
  stdout = '';
  stderr = '';
  #isClosed = false;
  #heard = Promise.withResolvers<void>();

  /** More of one of the two. */
  add(stream: 'stdout' | 'stderr', text: string): void {
    this[stream] += text;
    this.#hear();
  }

  /** One of the two, for a program in this process. */
  writable(stream: 'stdout' | 'stderr'): Writable {
    return new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        this.add(stream, chunk.toString());
        done();
      },
    });
  }

  /** Nothing comes any more. */
  close(): void {
    this.#isClosed = true;
    this.#hear();
  }

  /** The first match in what was written to one of the two, as soon as it was. */
  async said(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
      if (match !== null) return match;
      if (this.#isClosed)
        throw new Error(`it ended without saying ${pattern}:\n${this.stdout}${this.stderr}`);
      await this.#heard.promise;
    }
  }

  #hear(): void {
    this.#heard.resolve();
    this.#heard = Promise.withResolvers<void>();
  }
}
