import type { BackgroundTask, TaskEvent } from '../contract/background-task.js';
import type { TaskQueue } from '../invocation/task-queue.js';

/** What the tasks of a conversation are taken from. */
export interface ConversationTasksParts {
  /** May serve many conversations. */
  readonly queue: TaskQueue;
  readonly conversationId: string;
  readonly tell: (event: TaskEvent) => void;
}

/** The started work of one conversation. It listens to the queue only while there is something to hear. */
export class ConversationTasks {
  readonly #parts: ConversationTasksParts;
  #unsubscribe: (() => void) | undefined;

  constructor(parts: ConversationTasksParts) {
    this.#parts = parts;
  }

  /** What waits or runs, in the order in which it was started. */
  get open(): readonly BackgroundTask[] {
    return this.#parts.queue.tasks.filter((task) => this.#isOwn(task));
  }

  cancel(taskId: string, reason: string | undefined): boolean {
    return this.open.some(({ id }) => id === taskId) && this.#parts.queue.cancel(taskId, reason);
  }

  /** Tools may start work from now on. */
  listen(): void {
    this.#unsubscribe ??= this.#parts.queue.subscribe((event) => {
      if (this.#isOwn(event.task)) this.#parts.tell(event);
    });
  }

  /** Nothing more is started; where nothing is open, there is nothing to hear. */
  rest(): void {
    if (this.open.length > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }

  #isOwn({ conversationId }: BackgroundTask): boolean {
    return conversationId === this.#parts.conversationId;
  }
}
