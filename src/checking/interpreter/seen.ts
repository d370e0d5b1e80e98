/** What of one object or list some schema has judged, for `unevaluatedProperties` and `unevaluatedItems`. */
export class Seen {
  readonly #names = new Set<string>();
  readonly #indexes = new Set<number>();
  #hasAllNames = false;
  #hasAllIndexes = false;

  hasName(name: string): boolean {
    return this.#hasAllNames || this.#names.has(name);
  }

  hasIndex(index: number): boolean {
    return this.#hasAllIndexes || this.#indexes.has(index);
  }

  addName(name: string): void {
    this.#names.add(name);
  }

  addIndex(index: number): void {
    this.#indexes.add(index);
  }

  addAllNames(): void {
    this.#hasAllNames = true;
  }

  addAllIndexes(): void {
    this.#hasAllIndexes = true;
  }

  add(other: Seen): void {
    this.#hasAllNames ||= other.#hasAllNames;
    this.#hasAllIndexes ||= other.#hasAllIndexes;
    if (!this.#hasAllNames) for (const name of other.#names) this.#names.add(name);
    if (!this.#hasAllIndexes) for (const index of other.#indexes) this.#indexes.add(index);
  }
}
