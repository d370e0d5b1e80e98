import type { ClassType } from '../../core/contract/declaration.js';
import type { ReviewFault } from '../../core/contract/tool.js';
import { loadPackage, provided } from '../../core/kernel/optional-package.cjs';
import { lineage } from '../../core/metadata/class-record.js';
import { loadedCopies } from './loaded-copies.js';

/** What a rule does. `custom` are all that validate a value, class-validator's own ones included. */
type RuleRole = 'custom' | 'defined' | 'nested' | 'conditional' | 'promise' | 'allowed';

/** One class-validator decorator on one property. */
export interface ValidationRule {
  readonly role: RuleRole;
  /** `isInt`, `isOptional`, …; nothing for `@Validate` and others that carry no name. */
  readonly name?: string;
  readonly constraints: readonly unknown[];
  /** It validates the items, not the array. */
  readonly each: boolean;
  /** Its `validateIf` option decides at call time whether it applies. */
  readonly conditional: boolean;
  /**
   * Whether a value passes this rule alone; `false` also where only class-validator itself can tell. Far
   * cheaper than class-validator, which looks at every class of the process for each object.
   */
  passes(value: unknown, instance: object): boolean;
}

/** class-validator's record of one decorator, as far as it is used here (0.14 and 0.15). */
interface StoredRule {
  readonly type: string;
  readonly name?: string;
  readonly propertyName: string;
  readonly constraints?: readonly unknown[];
  readonly groups?: readonly string[];
  readonly always?: boolean;
  readonly each?: boolean;
  readonly validateIf?: unknown;
  readonly message?: unknown;
  readonly constraintCls?: unknown;
}

/** The implementation behind a rule. */
interface StoredConstraint {
  readonly instance: { validate(value: unknown, args: object): unknown };
}

interface Store {
  readonly validationMetadatas?: ReadonlyMap<unknown, readonly StoredRule[]>;
  getTargetValidatorConstraints?(constraint: unknown): readonly StoredConstraint[];
}

const ROLES: ReadonlyMap<string, RuleRole> = new Map([
  ['isDefined', 'defined'],
  ['nestedValidation', 'nested'],
  ['conditionalValidation', 'conditional'],
  ['promiseValidation', 'promise'],
  ['whitelistValidation', 'allowed'],
]);

/**
 * The class-validator rules of a class by property, those of its bases first. A property whose rules all
 * belong to other groups is there with no rules. class-validator itself is not loaded: its store lies on
 * `globalThis`, keyed by class, and only the classes of the prototype chain are looked up, so the cost does
 * not grow with the number of classes in the process.
 */
export function validationRules(
  target: ClassType,
  groups: readonly string[] = [],
): ReadonlyMap<string, readonly ValidationRule[]> {
  const own = storedRules(target);
  const inherited = lineage(target).slice(0, -1).flatMap(storedRules);
  const applies = (rule: StoredRule) => isInGroups(rule, groups);
  // class-validator drops an inherited rule where the class itself has one of the same *type* on the
  // property, and all value rules are of one type (MetadataStorage.getTargetValidationMetadatas).
  const isReplaced = (rule: StoredRule) =>
    own.some(
      (other) => other.propertyName === rule.propertyName && other.type === rule.type && applies(other),
    );
  const rules = new Map<string, ValidationRule[]>();
  const add = (rule: StoredRule, isKept: boolean) => {
    const ofProperty = rules.get(rule.propertyName) ?? [];
    if (isKept) ofProperty.push(readRule(rule));
    rules.set(rule.propertyName, ofProperty);
  };
  for (const rule of inherited) add(rule, applies(rule) && !isReplaced(rule));
  for (const rule of own) add(rule, applies(rule));
  return rules;
}

/** The properties that class-validator's decorators stand on in this very class, in declaration order. */
export function validatedProperties(target: ClassType): readonly string[] {
  return [...new Set(storedRules(target).map(({ propertyName }) => propertyName))];
}

/**
 * The properties of a class whose rules were copied from another one, as mapped types do it (`PartialType`,
 * `PickType`, …), which extend nothing; and the class that each was copied from.
 */
export function copiedProperties(target: ClassType): ReadonlyMap<string, ClassType> {
  const sources = new Map<string, ClassType>();
  const store = validationStore()?.validationMetadatas;
  const rules = storedRules(target);
  if (store === undefined || rules.length === 0) return sources;
  const bearers = firstBearers(store);
  for (const { propertyName, constraintCls, groups } of rules) {
    for (const mark of [constraintCls, groups]) {
      const first = bearers.get(mark) ?? target;
      if (first !== target && !sources.has(propertyName)) sources.set(propertyName, first);
    }
  }
  return sources;
}

let known: { readonly classes: number; readonly bearers: ReadonlyMap<unknown, ClassType> } | undefined;

/**
 * By what class-validator makes for one use of a decorator, and copies of its record share: the class that had it
 * first. Made anew when rules of more classes are there.
 */
function firstBearers(store: NonNullable<Store['validationMetadatas']>): ReadonlyMap<unknown, ClassType> {
  if (known?.classes === store.size) return known.bearers;
  const bearers = new Map<unknown, ClassType>();
  const add = (mark: unknown, target: unknown) => {
    if (!bearers.has(mark)) bearers.set(mark, target as ClassType);
  };
  for (const [target, rules] of store)
    for (const { constraintCls, groups } of rules) {
      if (typeof constraintCls === 'function' && constraintCls.name === 'CustomConstraint')
        add(constraintCls, target);
      if (groups?.length === 0) add(groups, target);
    }
  known = { classes: store.size, bearers };
  return bearers;
}

function storedRules(target: unknown): readonly StoredRule[] {
  return validationStore()?.validationMetadatas?.get(target) ?? [];
}

/** class-validator's store, once anything has been decorated; one for all copies of the package. */
function validationStore(): Store | undefined {
  return (globalThis as { classValidatorMetadataStorage?: Store }).classValidatorMetadataStorage;
}

/**
 * Whether class-validator is in a bundle of the application from which nothing leads to it, nor to a copy of
 * class-transformer beside it: rules could not be checked, and `@Exclude` would be overlooked.
 */
export function isOutOfReach(): boolean {
  if (isSeen || validationStore() === undefined) return false;
  isSeen =
    provided('class-validator') !== undefined ||
    loadedCopies('class-validator/cjs/metadata/MetadataStorage.js').length > 0 ||
    loadedCopies('class-transformer/cjs/storage.js').length > 0;
  return !isSeen;
}

let isSeen = false;

/** As class-validator decides it: with groups given, rules without a group apply only if `always` is set. */
function isInGroups(rule: StoredRule, groups: readonly string[]): boolean {
  if (rule.always === true || groups.length === 0) return true;
  return (rule.groups ?? []).some((group) => groups.includes(group));
}

/** Whether the author gave a rule of a property its message; `name` is what class-validator reports it as. */
function hasOwnMessage(target: ClassType, property: string, name: string): boolean {
  return lineage(target)
    .flatMap(storedRules)
    .some(
      (rule) =>
        rule.propertyName === property && (rule.name ?? rule.type) === name && rule.message !== undefined,
    );
}

function readRule(rule: StoredRule): ValidationRule {
  return {
    role: ROLES.get(rule.type) ?? 'custom',
    name: rule.name,
    constraints: rule.constraints ?? [],
    each: rule.each ?? false,
    conditional: rule.validateIf !== undefined,
    passes: (value, instance) => passes(rule, value, instance),
  };
}

/** As class-validator runs it (ValidationExecutor.customValidations); a promise is not waited for. */
function passes(rule: StoredRule, value: unknown, instance: object): boolean {
  const implementations = validationStore()?.getTargetValidatorConstraints?.(rule.constraintCls) ?? [];
  const { propertyName: property, constraints = [] } = rule;
  const args = { targetName: instance.constructor.name, property, object: instance, value, constraints };
  const holds = (one: unknown): boolean =>
    implementations.length > 0 &&
    implementations.every((constraint) => constraint.instance.validate(one, args) === true);
  const isCollection = Array.isArray(value) || value instanceof Set || value instanceof Map;
  try {
    return rule.each === true && isCollection ? [...value.values()].every(holds) : holds(value);
  } catch {
    // class-validator's own rules throw at some values: `maxDecimalPlaces` at 1e-7.
    return false;
  }
}

/** How an instance is validated. */
interface ValidateOptions {
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
 * cannot say is validated here.
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
    // Classes without rules are plain values here; the schema has validated them.
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
  const loaded = loadedCopies('class-validator/cjs/index.js') as readonly Validator[];
  const copies = [
    ...(provided('class-validator') ? [provided('class-validator') as Validator] : []),
    ...loaded,
  ];
  const copy = copies.find(({ MetadataStorage }) => MetadataStorage === store) ?? copies[0];
  return copy ?? (loadPackage('class-validator') as Validator);
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
