import { Param, Tool, ToolContext, Toolset } from '../../../decorators/index.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import type { ResourceAccess } from '../../core/contract/touch.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import { ownerText } from '../../core/kernel/json.js';
import { toolsOfInstances } from '../../tools/discovery/discover-tools.js';

/** A task of a list. */
export interface TaskItem {
  readonly text: string;
  readonly status: 'open' | 'doing' | 'done';
}

const MOST_LISTS = 10_000;

/**
 * Stores task lists in this process; above 10,000 lists, the oldest are removed. A subclass may store them elsewhere.
 */
export class TaskLists {
  readonly #lists = new Map<string, readonly TaskItem[]>();

  /** The list of a key, which stands for a conversation, a run or an owner; empty if there is none. */
  read(key: string): readonly TaskItem[] | Promise<readonly TaskItem[]> {
    return this.#lists.get(key) ?? [];
  }

  /** Replaces a list. */
  write(key: string, tasks: readonly TaskItem[]): void | Promise<void> {
    this.#lists.delete(key);
    if (tasks.length > 0) this.#lists.set(key, tasks);
    forgetOldest(this.#lists, MOST_LISTS);
  }
}

/** A list as text, one task per line, with a mark for those that are done. */
function describeTasks(tasks: readonly TaskItem[]): string {
  if (tasks.length === 0) return 'There are no tasks.';
  return tasks.map(({ text, status }, index) => `${index + 1}. [${MARKS[status]}] ${text}`).join('\n');
}

const MARKS: Readonly<Record<TaskItem['status'], string>> = { open: ' ', doing: '~', done: 'x' };

const TASKS = {
  type: 'array',
  maxItems: 200,
  items: {
    type: 'object',
    properties: {
      text: { type: 'string', minLength: 1, maxLength: 500, description: 'What to do' },
      status: { type: 'string', enum: ['open', 'doing', 'done'], default: 'open' },
    },
    required: ['text'],
  },
};

/**
 * A task list that a model maintains for itself, one per conversation, or per run outside of conversations. Changes are
 * reported as progress with `done` and `total`, so that a user interface can show them.
 *
 * @example
 * ```ts
 * tools.register(...discoverTools({ toolsets: [TaskTools] }));
 * ```
 */
@Toolset({ name: 'Tasks' })
export class TaskTools {
  constructor(protected readonly lists: TaskLists) {}

  @Tool({
    description:
      'Write your whole task list, for work in several steps: what is open, what you are doing, and what is done. The user sees it.',
    annotations: {
      title: 'Write tasks',
      readOnly: false,
      destructive: false,
      idempotent: true,
      openWorld: false,
    },
    sequential: true,
    touches: 'touchesNothing',
  })
  async writeTasks(
    @Param({ name: 'tasks', description: 'All tasks, in order', schema: TASKS, required: true })
    tasks: readonly TaskItem[],
    context?: ToolContext,
  ): Promise<ToolResult> {
    await this.lists.write(keyOf(context), tasks);
    const done = tasks.filter(({ status }) => status === 'done').length;
    context?.progress({ done, total: tasks.length, tasks });
    return new ToolResult({ forLLM: describeTasks(tasks), silent: true });
  }

  @Tool({
    description: 'Read your task list.',
    annotations: { title: 'Read tasks', readOnly: true },
  })
  async readTasks(context?: ToolContext): Promise<string> {
    return describeTasks(await this.lists.read(keyOf(context)));
  }

  /** Notes of the model need no approval. */
  touchesNothing(): readonly ResourceAccess[] {
    return [];
  }
}

/** Outside of conversations, each run has its own list; without a run, each owner has. */
function keyOf(context: ToolContext | undefined): string {
  const { conversationId, chatId, runId, owner } = context ?? {};
  return (
    conversationId ?? chatId ?? JSON.stringify(runId === undefined ? { owner: ownerText(owner) } : { runId })
  );
}

/** Sends the user a message while the run continues. */
@Toolset({ name: 'Messages' })
export class MessageTools {
  @Tool({
    description:
      'Send a message to the user now, while you continue working: what you found, or what you do next. Your final answer is shown without this tool.',
    annotations: { title: 'Send message', readOnly: false, destructive: false, openWorld: false },
    touches: 'touchesNothing',
  })
  sendMessage(
    @Param({
      name: 'text',
      description: 'The message, as the user reads it',
      required: true,
      minLength: 1,
      maxLength: 10_000,
    })
    text: string,
  ): ToolResult {
    return new ToolResult({ forLLM: 'Shown to the user.', forUser: text });
  }

  /** Messages to the user need no approval, as answers do not. */
  touchesNothing(): readonly ResourceAccess[] {
    return [];
  }
}

/**
 * Creates `write_tasks`, `read_tasks` and `send_message` without a container.
 *
 * @example
 * ```ts
 * tools.register(...taskTools());
 * ```
 */
export function taskTools(lists: TaskLists = new TaskLists()): ToolDefinition[] {
  return toolsOfInstances(new TaskTools(lists), new MessageTools());
}
