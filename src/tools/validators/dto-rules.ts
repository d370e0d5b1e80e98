import type { ClassType } from '../../core/contract/declaration.js';
import type { ReviewFault } from '../../core/contract/tool.js';
import { cached } from '../../core/kernel/cached.js';
import { childPath } from '../../core/kernel/json.js';
import { loadedModules, loadPackage, provided } from '../../core/kernel/optional-package.cjs';
import { declarations, lineage } from '../../core/metadata/class-record.js';

/** The kind of a rule. `custom` includes class-validator's own value rules. */
type RuleRole = 'custom' | 'defined' | 'nested' | 'conditional' | 'promise' | 'allowed';

/** A class-validator decorator on a property. */
export interface ValidationRule {
  readonly role: RuleRole;
  /** `isInt`, `isOptional`, …; absent for `@Validate` and others without a name. */
  readonly name?: string;
  readonly constraints: readonly unknown[];
  /** It validates the items, not the array. */
  readonly each: boolean;
  /** Its `validateIf` option decides at call time whether it applies. */
  readonly conditional: boolean;
  /**
   * Whether a value passes this rule alone; `false` also if only class-validator itself can decide. Much cheaper than
   * class-validator, which searches every class of the process for each object.
   */
  passes(value: unknown, instance: object): boolean;
}

/** The part of class-validator's record of a decorator that is used here (0.14 and 0.15). */
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

/** The implementation of a rule. */
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
 * The class-validator rules of a class by property, starting with those of its bases. A property whose rules all
 * belong to other groups is present without rules. class-validator itself is not loaded. Its store is on
 * `globalThis`, keyed by class, and only the classes of the prototype chain are looked up. The cost therefore does
 * not grow with the number of classes in the process.
 */
export function validationRules(
  target: ClassType,
  groups: readonly string[] = [],
): ReadonlyMap<string, readonly ValidationRule[]> {
  const own = storedRules(target);
  const inherited = lineage(target).slice(0, -1).flatMap(storedRules);
  // As in class-validator: with groups, rules without a group apply only if `always` is set.
  const applies = (rule: StoredRule): boolean =>
    rule.always === true ||
    groups.length === 0 ||
    (rule.groups ?? []).some((group) => groups.includes(group));
  // class-validator drops an inherited rule if the class itself has a rule of the same *type* on the property. All
  // value rules have the same type (MetadataStorage.getTargetValidationMetadatas).
  const isReplaced = (rule: StoredRule) =>
    own.some(
      (other) => other.propertyName === rule.propertyName && other.type === rule.type && applies(other),
    );
  const rules = new Map<string, ValidationRule[]>();
  const add = (rule: StoredRule, isKept: boolean) => {
    const ofProperty = cached(rules, rule.propertyName, (): ValidationRule[] => []);
    if (!isKept) return;
    ofProperty.push({
      role: ROLES.get(rule.type) ?? 'custom',
      name: rule.name,
      constraints: rule.constraints ?? [],
      each: rule.each ?? false,
      conditional: rule.validateIf !== undefined,
      passes: (value, instance) => passes(rule, value, instance),
    });
  };
  for (const rule of inherited) add(rule, applies(rule) && !isReplaced(rule));
  for (const rule of own) add(rule, applies(rule));
  return rules;
}

/** The properties of this class with class-validator's decorators, in declaration order. */
export function validatedProperties(target: ClassType): readonly string[] {
  return [...new Set(storedRules(target).map(({ propertyName }) => propertyName))];
}

/**
 * The properties of a class whose rules were copied from another class, with that class. Mapped types (`PartialType`,
 * `PickType`, …) copy rules and have no base class.
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
 * The first class with each decorator use. class-validator creates one object per use, which copied records share.
 * Rebuilt when more classes have rules.
 */
function firstBearers(store: NonNullable<Store['validationMetadatas']>): ReadonlyMap<unknown, ClassType> {
  if (known?.classes === store.size) return known.bearers;
  const bearers = new Map<unknown, ClassType>();
  for (const [target, rules] of store)
    for (const { constraintCls, groups } of rules) {
      const isOwn = typeof constraintCls === 'function' && constraintCls.name === 'CustomConstraint';
      for (const mark of [isOwn ? constraintCls : undefined, groups?.length === 0 ? groups : undefined])
        if (mark !== undefined && !bearers.has(mark)) bearers.set(mark, target as ClassType);
    }
  known = { classes: store.size, bearers };
  return bearers;
}

function storedRules(target: unknown): readonly StoredRule[] {
  return validationStore()?.validationMetadatas?.get(target) ?? [];
}

/** class-validator's store, which exists after the first decorator; all copies of the package share it. */
function validationStore(): Store | undefined {
  return (globalThis as { classValidatorMetadataStorage?: Store }).classValidatorMetadataStorage;
}

/**
 * Whether class-validator is in the application's bundle but unreachable, together with class-transformer: rules
 * could not be checked, and `@Exclude` would be ignored.
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

/** Runs a rule as class-validator does (ValidationExecutor.customValidations); promises are not awaited. */
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
    // class-validator's own rules throw for some values: `maxDecimalPlaces` for 1e-7.
    return false;
  }
}

/** How an instance is validated. */
interface ValidateOptions {
  readonly groups?: readonly string[];
  /** The path of the instance in the arguments; empty for the root. */
  readonly path: string;
  /** The JSON name of a property, if it differs from the property's. */
  nameOf(owner: object, property: string): string;
}

/** The part of class-validator's `ValidationError` that is used here. */
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
 * Runs class-validator on an instance and everything that `@ValidateNested` reaches from it, for rules that JSON
 * Schema cannot express.
 *
 * @returns One fault per broken rule, `{ path: 'items.0.sku', message: 'must be a string' }`; empty if all pass.
 * @throws errors of the author's validators; Error if class-validator is not installed.
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

/** By the class of the store, because it belongs to the copy that created it. */
const validators = new WeakMap<object, Validator>();

/**
 * The user's copy, because containers that were set by `useContainer` are in that copy. Cached: a process may have
 * loaded thousands of modules.
 */
function loadValidator(): Validator {
  const store = validationStore()?.constructor;
  const known = store && validators.get(store);
  if (known !== undefined) return known;
  const copies = [...(loadedCopies('class-validator/cjs/index.js') as readonly Validator[])];
  const bundled = provided('class-validator') as Validator | undefined;
  if (bundled) copies.unshift(bundled);
  const copy = copies.find(({ MetadataStorage }) => MetadataStorage === store) ?? copies[0];
  const found = copy ?? (loadPackage('class-validator') as Validator);
  if (store !== undefined) validators.set(store, found);
  return found;
}

function flatten(error: ValidationError, options: ValidateOptions): readonly ReviewFault[] {
  const { target, property, constraints = {} } = error;
  const name = target === undefined ? property : options.nameOf(target, property);
  const path = childPath(options.path, name);
  const stored = target === undefined ? [] : lineage(target.constructor as ClassType).flatMap(storedRules);
  const own = Object.entries(constraints).map(([rule, message]) => ({
    path,
    // The property name is already in the path.
    message: message.startsWith(`${property} `) ? message.slice(property.length + 1) : message,
    isAuthored: stored.some(
      (each) =>
        each.propertyName === property && (each.name ?? each.type) === rule && each.message !== undefined,
    ),
  }));
  return [...own, ...(error.children ?? []).flatMap((child) => flatten(child, { ...options, path }))];
}

/** The `@Type` of a property. */
export interface TypeRule {
  /** Calls the author's function; throws its errors. */
  resolve(): unknown;
  /** `design:type` as `@Type` found it: `Array`, `Set`, `Map`, a class, or `undefined`. */
  readonly reflected: unknown;
  readonly discriminator?: Discriminator;
}

/** The discriminator of a `@Type`: the property, and the class of each of its values. */
interface Discriminator {
  readonly property: string;
  readonly keepProperty: boolean;
  readonly subTypes: readonly { readonly name: string; readonly value: ClassType }[];
}

/** A `@Transform` for input, with the parameters of class-transformer. */
export type PropertyTransform = (
  value: unknown,
  of: { readonly key: string; readonly source: object },
) => unknown;

/** class-transformer's decorators of one property, for input. */
export interface TransformRule {
  readonly type?: TypeRule;
  /** The name in JSON, from `@Expose({ name })`. */
  readonly name?: string;
  /** `@Exclude`, or exposed only to some groups: arguments never set it. */
  readonly withheld: boolean;
  /** `@Expose`: its transforms run even if no value was sent. */
  readonly isExposed: boolean;
  readonly transforms: readonly PropertyTransform[];
}

/** The part of class-transformer's store (0.5) that is used here. */
interface TransformStore {
  readonly _typeMetadatas: StoredByClass;
  readonly _transformMetadatas: StoredByClass;
  readonly _exposeMetadatas: StoredByClass;
  readonly _excludeMetadatas: StoredByClass;
  findTypeMetadata(target: ClassType, property: string): StoredType | undefined;
  findExposeMetadata(target: ClassType, property: string): StoredExpose | undefined;
  findTransformMetadatas(target: ClassType, property: string, direction: number): readonly StoredTransform[];
  getExposedProperties(target: ClassType, direction: number): readonly string[];
  getExcludedProperties(target: ClassType, direction: number): readonly string[];
  getStrategy(target: ClassType): 'excludeAll' | 'exposeAll' | 'none';
}

/** A key that is not a string means a decorator on the class itself. */
type StoredByClass = ReadonlyMap<unknown, ReadonlyMap<string | undefined, unknown>>;

interface StoredType {
  readonly reflectedType?: unknown;
  readonly typeFunction?: (of?: object) => unknown;
  readonly options?: {
    readonly keepDiscriminatorProperty?: boolean;
    readonly discriminator?: { readonly property?: string; readonly subTypes?: Discriminator['subTypes'] };
  };
}

interface StoredExpose {
  readonly options?: {
    readonly name?: string;
    readonly groups?: readonly string[];
    readonly toPlainOnly?: boolean;
  };
}

interface StoredTransform {
  readonly transformFn: (of: object) => unknown;
  readonly options?: { readonly groups?: readonly string[] };
}

/** `TransformationType.PLAIN_TO_CLASS`. */
const PLAIN_TO_CLASS = 0;

/** class-transformer's decorators of a class and its bases, for input. */
interface ClassTransforms {
  /** The decorated properties of one class, without inherited ones. */
  ownProperties(ancestor: ClassType): readonly string[];
  /** `undefined` if the property has no decorators. */
  ruleOf(property: string): TransformRule | undefined;
  /** Whether arguments must not set the property. */
  withholds(property: string): boolean;
}

/**
 * Reads the decorators of a class. class-transformer is not loaded; every loaded copy of it is read, so that a second
 * copy is not silently ignored.
 */
export function classTransforms(target: ClassType): ClassTransforms {
  const all: TransformStore[] = [];
  for (const copy of transformStores()) {
    const store = (copy as { defaultMetadataStorage?: TransformStore } | undefined)?.defaultMetadataStorage;
    if (store !== undefined) all.push(store);
  }
  const ancestors = lineage(target);
  const decorated = all.map((store) => ({
    store,
    properties: new Set(ancestors.flatMap((ancestor) => decoratedIn(store, ancestor))),
  }));
  const ruleOf = (property: string): TransformRule | undefined => {
    const store = decorated.find(({ properties }) => properties.has(property))?.store;
    return store && readRule(store, target, property);
  };
  const excludesAll = all.some((store) => store.getStrategy(target) === 'excludeAll');
  const isExposed = (property: string): boolean =>
    all.some((store) => store.getExposedProperties(target, PLAIN_TO_CLASS).includes(property));
  return {
    ownProperties: (ancestor) => [...new Set(all.flatMap((store) => decoratedIn(store, ancestor)))],
    ruleOf,
    withholds: (property) => ruleOf(property)?.withheld === true || (excludesAll && !isExposed(property)),
  };
}

/** The name under which a bundled application provides the stores of class-transformer. */
export const TRANSFORM_STORES = 'class-transformer/storage';

let stores: { readonly at: number; readonly copies: readonly unknown[] } | undefined;

/**
 * Every copy of class-transformer's store, including those in the application's bundle. A class's dependencies were
 * loaded before it, so the search is repeated only after new declarations or calls of the author's type functions:
 * the module list of a large application is long.
 */
function transformStores(): readonly unknown[] {
  const at = declarations();
  if (stores?.at !== at) {
    const bundled = provided(TRANSFORM_STORES) as readonly unknown[] | undefined;
    stores = { at, copies: [...(bundled ?? []), ...loadedCopies('class-transformer/cjs/storage.js')] };
  }
  return stores.copies;
}

/** Marks that a function of the author ran, which may have loaded modules. */
export function authorHasRun(): void {
  stores = undefined;
}

function decoratedIn(store: TransformStore, target: ClassType): readonly string[] {
  const { _typeMetadatas, _transformMetadatas, _exposeMetadatas, _excludeMetadatas } = store;
  const keys: string[] = [];
  for (const stored of [_typeMetadatas, _transformMetadatas, _exposeMetadatas, _excludeMetadatas])
    for (const key of stored.get(target)?.keys() ?? []) if (key !== undefined) keys.push(key);
  return keys;
}

function readRule(store: TransformStore, target: ClassType, property: string): TransformRule {
  const stored = store.findTypeMetadata(target, property);
  const expose = store.findExposeMetadata(target, property)?.options;
  return {
    type: stored && readType(stored),
    name: expose?.toPlainOnly ? undefined : expose?.name,
    withheld:
      (expose?.groups ?? []).length > 0 ||
      store.getExcludedProperties(target, PLAIN_TO_CLASS).includes(property),
    isExposed: store.getExposedProperties(target, PLAIN_TO_CLASS).includes(property),
    transforms: store
      .findTransformMetadatas(target, property, PLAIN_TO_CLASS)
      .filter(({ options }) => (options?.groups ?? []).length === 0)
      .map(
        ({ transformFn }) =>
          (value, { key, source }) =>
            transformFn({ value, key, obj: source, type: PLAIN_TO_CLASS, options: {} }),
      ),
  };
}

function readType({ typeFunction, reflectedType, options }: StoredType): TypeRule {
  const { property, subTypes } = options?.discriminator ?? {};
  const keepProperty = options?.keepDiscriminatorProperty ?? false;
  return {
    // The author's function may read the object that class-transformer is building. While a schema is written, no
    // object is built, so it gets an empty one.
    resolve() {
      authorHasRun();
      return typeFunction?.({ newObject: {}, object: {}, property: '' });
    },
    reflected: reflectedType,
    discriminator: property && subTypes ? { property, keepProperty, subTypes } : undefined,
  };
}

const copiesOf = new Map<string, { readonly modules: number; readonly copies: readonly unknown[] }>();

/**
 * The exports of every copy of a CommonJS file that this process has loaded, for example
 * `class-transformer/cjs/storage.js`. The function loads nothing: metadata exists only if the application has loaded
 * the package, and with linked or nested installations that may be another copy than this package would resolve.
 */
function loadedCopies(file: string): readonly unknown[] {
  const loaded = loadedModules();
  const paths = Object.keys(loaded);
  const before = copiesOf.get(file);
  if (before?.modules === paths.length) return before.copies;
  // Windows uses backslashes.
  const ending = `/node_modules/${file}`;
  const copies = paths
    .filter((path) => path.replaceAll('\\', '/').endsWith(ending))
    .map((path) => loaded[path]?.exports);
  copiesOf.set(file, { modules: paths.length, copies });
  return copies;
}
