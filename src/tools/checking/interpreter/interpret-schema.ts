import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { cached } from '../../../core/kernel/cached.js';
import { counted } from '../../../core/kernel/counted.js';
import { canonicalJson, type Fields, isObject, pointerStep } from '../../../core/kernel/json.js';
import { findReference } from '../../schema/find-reference.js';
import { draftOf, isKnownIn, isSchemaNode, KEYWORDS } from '../../schema/keywords.js';
import { formatTest, patternOf } from '../formats.js';
import { closestBranch, typeTest, unionChooser } from '../schema-level.js';
import { type WholeSchema, wholeSchema } from './whole-schema.js';

/** Creates the part for a keyword of a schema. */
type PartOf = (schema: JsonSchema, keyword: string) => Part;

/** Deeper schemas become separate functions. */
const MAX_DEPTH = 8;
/** Objects with more properties are tested in a loop, because engines do not optimize very large functions. */
const MAX_PROPERTIES = 200;
/** More keys are looked up in a set. */
const MAX_COMPARED_KEYS = 16;

const TYPES: Readonly<Record<string, (value: string) => string>> = {
  number: (value) => `typeof ${value} === 'number' && Number.isFinite(${value})`,
  integer: (value) => `Number.isInteger(${value})`,
  array: (value) => `Array.isArray(${value})`,
  object: (value) => `typeof ${value} === 'object' && ${value} !== null && !Array.isArray(${value})`,
  null: (value) => `${value} === null`,
};

function typeCode(type: string, value: string): string {
  return TYPES[type]?.(value) ?? `typeof ${value} === ${literal(type)}`;
}

/**
 * Writes the test of a schema as one generated function. It contains code for types, properties, items and the
 * keywords with `code`; other keywords call a validator.
 */
class TestWriter {
  readonly #partOf: PartOf;
  /** The constants of the code, as parameters of the outer function. */
  readonly #constants: unknown[] = [];
  #names = 0;

  constructor(partOf: PartOf) {
    this.#partOf = partOf;
  }

  write(schema: JsonSchema): Test {
    const code = this.#statements(schema, 'value', 0);
    const names = this.#constants.map((_, index) => `c${index}`);
    const make = new Function(...names, `'use strict'; return (value) => { ${code} return true; }`);
    return make(...this.#constants);
  }

  readonly #constant = (value: unknown): string => `c${this.#constants.push(value) - 1}`;

  #name(): string {
    this.#names += 1;
    return `v${this.#names}`;
  }

  /** Statements that return `false` if a value does not match. */
  #statements(schema: unknown, value: string, depth: number): string {
    if (schema === false) return 'return false;';
    if (!isSchemaNode(schema)) return '';
    if (depth > MAX_DEPTH) return this.#refuseUnless(this.#partOf(schema, 'type').validatorOf(schema), value);
    const { types, groups } = validatorGroups(schema, this.#partOf);
    let code = '';
    for (const { type, made, isOnly } of groups) {
      const body = this.#group({ schema, made, value, depth, type });
      if (type === undefined) code += body;
      else if (isOnly) code += `if (!(${typeCode(type, value)})) return false; ${body}`;
      else if (body !== '') code += `if (${typeCode(type, value)}) { ${body} }`;
    }
    if (types.length === 0) return code;
    return `if (!(${types.map((type) => typeCode(type, value)).join(' || ')})) return false; ${code}`;
  }

  #group(of: {
    readonly schema: JsonSchema;
    readonly made: readonly Made[];
    readonly value: string;
    readonly depth: number;
    readonly type?: string;
  }): string {
    const { schema, made, value, depth, type } = of;
    const isWrittenOut = type === 'object' && isPlain(schema);
    let code = isWrittenOut ? this.#properties(schema, value, depth) : '';
    for (const [keyword, validate] of made) {
      if (isWrittenOut && WRITTEN_OUT.has(keyword)) continue;
      const { items, prefixItems } = schema;
      if (keyword === 'items' && isSchemaNode(items) && prefixItems === undefined) {
        const [index, item] = [this.#name(), this.#name()];
        code += `for (let ${index} = 0; ${index} < ${value}.length; ${index} += 1) {
          const ${item} = ${value}[${index}]; ${this.#statements(items, item, depth + 1)} }`;
      } else code += this.#refuseUnless(validate, value);
    }
    return code;
  }

  #properties(schema: JsonSchema, value: string, depth: number): string {
    const { properties = {}, required = [] } = schema;
    const listed = Object.keys(properties);
    let code = '';
    for (const name of new Set([...listed, ...required])) {
      const property = this.#name();
      const isListed = Object.hasOwn(properties, name);
      const body = isListed ? this.#statements(properties[name], property, depth + 1) : '';
      code += `const ${property} = ${value}[${literal(name)}];`;
      if (required.includes(name)) code += `if (${property} === undefined) return false; ${body}`;
      else if (body !== '') code += `if (${property} !== undefined) { ${body} }`;
    }
    return code + this.#others(schema, listed, value);
  }

  /** The interpreter tests keys that are not listed, if there are any. */
  #others(schema: JsonSchema, listed: readonly string[], value: string): string {
    const { additionalProperties } = schema;
    if (additionalProperties === undefined) return '';
    const validate = this.#partOf(schema, 'additionalProperties').validatorOf(additionalProperties);
    const known = new Set(listed);
    const test = othersTest(known, validate);
    if (test === undefined) return '';
    const key = this.#name();
    const isOther =
      listed.length > MAX_COMPARED_KEYS
        ? `!${this.#constant(known)}.has(${key})`
        : listed.map((name) => `${key} !== ${literal(name)}`).join(' && ') || 'true';
    return `for (const ${key} in ${value}) if (${isOther}) {
      if (!${this.#constant(test)}(${value})) return false; break; }`;
  }

  #refuseUnless(validate: Validator, value: string): string {
    if (validate === ALWAYS_VALID) return '';
    const code = validate.code?.(value, this.#constant) ?? `${this.#constant(testOf(validate))}(${value})`;
    return `if (!(${code})) return false;`;
  }
}

const WRITTEN_OUT: ReadonlySet<string> = new Set(['properties', 'required', 'additionalProperties']);

/** Whether the properties of an object can be read directly: no key is a name of `Object.prototype`. */
function isPlain({ properties = {}, required = [], patternProperties }: JsonSchema): boolean {
  const names = [...Object.keys(properties), ...required];
  return (
    patternProperties === undefined &&
    names.length <= MAX_PROPERTIES &&
    names.every((name) => !(name in Object.prototype))
  );
}

/** A schema that can be evaluated. */
interface InterpretedSchema {
  /** Whether a value matches. */
  readonly test: (value: unknown) => boolean;
  /** All errors of a value; `undefined` if it matches. */
  readonly check: (value: unknown) => readonly SchemaError[] | undefined;
  /** Generates the same test as code; absent if results depend on earlier validations. */
  readonly generate?: () => Test;
}

/**
 * Interprets a schema with one validator for each part. Creating validators takes a small fraction of the time of
 * generating code, and also works if code generation is forbidden. Generated code for frequently used schemas gives
 * the same results.
 */
export function interpretSchema(schema: JsonSchema): InterpretedSchema {
  const whole = wholeSchema(schema);
  const { root, isTracking, isDynamic, isRepeating } = whole;
  const scope = new Scope(whole, []).enter(root);
  let validate: Validator | undefined;
  const ask = (value: unknown, run: Run): boolean => {
    validate ??= scope.validatorOf(root);
    return validate(value, run, run.track());
  };
  const hasMemory = isTracking || isDynamic || isRepeating;
  return {
    generate: hasMemory ? undefined : () => new Scope({ ...whole, isGenerating: true }, []).generate(root),
    test: (value) => ask(value, new Run({ isReporting: false, isTracking })),
    check(value) {
      const run = new Run({ isReporting: true, isTracking });
      return ask(value, run) ? undefined : run.errors;
    },
  };
}

/** A test that is replaced by generated code after many uses. */
interface ImprovingTest {
  ask: Test;
}

/** Code is generated for schemas that are used more often; for others it would take longer than it saves. */
const MAX_INTERPRETED = 50;

/**
 * All errors of a value for a valid schema of draft 7, 2019-09 or 2020-12, including formats; `undefined` if it
 * matches.
 */
export function schemaCheck(schema: JsonSchema): (value: unknown) => readonly SchemaError[] | undefined {
  return interpretSchema(schema).check;
}

/** Whether a value matches a valid schema; cheaper than the errors. */
export function schemaTest(schema: JsonSchema): Test {
  const improving = improvingTest(schema);
  return (value) => improving.ask(value);
}

/** The same for frequent use: interpreted first, later as generated code. */
export function improvingTest(schema: JsonSchema): ImprovingTest {
  const { test, generate } = interpretSchema(schema);
  if (generate === undefined) return { ask: test };
  let calls = 0;
  const improving: ImprovingTest = {
    ask(value) {
      calls += 1;
      if (calls > MAX_INTERPRETED) improving.ask = mayGenerateCode() ? generate() : test;
      return test(value);
    },
  };
  return improving;
}

let isAllowed: boolean | undefined;

/**
 * Whether this process may generate code: not under `--disallow-code-generation-from-strings`, nor in workers and
 * pages whose policy forbids it. The restriction is reported once.
 */
export function mayGenerateCode(): boolean {
  if (isAllowed !== undefined) return isAllowed;
  try {
    isAllowed = new Function('return true')() === true;
  } catch {
    const message = 'No code may be generated here: schemas are interpreted, which is slower.';
    process.emitWarning(message, { type: 'ToolwrightWarning', code: 'TOOLWRIGHT_INTERPRETED' });
    isAllowed = false;
  }
  return isAllowed;
}

const scopes = new WeakMap<JsonSchema, Scope>();

/**
 * Whether a value matches a part of a schema; for values that are validated once, such as defaults. Keywords that
 * depend on other validations, and endless self-references, are ignored.
 */
export function fitsSchema(value: unknown, schema: JsonSchema, root: JsonSchema): boolean {
  const scope = cached(scopes, root, scopeWithoutMemory);
  try {
    return testOf(scope.validatorOf(schema))(value);
  } catch (error) {
    if (error instanceof RangeError) return true;
    throw error;
  }
}

function scopeWithoutMemory(root: JsonSchema): Scope {
  const whole = { root, draft: draftOf(root), isTracking: false, isDynamic: false, isRepeating: false };
  return new Scope(whole, []);
}

/**
 * The validators of schemas that were reached through the same resources, because the target of a dynamic reference
 * depends on them.
 */
class Scope {
  readonly whole: WholeSchema;
  readonly #resources: readonly JsonSchema[];
  readonly #validates = new Map<JsonSchema, Validator>();
  readonly #inner = new Map<JsonSchema, Scope>();

  constructor(whole: WholeSchema, resources: readonly JsonSchema[]) {
    this.whole = whole;
    this.#resources = resources;
  }

  /** The scope within the resource that a schema belongs to. */
  enter(schema: JsonSchema): Scope {
    const { root, isDynamic } = this.whole;
    const resource = isDynamic ? findReference('#', root, schema) : undefined;
    if (!isSchemaNode(resource) || this.#resources.includes(resource)) return this;
    return cached(this.#inner, resource, () => new Scope(this.whole, [...this.#resources, resource]));
  }

  validatorOf(schema: unknown): Validator {
    if (!isSchemaNode(schema)) return schema === false ? REFUSES : ALWAYS_VALID;
    return this.enter(schema).#validatorOf(schema);
  }

  #validatorOf(schema: JsonSchema): Validator {
    const known = this.#validates.get(schema);
    if (known !== undefined) return known;
    let test: Test | undefined;
    const validate: Validator = this.whole.isGenerating
      ? // Code is generated for the first value, because schemas may contain themselves.
        (value) => {
          test ??= this.generate(schema);
          return test(value);
        }
      : schemaValidator(schema, this.#partOf);
    const isCounting = (schema.unevaluatedProperties ?? schema.unevaluatedItems) !== undefined;
    const tracking = this.whole.isTracking && isCounting ? withOwnTrack(validate) : validate;
    this.#validates.set(schema, tracking);
    return tracking;
  }

  generate(schema: JsonSchema): Test {
    return new TestWriter(this.#partOf).write(schema);
  }

  readonly #partOf: PartOf = (schema, keyword) => {
    const { root, isTracking, draft } = this.whole;
    return {
      keyword,
      given: schema[keyword],
      schema,
      root,
      isTracking,
      marksContained: draft === '2020-12',
      knows: (name) => isKnownIn(draft, KEYWORDS.get(name) ?? {}),
      validatorOf: (part) => this.validatorOf(part),
      referred: () => this.#referred(schema, keyword),
    };
  };

  /** The validator of a reference's target, created on first use, because it may contain the reference. */
  #referred(from: JsonSchema, keyword: string): Validator {
    let validate: Validator | undefined;
    return (value, run, seen) => {
      if (validate === undefined) {
        const target = this.validatorOf(this.#target(from, keyword));
        validate = this.whole.isRepeating ? remembering(target) : target;
      }
      return validate(value, run, seen);
    };
  }

  #target(from: JsonSchema, keyword: string): unknown {
    const reference = String(from[keyword]);
    const target = findReference(reference, this.whole.root, from);
    if (keyword === '$ref' || !isSchemaNode(target)) return target;
    const anchor = keyword === '$dynamicRef' ? '$dynamicAnchor' : '$recursiveAnchor';
    const wanted = keyword === '$dynamicRef' ? reference.slice(1) : true;
    if (target[anchor] !== wanted) return target;
    // The outermost enclosing resource with the same anchor.
    for (const resource of this.#resources) {
      const other = findReference(reference, this.whole.root, resource);
      if (isSchemaNode(other) && other[anchor] === wanted) return other;
    }
    return target;
  }
}

const FALSE = { keyword: 'false schema', given: false, schema: {} };

const REFUSES: Validator = (value, run) => run.refuse(value, FALSE, { message: 'boolean schema is false' });

/** Validates each value once; errors are reported once for each location. */
function remembering(validate: Validator): Validator {
  return (value, run, seen) => {
    const verdicts = run.verdictsOf(validate);
    const known = verdicts.get(value);
    if (known !== undefined && (known.fits || !run.isReporting || known.reportedAt === run.place)) {
      addSeen(seen, known.seen);
      return known.fits;
    }
    // A reference that leads back to itself on the same value accepts it.
    verdicts.set(value, { fits: true });
    const own = run.track();
    const fits = validate(value, run, own);
    verdicts.set(value, { fits, seen: own, reportedAt: fits || !run.isReporting ? undefined : run.place });
    addSeen(seen, own);
    return fits;
  };
}

/** `unevaluated…` keywords count only the validations of their own schema, not those of enclosing schemas. */
function withOwnTrack(validate: Validator): Validator {
  return (value, run, seen) => {
    const own = run.track();
    const fits = validate(value, run, own);
    addSeen(seen, own);
    return fits;
  };
}

/** Validates a value against a schema or one of its keywords; reports errors to the run, if it collects them. */
interface Validator {
  (value: unknown, run: Run, seen?: Seen): boolean;
  /** The test as a JavaScript expression, if that is faster. */
  readonly code?: TestCode;
}

/** Writes an expression about a value; `constant` returns the name of a value that the expression refers to. */
type TestCode = (value: string, constant: (referred: unknown) => string) => string;

/** A value of a schema in generated code. It is always a literal, so that schemas cannot inject code. */
function literal(value: unknown): string {
  return JSON.stringify(value) ?? 'undefined';
}

/** Whether a value matches. */
export type Test = (value: unknown) => boolean;

const ALWAYS_VALID: Validator = () => true;

/** The result of one validator alone, without evaluated properties. */
function testOf(validate: Validator): Test {
  return (value) => validate(value, QUIET);
}

/** A keyword in its schema, from which a validator is created. */
interface Part {
  readonly keyword: string;
  readonly given: unknown;
  readonly schema: JsonSchema;
  readonly root: JsonSchema;
  /** Whether any part of the schema uses evaluated properties or items. */
  readonly isTracking: boolean;
  /** Whether items that `contains` matched count as evaluated. */
  readonly marksContained: boolean;
  /** Whether the draft has a keyword. */
  knows(keyword: string): boolean;
  /** The validator of a schema within this schema. */
  validatorOf(schema: unknown): Validator;
  /** The validator of the keyword's reference target, created on first use, because it may contain itself. */
  referred(): Validator;
}

/** Creates the validator of a keyword; `undefined` if the keyword accepts every value. */
type ValidatorFactory = (part: Part) => Validator | undefined;

/** The message of an error, or the key that it is about. */
type Complaint = Pick<SchemaError, 'message' | 'key'>;

/** Shared by the validators of one value. */
class Run {
  readonly #isTracking: boolean;
  readonly #path: (string | number)[] = [];
  /** The location for each segment of the path, as far as computed. */
  readonly #places: string[] = [];
  /** Absent if only the result is needed; validation then stops at the first error. */
  #errors: SchemaError[] | undefined;
  #verdicts: Map<Validator, Map<unknown, Verdict>> | undefined;
  #isInClosest = false;

  constructor({ isReporting, isTracking }: { readonly isReporting: boolean; readonly isTracking: boolean }) {
    this.#errors = isReporting ? [] : undefined;
    this.#isTracking = isTracking;
  }

  get isReporting(): boolean {
    return this.#errors !== undefined;
  }

  get errors(): readonly SchemaError[] {
    return this.#errors ?? [];
  }

  /** The location of the current value, as a JSON pointer. */
  get place(): string {
    const places = this.#places;
    for (const step of this.#path.slice(places.length))
      places.push(`${places.at(-1) ?? ''}/${typeof step === 'number' ? step : pointerStep(step)}`);
    return places.at(-1) ?? '';
  }

  /** A set of evaluated properties and items, if any schema needs it. */
  track(): Seen | undefined {
    return this.#isTracking ? new Set() : undefined;
  }

  /** Validates a child of the value. */
  below(key: string | number, value: unknown, validate: Validator): boolean {
    // Without error reports no path is needed.
    if (this.#errors === undefined) return validate(value, this, this.track());
    this.#path.push(key);
    const fits = validate(value, this, this.track());
    this.#path.pop();
    if (this.#places.length > this.#path.length) this.#places.pop();
    return fits;
  }

  /** Validates without reporting errors. */
  quietly(value: unknown, validate: Validator, seen = this.track()): boolean {
    const errors = this.#errors;
    this.#errors = undefined;
    const fits = validate(value, this, seen);
    this.#errors = errors;
    return fits;
  }

  /** Reports the errors of a branch of a union. Unions in it report no branch, so that no value is validated often. */
  reportClosest(value: unknown, validate: Validator | undefined): void {
    if (validate === undefined || this.#isInClosest) return;
    this.#isInClosest = true;
    validate(value, this, this.track());
    this.#isInClosest = false;
  }

  /** Reports that a value does not match. */
  refuse(
    data: unknown,
    { keyword, given, schema }: Pick<Part, 'keyword' | 'given' | 'schema'>,
    complaint: Complaint,
  ): false {
    const errors = this.#errors;
    if (errors === undefined) return false;
    const last = errors[MAX_ERRORS - 1];
    errors.push(last ?? { keyword, instancePath: this.place, given, schema, data, ...complaint });
    return false;
  }

  /** Earlier results of a validator, by value. */
  verdictsOf(validate: Validator): Map<unknown, Verdict> {
    this.#verdicts ??= new Map();
    let verdicts = this.#verdicts.get(validate);
    if (verdicts === undefined) {
      verdicts = new Map();
      this.#verdicts.set(validate, verdicts);
    }
    return verdicts;
  }
}

/** The result of validating a value. */
interface Verdict {
  readonly fits: boolean;
  readonly seen?: Seen | undefined;
  /** The location of the value when all its errors were reported. */
  readonly reportedAt?: string | undefined;
}

/** A validator from a condition. */
function refusesUnless<Value>(part: Part, complaint: Complaint, { test, code }: Condition<Value>): Validator {
  const validate: Validator = (value, run) => test(value as Value) || run.refuse(value, part, complaint);
  return Object.assign(validate, { code });
}

interface Condition<Value> {
  readonly test: (value: Value) => boolean;
  readonly code?: TestCode;
}

/** A limit on the number of characters, items or properties. */
function countBound<Value>(
  bound: 'at least' | 'at most',
  noun: string,
  within: (limit: number) => Condition<Value>,
): ValidatorFactory {
  return (part) => {
    const limit = part.given as number;
    return refusesUnless(part, { message: `must have ${bound} ${counted(limit, noun)}` }, within(limit));
  };
}

/** A validator that runs several validators in order. */
function allOfValidators(validates: readonly Validator[]): Validator {
  const [only, second] = validates;
  if (only === undefined) return ALWAYS_VALID;
  if (second === undefined) return only;
  return (value, run, seen) => {
    let fits = true;
    for (const validate of validates) {
      if (validate(value, run, seen)) continue;
      if (!run.isReporting) return false;
      fits = false;
    }
    return fits;
  };
}

/** For validations that need only the result. */
const QUIET = new Run({ isReporting: false, isTracking: false });

/** Means all properties of an object, or all items of an array. */
const ALL = Symbol('all');

/** The evaluated properties or items of a value, for `unevaluatedProperties` and `unevaluatedItems`. */
type Seen = Set<string | number | typeof ALL>;

/** Adds the properties or items that another schema evaluated. */
function addSeen(seen: Seen | undefined, others: Seen | undefined): void {
  if (seen !== undefined && others !== undefined) for (const member of others) seen.add(member);
}

/** An error of a value, in the terms of JSON Schema. */
export interface SchemaError {
  readonly keyword: string;
  /** The location of the value: a JSON pointer. */
  readonly instancePath: string;
  /** The missing, unknown or invalid key of the value. */
  readonly key?: string;
  readonly message?: string;
  /** The value of the keyword. */
  readonly given: unknown;
  /** The schema of the keyword. */
  readonly schema: JsonSchema;
  readonly data: unknown;
}

/** The most errors that are reported; more are only counted. */
export const MAX_ERRORS = 200;

/** Keywords for arrays. */
const ARRAY_KEYWORDS: Readonly<Record<string, ValidatorFactory>> = {
  maxItems: countBound('at most', 'item', (most) => ({
    test: (items: Items) => items.length <= most,
    code: (items) => `${items}.length <= ${literal(most)}`,
  })),
  minItems: countBound('at least', 'item', (least) => ({
    test: (items: Items) => items.length >= least,
    code: (items) => `${items}.length >= ${literal(least)}`,
  })),
  additionalItems: (part) => {
    const { items } = part.schema;
    return Array.isArray(items) ? otherItems(part, (index) => index < items.length) : undefined;
  },
  prefixItems: tuple,
  items: (part) => {
    if (Array.isArray(part.given)) return tuple(part);
    const { prefixItems } = part.schema;
    // Earlier drafts do not have this keyword.
    const isTuple = Array.isArray(prefixItems) && part.knows('prefixItems');
    return isTuple ? otherItems(part, (index) => index < prefixItems.length) : eachItem(part);
  },
  contains,
  maxContains: () => undefined,
  minContains: () => undefined,
  unevaluatedItems: (part) => (part.isTracking ? otherItems(part, isSeen) : undefined),
  uniqueItems: (part) =>
    part.given === true
      ? (value, run) => {
          const message = duplicateItems(value as Items);
          return message === undefined || run.refuse(value, part, { message });
        }
      : undefined,
};

type Items = readonly unknown[];

function tuple(part: Part): Validator {
  const validates = (part.given as readonly unknown[]).map((schema) => part.validatorOf(schema));
  return (value, run, seen) => {
    const items = value as Items;
    let fits = true;
    for (const [index, validate] of validates.entries()) {
      if (index >= items.length) break;
      seen?.add(index);
      if (run.below(index, items[index], validate)) continue;
      if (!run.isReporting) return false;
      fits = false;
    }
    return fits;
  };
}

function eachItem(part: Part): Validator {
  const validate = part.validatorOf(part.given);
  return (value, run, seen) => {
    const items = value as Items;
    let fits = true;
    for (let index = 0; index < items.length; index += 1) {
      if (run.below(index, items[index], validate)) continue;
      if (!run.isReporting) return false;
      fits = false;
    }
    seen?.add(ALL);
    return fits;
  };
}

/** Validates the items that no other keyword covers: those after a tuple, or those that nothing evaluated. */
function otherItems(part: Part, isCovered: (index: number, seen: Seen | undefined) => boolean): Validator {
  const validate = part.validatorOf(part.given);
  return (value, run, seen) => {
    const items = value as Items;
    let fits = true;
    for (let index = 0; index < items.length; index += 1) {
      if (isCovered(index, seen)) continue;
      if (part.given === false) {
        fits = run.refuse(value, part, { message: `must have at most ${counted(index, 'item')}` });
        break;
      }
      fits = run.below(index, items[index], validate) && fits;
      if (!fits && !run.isReporting) return false;
    }
    seen?.add(ALL);
    return fits;
  };
}

function contains(part: Part): Validator | undefined {
  const least = part.knows('minContains') ? Number(part.schema.minContains ?? 1) : 1;
  const most = part.knows('maxContains') ? Number(part.schema.maxContains ?? Infinity) : Infinity;
  const validate = part.validatorOf(part.given);
  const upTo = most === Infinity ? '' : ` and no more than ${most}`;
  const message = `must contain at least ${least}${upTo} valid item(s)`;
  if (least === 0 && most === Infinity && !part.isTracking) return undefined;
  return (value, run, seen) => {
    const items = value as Items;
    let count = 0;
    let index = 0;
    for (; index < items.length && count <= most; index += 1) {
      if (!run.quietly(items[index], validate)) continue;
      count += 1;
      if (part.marksContained) seen?.add(index);
    }
    if (count >= least && count <= most) return true;
    // Report why each item does not match.
    if (run.isReporting && least <= most)
      for (const [at, item] of items.slice(0, index).entries()) run.below(at, item, validate);
    return run.refuse(value, part, { message });
  };
}

/** The message for duplicate items, which names the last pair; `undefined` if all items differ. */
function duplicateItems(items: Items): string | undefined {
  const places = new Map<string, number>();
  let message: string | undefined;
  items.forEach((item, again) => {
    const key = canonicalJson(item);
    const first = places.get(key);
    if (first !== undefined)
      message = `must not have duplicate items (items ${first} and ${again} are identical)`;
    places.set(key, again);
  });
  return message;
}

/** Keywords that compare a value of any type. */
const ANY_KEYWORDS: Readonly<Record<string, ValidatorFactory>> = {
  const: (part) => refusesUnless(part, {}, oneOfTest([part.given])),
  enum: (part) => refusesUnless(part, {}, oneOfTest(part.given as readonly unknown[])),
};

/** Keywords for numbers. */
const NUMBER_KEYWORDS: Readonly<Record<string, ValidatorFactory>> = {
  maximum: bound('<=', (value, limit) => value <= limit),
  minimum: bound('>=', (value, limit) => value >= limit),
  exclusiveMaximum: bound('<', (value, limit) => value < limit),
  exclusiveMinimum: bound('>', (value, limit) => value > limit),
  multipleOf: (part) => {
    const step = part.given as number;
    return refusesUnless(
      part,
      { message: `must be a multiple of ${step}` },
      {
        // Like compiled schemas: quotients that are written with an exponent are never whole.
        test: (value: number) => Number.isInteger(value / step) && Math.abs(value / step) < 1e21,
      },
    );
  },
  format: (part) => format(part, 'number'),
};

/** Keywords for strings. */
const TEXT_KEYWORDS: Readonly<Record<string, ValidatorFactory>> = {
  maxLength: countBound('at most', 'character', (most) => ({
    test: (text: string) => text.length <= most || charactersOf(text) <= most,
    code: (text, constant) =>
      `(${text}.length <= ${literal(most)} || ${constant(charactersOf)}(${text}) <= ${literal(most)})`,
  })),
  minLength: countBound('at least', 'character', (least) => ({
    test: (text: string) => text.length >= least && charactersOf(text) >= least,
    code: (text, constant) =>
      least === 1
        ? `${text} !== ''`
        : `${text}.length >= ${literal(least)} && ${constant(charactersOf)}(${text}) >= ${literal(least)}`,
  })),
  pattern: (part) => {
    const expression = patternOf(part.given as string);
    return refusesUnless(
      part,
      { message: `must match pattern "${part.given}"` },
      {
        test: (text: string) => expression.test(text),
        code: (text, constant) => `${constant(expression)}.test(${text})`,
      },
    );
  },
  format: (part) => format(part, 'string'),
};

function bound(comparison: string, isWithin: (value: number, limit: number) => boolean): ValidatorFactory {
  return (part) => {
    const limit = part.given as number;
    return refusesUnless(
      part,
      { message: `must be ${comparison} ${limit}` },
      {
        test: (value: number) => isWithin(value, limit),
        code: (value) => `${value} ${comparison} ${literal(limit)}`,
      },
    );
  };
}

function format(part: Part, type: 'number' | 'string') {
  const name = String(part.given);
  const test = formatTest(name, type);
  if (test === undefined) return undefined;
  return refusesUnless(part, { message: `must match format "${name}"` }, { test });
}

/** Counts characters; some of them take two code units. */
function charactersOf(text: string): number {
  let characters = 0;
  for (const _ of text) characters += 1;
  return characters;
}

/** Shorter lists are compared value by value. */
const MAX_COMPARED = 12;

function oneOfTest(values: readonly unknown[]): { readonly test: Test; readonly code?: TestCode } {
  const plain = new Set(values.filter((value) => !isObject(value)));
  const nested = new Set(values.filter(isObject).map(canonicalJson));
  const test: Test = (value) =>
    isObject(value) ? nested.size > 0 && nested.has(canonicalJson(value)) : plain.has(value);
  if (nested.size > 0 || plain.size > MAX_COMPARED || plain.size === 0) return { test };
  const code: TestCode = (value) => Array.from(plain, (each) => `${value} === ${literal(each)}`).join(' || ');
  return { test, code };
}

/** Keywords that validate the value itself with other schemas. */
const COMBINING_KEYWORDS: Readonly<Record<string, ValidatorFactory>> = {
  not: (part) => {
    const validate = part.validatorOf(part.given);
    const complaint = { message: 'must NOT be valid' };
    return (value, run) => !run.quietly(value, validate) || run.refuse(value, part, complaint);
  },
  allOf: (part) =>
    allOfValidators((part.given as readonly unknown[]).map((schema) => part.validatorOf(schema))),
  if: condition,
  anyOf: union,
  oneOf: union,
};

function condition(part: Part): Validator {
  const holds = part.validatorOf(part.given);
  const clause = (keyword: 'then' | 'else'): Validator => {
    const given = part.schema[keyword];
    if (given === undefined) return ALWAYS_VALID;
    const validate = part.validatorOf(given);
    const complaint = { message: `must match "${keyword}" schema` };
    return (value, run, seen) => validate(value, run, seen) || run.refuse(value, part, complaint);
  };
  const [follows, otherwise] = [clause('then'), clause('else')];
  if (follows === ALWAYS_VALID && otherwise === ALWAYS_VALID && !part.isTracking) return ALWAYS_VALID;
  return (value, run, seen) => {
    const own = run.track();
    if (!run.quietly(value, holds, own)) return otherwise(value, run, seen);
    addSeen(seen, own);
    return follows(value, run, seen);
  };
}

/**
 * `anyOf` or `oneOf`. If the value determines its branch, only that branch runs and reports errors. Otherwise all
 * branches run, and only the closest one, if there is one, reports errors.
 */
function union(part: Part): Validator {
  const branches = part.given as readonly JsonSchema[];
  const validates = branches.map((branch) => part.validatorOf(branch));
  const choose = unionChooser(branches, part.root);
  const isOneOf = part.keyword === 'oneOf';
  return (value, run, seen) => {
    const chosen = choose(value);
    if (chosen.kind === 'branch') return (validates[chosen.index] ?? ALWAYS_VALID)(value, run, seen);
    const isHopeless = chosen.kind === 'tag' && chosen.isCertain;
    let fitting = 0;
    for (const validate of isHopeless ? [] : validates) {
      const own = run.track();
      if (!run.quietly(value, validate, own)) continue;
      addSeen(seen, own);
      fitting += 1;
      // Every matching branch of `anyOf` contributes its evaluated properties.
      if (isOneOf ? fitting > 1 : seen === undefined) break;
    }
    if (isOneOf ? fitting === 1 : fitting > 0) return true;
    const message = `must have ${fitting > 1 ? 'only ' : ''}one of the forms that the schema allows`;
    run.refuse(value, part, { message });
    if (run.isReporting && fitting === 0 && chosen.kind === 'unclear')
      run.reportClosest(value, validates[closestBranch(branches, part.root, value)]);
    return false;
  };
}

/** Keywords for objects. */
const OBJECT_KEYWORDS: Readonly<Record<string, ValidatorFactory>> = {
  maxProperties: countBound('at most', 'property', (most) => ({
    test: (value: Fields) => Object.keys(value).length <= most,
  })),
  minProperties: countBound('at least', 'property', (least) => ({
    test: (value: Fields) => Object.keys(value).length >= least,
  })),
  required: (part) => requiredNames(part, part.given as readonly string[]),
  propertyNames,
  additionalProperties,
  dependencies: (part) => dependents(part, namesOf(part.given)),
  properties,
  patternProperties,
  dependentRequired: (part) => dependents(part, Object.keys(part.given as Fields)),
  dependentSchemas: (part) => dependents(part, Object.keys(part.given as Fields)),
  unevaluatedProperties: (part) => (part.isTracking ? otherProperties(part, isSeen) : undefined),
};

/** Whether a property or an item was evaluated. */
function isSeen(member: string | number, seen: Seen | undefined): boolean {
  return seen !== undefined && (seen.has(ALL) || seen.has(member));
}

/** Names such as `toString` count only as own properties. */
function has(value: Fields, name: string): boolean {
  return value[name] !== undefined && Object.hasOwn(value, name);
}

function requiredNames(part: Part, names: readonly string[], message?: string): Validator {
  return (value, run) => {
    let fits = true;
    for (const key of names) {
      if (has(value as Fields, key)) continue;
      fits = run.refuse(value, part, { key, message });
      if (!run.isReporting) break;
    }
    return fits;
  };
}

function propertyNames(part: Part): Validator {
  const validate = part.validatorOf(part.given);
  return (value, run) => {
    let fits = true;
    for (const key of Object.keys(value as Fields)) {
      if (validate(key, run, run.track())) continue;
      fits = run.refuse(value, part, { key });
      if (!run.isReporting) break;
    }
    return fits;
  };
}

function namesOf(schemas: unknown): readonly string[] {
  return Object.keys((schemas ?? {}) as Fields).filter((name) => name !== '__proto__');
}

function properties(part: Part): Validator {
  const schemas = part.given as Fields;
  const validates = namesOf(schemas).map((name) => ({ name, validate: part.validatorOf(schemas[name]) }));
  return (value, run, seen) => {
    const fields = value as Fields;
    let fits = true;
    for (const { name, validate } of validates) {
      if (!has(fields, name)) continue;
      seen?.add(name);
      if (run.below(name, fields[name], validate)) continue;
      if (!run.isReporting) return false;
      fits = false;
    }
    return fits;
  };
}

function patternProperties(part: Part): Validator {
  const schemas = part.given as Fields;
  const validates = namesOf(schemas).map(
    (pattern) => [patternOf(pattern), part.validatorOf(schemas[pattern])] as const,
  );
  return (value, run, seen) => {
    const fields = value as Fields;
    let fits = true;
    for (const [pattern, validate] of validates)
      for (const name of Object.keys(fields)) {
        if (!pattern.test(name)) continue;
        seen?.add(name);
        if (run.below(name, fields[name], validate)) continue;
        if (!run.isReporting) return false;
        fits = false;
      }
    return fits;
  };
}

function additionalProperties(part: Part): Validator {
  const known = new Set(namesOf(part.schema.properties));
  const patterns = namesOf(part.schema.patternProperties).map((pattern) => patternOf(pattern));
  return otherProperties(part, (name) => known.has(name) || patterns.some((pattern) => pattern.test(name)));
}

/** Validates all properties except those that another keyword covers. */
function otherProperties(
  part: Part,
  isCovered: (name: string, seen: Seen | undefined) => boolean,
): Validator {
  const validate = part.validatorOf(part.given);
  return (value, run, seen) => {
    const fields = value as Fields;
    let fits = true;
    for (const key of Object.keys(fields)) {
      if (isCovered(key, seen)) continue;
      fits =
        (part.given === false ? run.refuse(value, part, { key }) : run.below(key, fields[key], validate)) &&
        fits;
      if (!fits && !run.isReporting) return false;
    }
    seen?.add(ALL);
    return fits;
  };
}

/** The test for properties that are not listed; `undefined` if any are accepted. */
function othersTest(
  listed: ReadonlySet<string>,
  validate: Validator,
): ((fields: Fields) => boolean) | undefined {
  if (validate === ALWAYS_VALID) return undefined;
  const test = testOf(validate);
  return (fields) => {
    for (const name of Object.keys(fields)) if (!listed.has(name) && !test(fields[name])) return false;
    return true;
  };
}

/** Each of these properties requires other properties, or another schema. */
function dependents(part: Part, properties: readonly string[]): Validator {
  return allOfValidators(
    properties.map((property): Validator => {
      const needed = (part.given as Fields)[property];
      const validate = Array.isArray(needed) ? neededNames(part, property, needed) : part.validatorOf(needed);
      return (value, run, seen) => !has(value as Fields, property) || validate(value, run, seen);
    }),
  );
}

function neededNames(part: Part, property: string, names: readonly string[]): Validator {
  const noun = names.length === 1 ? 'property' : 'properties';
  const message = `must have ${noun} ${names.join(', ')} when property ${property} is present`;
  return requiredNames(part, names, message);
}

type Makers = Readonly<Record<string, ValidatorFactory>>;

const referred: ValidatorFactory = (part) => part.referred();

/** The keywords by the type of their values, in the order in which errors are reported. */
const MAKERS: readonly (readonly [type: string | undefined, makers: Makers])[] = [
  [
    undefined,
    {
      ...{ $dynamicRef: referred, $recursiveRef: referred, $ref: referred },
      ...ANY_KEYWORDS,
      ...COMBINING_KEYWORDS,
    },
  ],
  ['number', NUMBER_KEYWORDS],
  ['string', TEXT_KEYWORDS],
  ['array', ARRAY_KEYWORDS],
  ['object', OBJECT_KEYWORDS],
];

/** A keyword with its position in that order; `format` has two. */
interface Known {
  readonly keyword: string;
  readonly type: string | undefined;
  readonly rank: number;
  readonly make: ValidatorFactory;
}

const KNOWN: ReadonlyMap<string, readonly Known[]> = Map.groupBy(
  MAKERS.flatMap(([type, makers]) => Object.entries(makers).map((maker) => [type, ...maker] as const)).map(
    ([type, keyword, make], rank) => ({ keyword, type, rank, make }),
  ),
  ({ keyword }) => keyword,
);

/** The validator of one schema: all its keywords, each only for values of its type. */
function schemaValidator(schema: JsonSchema, partOf: PartOf): Validator {
  const { types, groups } = validatorGroups(schema, partOf);
  const refuseType: Validator = (value, run) => run.refuse(value, partOf(schema, 'type'), {});
  const validates: Validator[] = [];
  for (const { type, made, isOnly } of groups) {
    const validate = allOfValidators(made.map(([, each]) => each));
    if (type === undefined) validates.push(validate);
    else if (isOnly || validate !== ALWAYS_VALID)
      validates.push(ofType(type, validate, isOnly ? refuseType : ALWAYS_VALID));
  }
  if (types.length > 0) {
    const tests = types.map(typeTest);
    validates.unshift((value, run) => tests.some((isOf) => isOf(value)) || refuseType(value, run));
  }
  return allOfValidators(validates.filter((validate) => validate !== ALWAYS_VALID));
}

type Made = readonly [keyword: string, validate: Validator];

/** The validators for values of one type, or of any. */
interface ValidatorGroup {
  readonly type: string | undefined;
  readonly made: readonly Made[];
  /** The schema allows no other type. */
  readonly isOnly: boolean;
}

/**
 * The groups of a schema, in order, and the types that must be tested besides. A type that has only keywords without
 * a validator is present but empty.
 */
function validatorGroups(
  schema: JsonSchema,
  partOf: PartOf,
): { readonly types: readonly string[]; readonly groups: readonly ValidatorGroup[] } {
  const known: Known[] = [];
  for (const keyword of Object.keys(schema))
    if (schema[keyword] !== undefined) known.push(...(KNOWN.get(keyword) ?? []));
  known.sort((one, other) => one.rank - other.rank);
  const made = new Map<string | undefined, Made[]>();
  for (const { keyword, type, make } of known) {
    const named = partOf(schema, keyword);
    if (!named.knows(keyword)) continue;
    const validate = make(named);
    const validates = cached(made, type, () => []);
    if (validate !== undefined && validate !== ALWAYS_VALID) validates.push([keyword, validate]);
  }
  const types = typesOf(schema);
  const groups = Array.from(made, ([type, validates]) => {
    return { type, made: validates, isOnly: types.length === 1 && types[0] === type };
  });
  return { types: groups.some(({ isOnly }) => isOnly) ? [] : types, groups };
}

function ofType(type: string, validate: Validator, others: Validator): Validator {
  const isOf = typeTest(type);
  return (value, run, seen) => (isOf(value) ? validate(value, run, seen) : others(value, run, seen));
}

function typesOf({ type, nullable }: JsonSchema): readonly string[] {
  const types = [type ?? []].flat() as readonly string[];
  return nullable === true && !types.includes('null') ? [...types, 'null'] : types;
}
