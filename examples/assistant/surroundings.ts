import type { Readable, Writable } from 'node:stream';

/** What the assistant sees of the world around it: the process that it is, or what a test gives it instead. */
export interface Surroundings {
  readonly environment: NodeJS.ProcessEnv;
  /** Paths on the command line are relative to it. */
  readonly folder: string;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** From now on an interrupt aborts this signal, and nothing else. */
  abortOnInterrupt(): AbortSignal;
}
