import type { CallRequest } from './invocation.js';

/** A call that came without an id. Its number is written out only for those who ask. */
export class NumberedCall implements CallRequest {
  readonly name: string;
  readonly arguments: unknown;
  readonly #number: number;

  constructor(number: number, name: string, args: unknown) {
    this.#number = number;
    this.name = name;
    this.arguments = args;
  }

  get id(): string {
    return `call_${this.#number}`;
  }
}
