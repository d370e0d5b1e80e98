import 'reflect-metadata';
import { Readable } from 'node:stream';
import { container } from 'tsyringe';
import { runAssistant } from '../../examples/assistant/run-assistant.js';
import { builtFile } from '../processes/built-file.js';
import { NodeProcess } from '../processes/node-process.js';
import { ProgramOutput } from '../processes/program-output.js';
import type { NodeRun } from '../processes/run-node.js';

export interface AssistantStart {
  readonly args?: readonly string[];
  /** Text for standard input; empty by default. */
  readonly input?: string | Uint8Array;
  readonly environment?: Readonly<Record<string, string>>;
  /** Working directory, in which `.assistant` is created. */
  readonly folder: string;
  /** Called with the running assistant. */
  readonly whileRunning?: (assistant: RunningAssistant) => unknown;
}

/** Access to a running assistant. */
export interface RunningAssistant {
  readonly stdout: string;
  /** Resolves with the first match in the output. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>;
}

/** Runs the assistant in this process with an empty environment. One at a time. */
export async function runHere(start: AssistantStart): Promise<NodeRun> {
  const { args = [], input = '', environment = {}, folder, whileRunning } = start;
  const output = new ProgramOutput();
  // The services are kept in the global container: clear it between runs.
  container.clearInstances();
  const running = runAssistant(args, {
    environment: { USER: 'ada', ...environment },
    folder,
    stdin: Readable.from(input.length === 0 ? [] : [Buffer.from(input)]),
    stdout: output.writable('stdout'),
    stderr: output.writable('stderr'),
    abortOnInterrupt: () => new AbortController().signal,
  }).finally(() => output.close());
  const [exitCode] = await Promise.all([running, whileRunning?.(output)]);
  return { exitCode, stdout: output.stdout, stderr: output.stderr };
}

/** Runs the built assistant in another process with an empty environment. */
export async function runProcess(
  start: Omit<AssistantStart, 'whileRunning'> & {
    readonly whileRunning?: (assistant: NodeProcess) => unknown;
  },
): Promise<NodeRun> {
  const { args = [], input = '', environment = {}, folder, whileRunning } = start;
  await using assistant = new NodeProcess([builtFile('dist/examples/assistant/main.js'), ...args], {
    folder,
    environment: { USER: 'ada', TZ: 'UTC', ...environment },
  });
  assistant.write(input);
  assistant.endInput();
  const [end] = await Promise.all([assistant.ended(), whileRunning?.(assistant)]);
  return end;
}
