import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { CommandLine } from './command-line.js';
import { runSatellite } from './run-satellite.js';
import { UserFault } from './user-fault.js';

const DEFAULT_QUESTION = 'What is the weather in Lisbon?';

/** Runs the server in another process and a satellite in this one, for one question. */
export async function runBoth(command: CommandLine): Promise<void> {
  const program = fileURLToPath(new URL('main.js', import.meta.url));
  const args = [program, 'server', '--port', '0', '--data', command.dataFolder];
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  try {
    const url = await addressOf(server);
    await runSatellite({ ...command, url, question: command.question.trim() || DEFAULT_QUESTION });
  } finally {
    server.kill();
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  }
}

async function addressOf({ stdout }: ChildProcess): Promise<string> {
  if (stdout !== null)
    for await (const line of createInterface({ input: stdout })) {
      const [, url] = /^listening on (.+)$/.exec(line) ?? [];
      if (url !== undefined) return url;
    }
  throw new UserFault('the server did not start');
}
