/** How much of a conversation is at rest. */
export interface Rest {
  /** No turn runs, and none could begin. */
  readonly turns: boolean;
  /** No work that a tool has started goes on. */
  readonly tasks: boolean;
}

interface Waiter {
  readonly tasks: boolean;
  readonly resolve: () => void;
}

/** Those who wait for a conversation to be idle. */
export class IdleWaiters {
  #waiters: readonly Waiter[] = [];

  /** Resolves when the turns are at rest, and where `tasks` is asked for those too. */
  add(tasks: boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters = [...this.#waiters, { tasks, resolve }];
    });
  }

  /** Tells those whose wait is over. */
  tell(restOf: () => Rest): void {
    if (this.#waiters.length === 0) return;
    const rest = restOf();
    const isOver = ({ tasks }: Waiter): boolean => rest.turns && (rest.tasks || !tasks);
    const over = this.#waiters.filter(isOver);
    this.#waiters = this.#waiters.filter((waiter) => !isOver(waiter));
    for (const { resolve } of over) resolve();
  }
}
