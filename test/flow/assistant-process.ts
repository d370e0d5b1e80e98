import { builtFile } from '../processes/built-file.js';
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
  /** Called with the running process. */
  readonly whileRunning?: (assistant: NodeProcess) => unknown;
}

/** Runs the built assistant as a process of its own, with nothing of this process's environment. */
export async function runAssistant(start: AssistantStart): Promise<NodeRun> {
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
