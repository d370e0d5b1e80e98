import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Message, PendingCall } from 'toolwright';
import type { BuiltProgram } from '../processes/build-program.js';
import type { ConversationOrder, ConversationTold } from './conversation-program.js';
import type { Order } from './stored-run-program.js';

/** A message from a process. */
export interface Told extends Partial<ConversationTold> {
  readonly told: string;
  readonly runId?: string;
  readonly pending?: readonly PendingCall[];
  /** The name of the run in the effects of its tools. */
  readonly run?: string;
  readonly messages?: readonly Message[];
  readonly hasLoadedSqlite?: boolean;
}

/** A process that runs one of the programs. */
export class StoredRunProcess {
  readonly #child: ChildProcess;
  readonly #unread: Told[] = [];
  #reader: ((told: Told) => void) | undefined;

  constructor(
    { file }: BuiltProgram,
    { path, effects }: { readonly path: string; readonly effects: string },
  ) {
    this.#child = fork(file, [path, effects], { execArgv: [], env: { ...process.env, NODE_OPTIONS: '' } });
    this.#child.on('message', (told: Told) => this.#hear(told));
    this.#child.on('exit', (code, signal) => this.#hear({ told: `ended: ${code ?? signal}` }));
  }

  order(order: Order | ConversationOrder): void {
    this.#child.send(order);
  }

  /** Its next message, or its end. */
  hear(): Promise<Told> {
    const told = this.#unread.shift();
    if (told !== undefined) return Promise.resolve(told);
    return new Promise((hear) => {
      this.#reader = hear;
    });
  }

  /** Ends it as a power failure would. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  /** Asks it to end, as a service manager does. */
  askToEnd(): void {
    this.#child.kill('SIGTERM');
  }

  /** Lets it end by itself when it has nothing left to do. */
  async leave(): Promise<number | null> {
    const ended = once(this.#child, 'exit') as Promise<[number | null]>;
    this.#child.disconnect();
    return (await ended)[0];
  }

  #hear(told: Told): void {
    const reader = this.#reader;
    this.#reader = undefined;
    if (reader === undefined) this.#unread.push(told);
    else reader(told);
  }
}
