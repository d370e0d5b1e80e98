import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';

const PROGRAM = resolve('dist/examples/satellite/main.js');

/** How a program of examples/satellite is started. */
export interface SatelliteStart {
  readonly args: readonly string[];
  /** Working directory: where `.satellite` is made. */
  readonly folder: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** A running program of examples/satellite. Its end is the end of the block that uses it, at the latest. */
export class SatelliteProcess implements AsyncDisposable {
  stdout = '';
  stderr = '';
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  readonly #closed: Promise<unknown>;
  #heard = Promise.withResolvers<void>();

  /** Starts the built example, with nothing of this process's environment. */
  constructor({ args, folder, environment = {} }: SatelliteStart) {
    if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is missing: run \`npm run build\` first`);
    this.#child = spawn(process.execPath, [PROGRAM, ...args], {
      cwd: folder,
      env: { ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#closed = once(this.#child, 'close').then(() => this.#hear());
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
      this.#hear();
    });
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
      this.#hear();
    });
  }

  get exitCode(): number | null {
    return this.#child.exitCode;
  }

  /** The first match in what the program has written, as soon as it has. */
  async said(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
      if (match !== null) return match;
      if (this.#child.exitCode !== null || this.#child.signalCode !== null)
        throw new Error(`it ended without saying ${pattern}:\n${this.stdout}${this.stderr}`);
      await this.#heard.promise;
    }
  }

  async ended(): Promise<void> {
    await this.#closed;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  #hear(): void {
    this.#heard.resolve();
    this.#heard = Promise.withResolvers<void>();
  }
}
