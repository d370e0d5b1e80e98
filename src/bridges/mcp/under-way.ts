/** Counts what has begun and not ended yet, and tells when nothing is left of it. */
export class UnderWay {
  #count = 0;
  #none: PromiseWithResolvers<void> | undefined;

  get count(): number {
    return this.#count;
  }

  /** What is returned ends it, once. */
  begin(): () => void {
    this.#count += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#count -= 1;
      if (this.#count > 0) return;
      this.#none?.resolve();
      this.#none = undefined;
    };
  }

  /** Resolves when nothing is under way. */
  async none(): Promise<void> {
    if (this.#count === 0) return;
    this.#none ??= Promise.withResolvers();
    await this.#none.promise;
  }
}
