import {
  type BackgroundTask,
  type CallScope,
  type Invocation,
  type TaskEvent,
  TaskQueue,
  type TaskQueueOptions,
  type ToolDefinition,
  ToolRegistry,
  type ToolRegistryOptions,
  type ToolResult,
} from 'toolwright';
import { type LogLine, logbook } from './logbook.js';

/** Calls with a listener for completions, and everything that it received. */
export interface ListenedCalls {
  readonly tasks: TaskQueue;
  readonly heard: readonly ToolResult[];
  /** `type tool` of the tasks' events, in order. */
  readonly events: readonly string[];
  readonly lines: readonly LogLine[];
  readonly logged: () => readonly string[];
  /** The tools of all current tasks, with their status. */
  readonly listed: () => readonly string[];
  readonly taskOf: (tool: string) => BackgroundTask;
  readonly call: (name: string, scope?: CallScope) => Promise<Invocation>;
}

/** The options of the calls, except their tools. */
export interface CallContextText extends TaskQueueOptions {
  readonly registry?: ToolRegistryOptions;
  readonly toolTimeoutMs?: number;
  /** Is also called for each completion, and may throw. */
  readonly onCompletion?: (result: ToolResult) => void;
}

export function listenedCalls(
  tools: Readonly<Record<string, ToolDefinition>>,
  { registry, toolTimeoutMs, onCompletion, ...options }: CallContextText = {},
): ListenedCalls {
  const tasks = new TaskQueue(options);
  const { logger, lines } = logbook();
  const heard: ToolResult[] = [];
  const events: string[] = [];
  tasks.subscribe((event: TaskEvent) => events.push(`${event.type} ${event.task.tool}`));
  const named = Object.entries(tools).map(([name, tool]) => Object.assign(tool, { name }));
  const invoke = new ToolRegistry({ logger, ...registry }).register(...named).invoker({
    tasks,
    ...(toolTimeoutMs === undefined ? {} : { toolTimeoutMs }),
    onAsyncResult: (_context, result) => {
      heard.push(result);
      onCompletion?.(result);
    },
  });
  return {
    tasks,
    heard,
    events,
    lines,
    logged: () => lines.map(({ message }) => message),
    listed: () => tasks.tasks.map(({ tool, status }) => `${tool} ${status}`),
    taskOf: (tool) => {
      const task = tasks.tasks.find((one) => one.tool === tool);
      if (task === undefined) throw new Error(`no task of ${tool}`);
      return task;
    },
    call: async (name, scope = {}) => invoke({ id: `call_${name}`, name, arguments: {} }, scope),
  };
}
