import type { ArgumentFault } from '../../contract/argument-fault.js';
import { setOwn } from '../../kernel/set-own.js';
import type { ValueType } from '../../schema/value-type.js';

/** An instance that class-validator has to look at once everything is revived. */
export interface Validation {
  readonly instance: object;
  readonly path: string;
  readonly groups?: readonly string[];
  /** Rules that only class-validator can judge; otherwise it is asked only if some rule does not hold. */
  readonly isCertain: boolean;
}

/** What comes up while one call's arguments are revived. */
export interface Revival {
  readonly faults: ArgumentFault[];
  /** The arguments do not fit the schema: every rule is asked what it has to say. */
  readonly isReview?: boolean;
  /** Values that come later: Standard Schemas may validate asynchronously. */
  readonly pending: Promise<void>[];
  readonly validations: Validation[];
  /** Instances for which some rule does not hold: class-validator is asked what to say about it. */
  readonly doubtful: object[];
}

/** Where a value belongs. */
export interface Place {
  readonly revival: Revival;
  /** With dots: `items.0.sku`. */
  readonly path: string;
  /** Replaces the value when it comes later. */
  put(value: unknown): void;
}

/** What a value belongs to: an instance, an array, an object used as a map. */
export type Holder = Record<PropertyKey, unknown>;

/** The place of a child in its holder. Its path is put together only for those who ask: most values are right. */
export class ChildPlace implements Place {
  readonly revival: Revival;
  readonly #parent: Place;
  readonly #name: string | number;
  readonly #holder: Holder;

  constructor(parent: Place, name: string | number, holder: Holder) {
    this.revival = parent.revival;
    this.#parent = parent;
    this.#name = name;
    this.#holder = holder;
  }

  get path(): string {
    return childPath(this.#parent.path, this.#name);
  }

  put(value: unknown): void {
    setOwn(this.#holder, this.#name, value);
  }
}

/** From a JSON value that fits the schema to what the tool takes. */
export type Revive = (value: unknown, place: Place) => unknown;

/** The reviver of a type, handed to those that revive parts. */
export type ReviverOf = (type: ValueType, cascaded?: boolean) => Revive | undefined;

/** The path of a child. */
export function childPath(path: string, key: string | number): string {
  return path === '' ? String(key) : `${path}.${key}`;
}
