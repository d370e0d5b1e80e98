import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';

const PROGRAM = resolve('dist/examples/assistant/main.js');

/** How the assistant is started. */
export interface AssistantStart {
  readonly args?: readonly string[];
  /** What is piped in; nothing by default. */
  readonly input?: string | Uint8Array;
  readonly environment?: Readonly<Record<string, string>>;
  /** Working directory: where `.assistant` is made. */
  readonly folder: string;
  /** Called with the running process. */
  readonly whileRunning?: (child: ChildProcessWithoutNullStreams) => void;
  /** Hears all of standard output so far, each time that there is more of it. */
  readonly onOutput?: (stdout: string, child: ChildProcessWithoutNullStreams) => void;
}

/** What came of it. */
export interface AssistantEnd {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built assistant as a process of its own, with nothing of this process's environment. */
export async function runAssistant(start: AssistantStart): Promise<AssistantEnd> {
  if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is missing: run \`npm run build\` first`);
  const { args = [], input = '', environment = {}, folder, whileRunning, onOutput } = start;
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    cwd: folder,
    env: { USER: 'ada', TZ: 'UTC', ...environment },
  });
  const ended = new Promise<number | null>((done, fail) => child.on('error', fail).on('close', done));
  // A program that refuses its arguments ends before it has read its input.
  child.stdin.on('error', () => {}).end(input);
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    stdout += piece;
    onOutput?.(stdout, child);
  });
  whileRunning?.(child);
  const [exitCode, stderr] = await Promise.all([ended, text(child.stderr)]);
  return { exitCode, stdout, stderr };
}
