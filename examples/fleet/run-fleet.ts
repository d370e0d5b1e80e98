import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

const RESTART_MS = 500;

/** A process of the fleet: its name and its port. */
export interface Member {
  readonly name: string;
  readonly role: 'web' | 'worker';
  readonly port: number;
}

/** Runs the members as processes of `program` until a signal arrives, and restarts each that dies. */
export async function runFleet(program: string, members: readonly Member[]): Promise<void> {
  const children = new Map<string, ChildProcess>();
  const stopped = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      stopped.abort();
      for (const child of children.values()) child.kill('SIGTERM');
    });
  const keepAlive = async ({ name, role, port }: Member): Promise<void> => {
    while (!stopped.signal.aborted) {
      const child = fork(program, [role, `${port}`], { silent: true });
      children.set(name, child);
      const said = [child.stdout, child.stderr].map((stream) => repeatLines(stream, name));
      const [code, signal] = await once(child, 'close');
      await Promise.all(said);
      if (stopped.signal.aborted) return;
      console.log(`${name}: ended (${signal ?? code}) and is started again`);
      await new Promise((resolve) => setTimeout(resolve, RESTART_MS));
    }
  };
  await Promise.all(members.map(keepAlive));
}

/** Prints the output of a process with its name. */
async function repeatLines(stream: Readable | null, name: string): Promise<void> {
  if (stream === null) return;
  for await (const line of createInterface({ input: stream })) console.log(`${name}: ${line}`);
}
