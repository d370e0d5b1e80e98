import { Writable } from 'node:stream';

/** The output of a program so far; tests can wait for more. */
export class ProgramOutput {
  stdout = '';
  stderr = '';
  #isClosed = false;
  #changed = Promise.withResolvers<void>();

  add(stream: 'stdout' | 'stderr', text: string): void {
    this[stream] += text;
    this.#notify();
  }

  /** A stream for a program that runs in this process. */
  writable(stream: 'stdout' | 'stderr'): Writable {
    return new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        this.add(stream, chunk.toString());
        done();
      },
    });
  }

  /** Makes `waitFor` fail instead of waiting for more output. */
  close(): void {
    this.#isClosed = true;
    this.#notify();
  }

  /** Waits until one of the two outputs matches. */
  async waitFor(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
      if (match !== null) return match;
      if (this.#isClosed)
        throw new Error(`The program ended without writing ${pattern}:\n${this.stdout}${this.stderr}`);
      await this.#changed.promise;
    }
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }
}
