import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { HeardOutput } from './heard-output.js';
import { type NodePlace, type NodeRun, PROCESS_ENVIRONMENT, PROCESS_LIMIT_MS } from './run-node.js';

/** A running Node. Its end is the end of the block that uses it, at the latest. */
export class NodeProcess implements AsyncDisposable {
  readonly #output = new HeardOutput();
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #closed: Promise<unknown>;

  /** Starts this very Node, with nothing of this process's environment. */
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
    // A program that refuses its arguments ends before it has read its input.
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

  /** The first match in what it has written to one of its outputs, as soon as it has. */
  said(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#output.said(pattern);
  }

  /** When it has ended, and so has everything that inherited its outputs. */
  async ended(): Promise<NodeRun> {
    await this.#closed;
    return { exitCode: this.exitCode, stdout: this.stdout, stderr: this.stderr };
  }

  /** Sends it a signal, and does not wait for what comes of it. */
  send(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends it as a power cut would. */
  async kill(): Promise<void> {
    this.send('SIGKILL');
    await this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
