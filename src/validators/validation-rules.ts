import type { ClassType } from '../contract/class-type.js';
import { lineage } from '../metadata/class-record.js';

/** What a rule does. `custom` are all that judge a value, class-validator's own ones included. */
export type RuleRole = 'custom' | 'defined' | 'nested' | 'conditional' | 'promise' | 'allowed';

/** One class-validator decorator on one property. */
export interface ValidationRule {
  readonly role: RuleRole;
  /** `isInt`, `isOptional`, …; nothing for `@Validate` and others that carry no name. */
  readonly name?: string;
  readonly constraints: readonly unknown[];
  /** It judges the items, not the array. */
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
  const applicable = own.filter(applies);
  // class-validator drops an inherited rule where the class itself has one of the same *type* on the
  // property, and all value rules are of one type (MetadataStorage.getTargetValidationMetadatas).
  const isReplaced = (rule: StoredRule) =>
    applicable.some(({ propertyName, type }) => propertyName === rule.propertyName && type === rule.type);
  const kept = new Set([...inherited.filter((rule) => applies(rule) && !isReplaced(rule)), ...applicable]);
  const rules = new Map<string, ValidationRule[]>();
  for (const rule of [...inherited, ...own]) {
    const ofProperty = rules.get(rule.propertyName) ?? [];
    if (kept.has(rule)) ofProperty.push(readRule(rule));
    rules.set(rule.propertyName, ofProperty);
  }
  return rules;
}

/** The properties that class-validator's decorators stand on in this very class, in declaration order. */
export function validatedProperties(target: ClassType): readonly string[] {
  return [...new Set(storedRules(target).map(({ propertyName }) => propertyName))];
}

/**
 * The class whose rules on a property were copied to another one, as mapped types do it (`PartialType`,
 * `PickType`, …), which extend nothing; `undefined` where the class's rules are its own.
 */
export function copiedFrom(target: ClassType, property: string): ClassType | undefined {
  const store = validationStore()?.validationMetadatas;
  if (store === undefined) return undefined;
  for (const rule of storedRules(target)) {
    if (rule.propertyName !== property) continue;
    for (const mark of marksOf(rule)) {
      const first = firstBearers(store).get(mark);
      if (first !== undefined && first !== target) return first;
    }
  }
  return undefined;
}

let known: { readonly classes: number; readonly bearers: ReadonlyMap<object, ClassType> } | undefined;

/** By what marks a rule: the class that had it first. Made anew when rules of more classes are there. */
function firstBearers(store: NonNullable<Store['validationMetadatas']>): ReadonlyMap<object, ClassType> {
  if (known?.classes === store.size) return known.bearers;
  const bearers = new Map<object, ClassType>();
  for (const [target, rules] of store) {
    for (const mark of rules.flatMap(marksOf)) {
      if (!bearers.has(mark)) bearers.set(mark, target as ClassType);
    }
  }
  known = { classes: store.size, bearers };
  return bearers;
}

/** Objects that class-validator makes for one use of a decorator, and that copies of its record share. */
function marksOf({ constraintCls, groups }: StoredRule): readonly object[] {
  const isMade = typeof constraintCls === 'function' && constraintCls.name === 'CustomConstraint';
  return [...(isMade ? [constraintCls] : []), ...(groups?.length === 0 ? [groups] : [])];
}

function storedRules(target: unknown): readonly StoredRule[] {
  return validationStore()?.validationMetadatas?.get(target) ?? [];
}

/** class-validator's store, once anything has been decorated; one for all copies of the package. */
export function validationStore(): Store | undefined {
  return (globalThis as { classValidatorMetadataStorage?: Store }).classValidatorMetadataStorage;
}

/** As class-validator decides it: with groups given, rules without a group apply only if `always` is set. */
function isInGroups(rule: StoredRule, groups: readonly string[]): boolean {
  if (rule.always === true || groups.length === 0) return true;
  return (rule.groups ?? []).some((group) => groups.includes(group));
}

/** Whether the author gave a rule of a property its message; `name` is what class-validator reports it as. */
export function hasOwnMessage(target: ClassType, property: string, name: string): boolean {
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
