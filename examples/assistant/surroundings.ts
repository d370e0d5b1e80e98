import type { Readable, Writable } from 'node:stream';

/** The process around the assistant: the real one, or the one that a test supplies. */
export interface Surroundings {
  readonly environment: NodeJS.ProcessEnv;
  /** The folder that paths on the command line are relative to. */
  readonly folder: string;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** From the first use on, an interrupt aborts this signal instead of ending the process. */
  abortOnInterrupt(): AbortSignal;
}
