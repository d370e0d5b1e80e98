import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { ProgramOutput } from './program-output.js';
import { type NodePlace, type NodeRun, PROCESS_ENVIRONMENT, PROCESS_LIMIT_MS } from './run-node.js';

/** A Node process, which `await using` kills. */
export class NodeProcess implements AsyncDisposable {
  readonly #output = new ProgramOutput();
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #closed: Promise<unknown>;

  /** Starts the same version of Node, without the environment of this process. */
  constructor(args: readonly string[], { folder, environment = {} }: NodePlace) {
    this.#child = spawn(process.execPath, args, {
      cwd: folder,
      env: { ...environment, ...PROCESS_ENVIRONMENT },
    });
    const limit = setTimeout(() => {
      this.#output.add('stderr', `\n[killed: it ran longer than ${PROCESS_LIMIT_MS} ms]\n`);
      this.#child.kill('SIGKILL');
    }, PROCESS_LIMIT_MS).unref();
    this.#closed = once(this.#child, 'close').finally(() => {
      clearTimeout(limit);
      this.#output.close();
    });
    // A program that rejects its arguments ends before it reads its input.
    this.#child.stdin.on('error', () => {});
    for (const stream of ['stdout', 'stderr'] as const)
      this.#child[stream].setEncoding('utf8').on('data', (text: string) => this.#output.add(stream, text));
  }

  get stdout(): string {
    return this.#output.stdout;
  }

  get stderr(): string {
    return this.#output.stderr;
  }

  get exitCode(): number | null {
    return this.#child.exitCode;
  }

  /** The signal that ended it. */
  get signal(): NodeJS.Signals | null {
    return this.#child.signalCode;
  }

  /** Writes to its standard input. */
  write(input: string | Uint8Array): void {
    this.#child.stdin.write(input);
  }

  /** Ends its standard input. */
  endInput(): void {
    this.#child.stdin.end();
  }

  /** Waits until one of its outputs matches. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#output.waitFor(pattern);
  }

  /** Waits until it has ended, and so have all processes that inherited its outputs. */
  async ended(): Promise<NodeRun> {
    await this.#closed;
    return { exitCode: this.exitCode, stdout: this.stdout, stderr: this.stderr };
  }

  /** Sends a signal and does not wait for its effect. */
  send(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Kills it without a chance to clean up, like a power cut. */
  async kill(): Promise<void> {
    this.send('SIGKILL');
    await this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
