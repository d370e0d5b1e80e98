import { Injectable } from '@nestjs/common';

/** The number of executions and their total duration. */
export interface Measurement {
  readonly count: number;
  readonly totalMs: number;
}

/** The measurements since the application started. */
@Injectable()
export class Measurements {
  readonly #byName = new Map<string, Measurement>();

  add(name: string, durationMs: number): void {
    const { count = 0, totalMs = 0 } = this.#byName.get(name) ?? {};
    this.#byName.set(name, { count: count + 1, totalMs: totalMs + durationMs });
  }

  all(): Readonly<Record<string, Measurement>> {
    return Object.fromEntries(this.#byName);
  }
}
