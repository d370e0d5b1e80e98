import 'reflect-metadata';
import { Readable } from 'node:stream';
import { container } from 'tsyringe';
import { runAssistant } from '../../examples/assistant/run-assistant.js';
import { builtFile } from '../processes/built-file.js';
import { HeardOutput } from '../processes/heard-output.js';
import { NodeProcess } from '../processes/node-process.js';
import type { NodeRun } from '../processes/run-node.js';

/** How the assistant is started. */
export interface AssistantStart {
  readonly args?: readonly string[];
  /** What is piped in; nothing by default. */
  readonly input?: string | Uint8Array;
  readonly environment?: Readonly<Record<string, string>>;
  /** Working directory: where `.assistant` is made. */
  readonly folder: string;
  /** Called with the running assistant. */
  readonly whileRunning?: (assistant: RunningAssistant) => unknown;
}

/** What can be seen and done of an assistant that runs. */
export interface RunningAssistant {
  readonly stdout: string;
  /** The first match in what it has written, as soon as it has. */
  said(pattern: RegExp): Promise<RegExpExecArray>;
}

/** Runs the assistant in this process, with nothing of this process's environment. One at a time. */
export async function runHere(start: AssistantStart): Promise<NodeRun> {
  const { args = [], input = '', environment = {}, folder, whileRunning } = start;
  const output = new HeardOutput();
  // A process has one desk, so that its services are kept in the one container of all.
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

/** Runs the built assistant as a process of its own, with nothing of this process's environment. */
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
