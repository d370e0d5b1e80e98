import { type AuthorFault, ToolDeclarationError } from '../errors/author-fault.js';
import { checkNumbers, type NumberRule } from '../errors/check-numbers.js';
import { TaskQueue } from '../invocation/task-queue.js';
import { ToolRegistry } from '../registry/tool-registry.js';
import type { ToolLoopConfig } from './loop-config.js';

const NUMBERS: Readonly<Record<string, NumberRule>> = {
  maxIterations: { min: 0, isWhole: true, allowsInfinity: true },
  maxRetries: { min: 0, isWhole: true, allowsInfinity: true },
  maxConcurrency: { min: 0, isWhole: true, allowsInfinity: true },
  toolTimeoutMs: { min: 1, allowsInfinity: true },
  maxResultChars: { min: 0, isWhole: true, allowsInfinity: true },
};

const DETECTORS: ReadonlySet<unknown> = new Set(['native', 'tool_request', 'scan']);

const WHERE = 'the loop’s config';

/**
 * Checks what a run is given before anything is asked.
 *
 * @throws ToolDeclarationError (502): a run cannot begin with what its author got wrong.
 */
export function checkConfig(config: ToolLoopConfig, messages: unknown): void {
  const faults: AuthorFault[] = [];
  if (typeof config?.provider?.chat !== 'function')
    faults.push({
      where: WHERE,
      problem: 'its provider has no chat method',
      fix: 'provider: new OpenAIProvider(), …',
    });
  const tasks: unknown = config?.tasks;
  if (tasks !== undefined && !(tasks instanceof TaskQueue))
    faults.push({
      where: WHERE,
      problem: 'its tasks are no TaskQueue',
      fix: 'tasks: new TaskQueue({ maxRunning: 4 })',
    });
  const detector: unknown = config?.detector;
  if (detector !== undefined && typeof detector !== 'function' && !DETECTORS.has(detector))
    faults.push({
      where: WHERE,
      problem: `its detector is ${JSON.stringify(detector)}`,
      fix: "detector: 'native', 'tool_request', 'scan', or a function",
    });
  const tools: unknown = config?.tools;
  if (tools !== undefined && !(tools instanceof ToolRegistry) && !Array.isArray(tools))
    faults.push({
      where: WHERE,
      problem: 'its tools are neither a ToolRegistry nor an array',
      fix: 'tools: [tool, …]',
    });
  if (!Array.isArray(messages))
    faults.push({
      where: 'the loop’s messages',
      problem: 'they are no array',
      fix: "[{ role: 'user', content: '…' }]",
    });
  if (faults.length > 0) throw new ToolDeclarationError(faults);
  checkNumbers(WHERE, config, NUMBERS);
}
