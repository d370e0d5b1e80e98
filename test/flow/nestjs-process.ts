import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';

const PROGRAM = resolve('dist/examples/nestjs/main.js');

/** The shop of examples/nestjs as a process. Its end is the end of the block that uses it, at the latest. */
export class ShopProcess implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  readonly #ended: Promise<unknown>;

  private constructor(child: ChildProcessByStdio<null, Readable, Readable>, url: string) {
    this.#child = child;
    this.url = url;
    this.#ended = once(child, 'exit');
  }

  /** Starts the built example, with nothing of this process's environment, and waits until it listens. */
  static async open(dataFolder: string, environment: Readonly<Record<string, string>> = {}) {
    if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is missing: run \`npm run build\` first`);
    const child = spawn(process.execPath, [PROGRAM], {
      env: { PORT: '0', SHOP_DATA: dataFolder, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
    while (child.exitCode === null) {
      const url = /The shop is open at (\S+)\n/.exec(said)?.[1];
      if (url !== undefined) return new ShopProcess(child, url);
      await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
    }
    throw new Error(`the shop did not open:\n${said}`);
  }

  /** Asks it to end, and does not wait for it. */
  terminate(): void {
    this.#child.kill('SIGTERM');
  }

  /** The signal that ended it, once it has ended. */
  async ended(): Promise<NodeJS.Signals | null> {
    await this.#ended;
    return this.#child.signalCode;
  }

  /** Ends it as a power cut would. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
