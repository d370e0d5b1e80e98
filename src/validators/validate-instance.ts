import type { ClassType } from '../contract/class-type.js';
import type { ReviewFault } from '../contract/tool-definition.js';
import { loadedCopies } from './loaded-copies.js';
import { loadClassValidator } from './loaded-modules.cjs';
import { hasOwnMessage, validationStore } from './validation-rules.js';

/** How an instance is validated. */
export interface ValidateOptions {
  readonly groups?: readonly string[];
  /** Where the instance lies in the arguments; empty for the whole of them. */
  readonly path: string;
  /** The name in JSON of a property of an object, where it differs from the property's. */
  nameOf(owner: object, property: string): string;
}

/** class-validator's `ValidationError`, as far as it is used here. */
interface ValidationError {
  readonly target?: object;
  readonly property: string;
  readonly constraints?: Readonly<Record<string, string>>;
  readonly children?: readonly ValidationError[];
}

interface Validator {
  readonly MetadataStorage?: unknown;
  validate(instance: object, options: object): Promise<readonly ValidationError[]>;
}

/**
 * Runs class-validator over an instance and all that `@ValidateNested` reaches from it: what JSON Schema
 * cannot say is judged here.
 *
 * @returns One fault per broken rule, `{ path: 'items.0.sku', message: 'must be a string' }`; none if all hold.
 * @throws what a validator of the author throws; Error when class-validator is not installed.
 */
export async function validateInstance(
  instance: object,
  options: ValidateOptions,
): Promise<readonly ReviewFault[]> {
  const errors = await loadValidator().validate(instance, {
    groups: options.groups ? [...options.groups] : undefined,
    // Classes without rules are plain values here; the schema has judged them.
    forbidUnknownValues: false,
  });
  return errors.flatMap((error) => flatten(error, options));
}

/** By the class of the store: that is made by one copy, which was loaded before it. */
const validators = new WeakMap<object, Validator>();

/** Looked for once: a process may have loaded thousands of modules. */
function loadValidator(): Validator {
  const store = validationStore()?.constructor;
  const known = store && validators.get(store);
  if (known !== undefined) return known;
  const found = findValidator(store);
  if (store !== undefined) validators.set(store, found);
  return found;
}

/** The user's copy, not a second one: containers set by `useContainer` live in the copy that was told. */
function findValidator(store: unknown): Validator {
  const copies = loadedCopies('class-validator/cjs/index.js') as readonly Validator[];
  const copy = copies.find(({ MetadataStorage }) => MetadataStorage === store) ?? copies[0];
  return copy ?? (loadClassValidator() as Validator);
}

function flatten(error: ValidationError, options: ValidateOptions): readonly ReviewFault[] {
  const name = error.target === undefined ? error.property : options.nameOf(error.target, error.property);
  const path = options.path === '' ? name : `${options.path}.${name}`;
  const own = Object.entries(error.constraints ?? {}).map(([rule, message]) => ({
    path,
    message: withoutName(message, error.property),
    isAuthored: isAuthored(error, rule),
  }));
  return [...own, ...(error.children ?? []).flatMap((child) => flatten(child, { ...options, path }))];
}

function isAuthored({ target, property }: ValidationError, rule: string): boolean {
  return target !== undefined && hasOwnMessage(target.constructor as ClassType, property, rule);
}

/** The path names the property already. */
function withoutName(message: string, property: string): string {
  return message.startsWith(`${property} `) ? message.slice(property.length + 1) : message;
}
