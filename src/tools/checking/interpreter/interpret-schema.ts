import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { cached } from '../../../core/kernel/cached.js';
import { counted } from '../../../core/kernel/counted.js';
import { canonicalJson, type Fields, isObject, pointerStep } from '../../../core/kernel/json.js';
import { draftOf, findReference, isKnownIn, isSchemaNode, KEYWORDS } from '../../schema/keywords.js';
import { formatTest, patternOf } from '../formats.js';
import { closestBranch, isOfType, unionChooser } from '../schema-level.js';
import { type WholeSchema, wholeSchema } from './whole-schema.js';

/** Deeper schemas become separate functions. */
const MAX_DEPTH = 8;
/** Objects with more properties are tested in a loop, because engines do not optimize very large functions. */
const MAX_PROPERTIES = 200;
/** More keys are looked up in a set. */
const MAX_COMPARED_KEYS = 16;

/** The test of a JSON type as an expression. */
function typeCode(type: string, value: string): string {
  switch (type) {
    case 'number':
      return `typeof ${value} === 'number' && Number.isFinite(${value})`;
    case 'integer':
      return `Number.isInteger(${value})`;
    case 'array':
      return `Array.isArray(${value})`;
    case 'object':
      return `typeof ${value} === 'object' && ${value} !== null && !Array.isArray(${value})`;
    case 'null':
      return `${value} === null`;
    default:
      return `typeof ${value} === ${literal(type)}`;
  }
}

/**
 * Writes the test of a schema as one generated function. It contains code for types, properties, items and the
 * keywords with `code`; other keywords call a validator.
 */
class TestWriter {
  readonly #scope: Scope;
  /** The constants of the code, as parameters of the outer function. */
  readonly #constants: unknown[] = [];
  #names = 0;

  constructor(scope: Scope) {
    this.#scope = scope;
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
    if (depth > MAX_DEPTH) return this.#refuseUnless(this.#scope.validatorOf(schema), value);
    const { types, groups } = validatorGroups(schema, this.#scope);
    let code = '';
    for (const { type, made, isOnly } of groups) {
      const isWrittenOut = type === 'object' && isPlain(schema);
      let body = isWrittenOut ? this.#properties(schema, value, depth) : '';
      for (const [keyword, validate] of made) {
        if (isWrittenOut && WRITTEN_OUT.has(keyword)) continue;
        const { items, prefixItems } = schema;
        if (keyword === 'items' && isSchemaNode(items) && prefixItems === undefined) {
          const [index, item] = [this.#name(), this.#name()];
          body += `for (let ${index} = 0; ${index} < ${value}.length; ${index} += 1) {
            const ${item} = ${value}[${index}]; ${this.#statements(items, item, depth + 1)} }`;
        } else body += this.#refuseUnless(validate, value);
      }
      if (type === undefined) code += body;
      else if (isOnly) code += `if (!(${typeCode(type, value)})) return false; ${body}`;
      else if (body !== '') code += `if (${typeCode(type, value)}) { ${body} }`;
    }
    if (types.length === 0) return code;
    return `if (!(${types.map((type) => typeCode(type, value)).join(' || ')})) return false; ${code}`;
  }

  #properties(schema: JsonSchema, value: string, depth: number): string {
    const { properties = {}, required = [], additionalProperties } = schema;
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
    const validate = this.#scope.validatorOf(additionalProperties);
    if (validate === ALWAYS_VALID) return code;
    // The interpreter tests keys that are not listed, if there are any.
    const known = new Set(listed);
    const fits = testOf(validate);
    const test = (fields: Fields): boolean => {
      for (const name of Object.keys(fields)) if (!known.has(name) && !fits(fields[name])) return false;
      return true;
    };
    const key = this.#name();
    const isOther =
      listed.length > MAX_COMPARED_KEYS
        ? `!${this.#constant(known)}.has(${key})`
        : listed.map((name) => `${key} !== ${literal(name)}`).join(' && ') || 'true';
    return `${code}for (const ${key} in ${value}) if (${isOther}) {
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
  readonly test: Test;
  /** All errors of a value, including formats; `undefined` if it matches. */
  readonly check: (value: unknown) => readonly SchemaError[] | undefined;
  /** Generates the same test as code; absent if results depend on earlier validations. */
  readonly generate?: () => Test;
}

/**
 * Interprets a valid schema of draft 7, 2019-09 or 2020-12, with one validator for each part. Creating validators
 * takes a small fraction of the time of generating code, and also works if code generation is forbidden. Generated
 * code for frequently used schemas gives the same results.
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

/** Code is generated for functions that run more often; for others it would take longer than it saves. */
const MAX_INTERPRETED = 50;

/** Runs a function, and later the code that is generated for it, which gives the same results in less time. */
export function generatedLater<Input extends unknown[], Output>(
  run: (...input: Input) => Output,
  generate: () => (...input: Input) => Output,
): (...input: Input) => Output {
  let calls = 0;
  let current = (...input: Input): Output => {
    calls += 1;
    if (calls > MAX_INTERPRETED) current = mayGenerateCode() ? generate() : run;
    return run(...input);
  };
  return (...input) => current(...input);
}

/** Whether a value matches a valid schema, for frequent use; cheaper than the errors. */
export function schemaTest(schema: JsonSchema): Test {
  const { test, generate } = interpretSchema(schema);
  return generate === undefined ? test : generatedLater(test, generate);
}

let isAllowed: boolean | undefined;

/**
 * Whether this process may generate code: not under `--disallow-code-generation-from-strings`, nor in workers and
 * pages whose policy forbids it. The restriction is reported once.
 */
function mayGenerateCode(): boolean {
  if (isAllowed !== undefined) return isAllowed;
  try {
    isAllowed = new Function('return true')() === true;
  } catch {
    const message = 'Code generation is forbidden here, so schemas are interpreted, which is slower.';
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
  const scope = cached(scopes, root, () => {
    const whole = { root, draft: draftOf(root), isTracking: false, isDynamic: false, isRepeating: false };
    return new Scope(whole, []);
  });
  try {
    return testOf(scope.validatorOf(schema))(value);
  } catch (error) {
    if (error instanceof RangeError) return true;
    throw error;
  }
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
    const { isGenerating, isTracking } = this.whole;
    let test: Test | undefined;
    let validate: Validator = isGenerating
      ? // Code is generated for the first value, because schemas may contain themselves.
        (value) => {
          test ??= this.generate(schema);
          return test(value);
        }
      : schemaValidator(schema, this);
    if (isTracking && (schema.unevaluatedProperties ?? schema.unevaluatedItems) !== undefined) {
      // These keywords count only the validations of their own schema, not those of enclosing schemas.
      const untracked = validate;
      validate = (value, run, seen) => {
        const own = run.track();
        const fits = untracked(value, run, own);
        addSeen(seen, own);
        return fits;
      };
    }
    this.#validates.set(schema, validate);
    return validate;
  }

  generate(schema: JsonSchema): Test {
    return new TestWriter(this).write(schema);
  }

  /** Whether the draft has a keyword. */
  knows(keyword: string): boolean {
    return isKnownIn(this.whole.draft, KEYWORDS.get(keyword) ?? {});
  }

  /** The target of a reference. */
  target(from: JsonSchema, keyword: string): unknown {
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

/** The validator of a reference's target, created on first use, because it may contain the reference. */
function referred({ scope, schema, keyword }: Part): Validator {
  let validate: Validator | undefined;
  return (value, run, seen) => {
    if (validate === undefined) {
      const target = scope.validatorOf(scope.target(schema, keyword));
      validate = scope.whole.isRepeating ? remembering(target) : target;
    }
    return validate(value, run, seen);
  };
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
type Test = (value: unknown) => boolean;

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
  readonly scope: Scope;
}

/** Creates the validator of a keyword; `undefined` if the keyword accepts every value. */
type ValidatorFactory = (part: Part) => Validator | undefined;

/** The message of an error, or the key that it is about. */
type Complaint = Pick<SchemaError, 'message' | 'key'>;

/** Shared by the validators of one value. */
class Run {
  readonly #isTracking: boolean;
  readonly #path: (string | number)[] = [];
  /** Absent if only the result is needed; validation then stops at the first error. */
  #errors: SchemaError[] | undefined;
  #verdicts: Map<Validator, Map<unknown, Verdict>> | undefined;
  #isInClosest = false;
  #isOfKey = false;

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
    return this.#path.map((step) => `/${pointerStep(String(step))}`).join('');
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
    return fits;
  }

  /** Validates a key of the value; its errors are reported at its property. */
  belowKey(key: string, validate: Validator): boolean {
    this.#isOfKey = true;
    const fits = this.below(key, key, validate);
    this.#isOfKey = false;
    return fits;
  }

  /** Whether all items pass; without error reports, the first failure decides. */
  every<Item>(items: Iterable<Item>, passes: (item: Item) => boolean): boolean {
    let fits = true;
    for (const item of items) {
      if (passes(item)) continue;
      if (!this.isReporting) return false;
      fits = false;
    }
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
    errors.push(
      last ?? {
        keyword,
        instancePath: this.place,
        isOfKey: this.#isOfKey,
        given,
        schema,
        data,
        ...complaint,
      },
    );
    return false;
  }

  /** Earlier results of a validator, by value. */
  verdictsOf(validate: Validator): Map<unknown, Verdict> {
    this.#verdicts ??= new Map();
    return cached(this.#verdicts, validate, () => new Map());
  }
}

/** The result of validating a value. */
interface Verdict {
  readonly fits: boolean;
  readonly seen?: Seen | undefined;
  /** The location of the value when all its errors were reported. */
  readonly reportedAt?: string | undefined;
}

/** A validator from a test of values of the keyword's type. */
function refusesUnless<Value>(
  part: Part,
  message: string | undefined,
  { test, code }: { readonly test: (value: Value) => boolean; readonly code?: TestCode | undefined },
): Validator {
  const validate: Validator = (value, run) => test(value as Value) || run.refuse(value, part, { message });
  return Object.assign(validate, { code });
}

/** A limit on a number, or on the number of characters, items or properties. */
function limit(
  comparison: '<' | '<=' | '>=' | '>',
  noun?: 'character' | 'item' | 'property',
): ValidatorFactory {
  return (part) => {
    const bound = part.given as number;
    const message =
      noun === undefined
        ? `must be ${comparison} ${bound}`
        : `must have ${comparison === '<=' ? 'at most' : 'at least'} ${counted(bound, noun)}`;
    const isWithin = (size: number): boolean => {
      if (comparison === '<=') return size <= bound;
      if (comparison === '>=') return size >= bound;
      return comparison === '<' ? size < bound : size > bound;
    };
    const test: Test = (value) => {
      if (typeof value === 'string') {
        // A text has at most as many characters as code units, and counting them takes time.
        if (comparison === '<=' && value.length <= bound) return true;
        if (comparison === '>=' && value.length < bound) return false;
      }
      return isWithin(sizeOf(value));
    };
    const code: TestCode = (value, constant) => {
      const within = ` ${comparison} ${literal(bound)}`;
      switch (noun) {
        case undefined:
          return value + within;
        case 'item':
          return `${value}.length${within}`;
        case 'property':
          return `${constant(sizeOf)}(${value})${within}`;
        case 'character': {
          if (comparison === '>=' && bound === 1) return `${value} !== ''`;
          const joint = comparison === '<=' ? '||' : '&&';
          return `(${value}.length${within} ${joint} ${constant(sizeOf)}(${value})${within})`;
        }
      }
    };
    return refusesUnless(part, message, { test, code });
  };
}

/** The size that limits apply to: a number itself, or its characters, items or properties. */
function sizeOf(value: unknown): number {
  if (typeof value === 'number') return value;
  if (Array.isArray(value)) return value.length;
  if (typeof value !== 'string') return Object.keys(value as object).length;
  let characters = 0;
  for (const _ of value) characters += 1;
  return characters;
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
  /** The value is a key, and the location is that of its property. */
  readonly isOfKey: boolean;
  /** The missing, unknown or invalid key of the value. */
  readonly key?: string;
  readonly message?: string;
  /** The value of the keyword. */
  readonly given: unknown;
  /** The schema of the keyword. */
  readonly schema: JsonSchema;
  readonly data: unknown;
}

/** The most errors that are reported; for more, the last is repeated. */
const MAX_ERRORS = 200;

type Items = readonly unknown[];

/** Validates all items with one schema, or the items of a tuple each with its own. */
function listedItems({ given, scope }: Part): Validator {
  const places = Array.isArray(given) ? given.map((schema) => scope.validatorOf(schema)) : undefined;
  const every = scope.validatorOf(places === undefined ? given : undefined);
  return (value, run, seen) => {
    const items = value as Items;
    let fits = true;
    for (let index = 0; index < items.length && index < (places?.length ?? Infinity); index += 1) {
      seen?.add(places === undefined ? ALL : index);
      if (run.below(index, items[index], places?.[index] ?? every)) continue;
      if (!run.isReporting) return false;
      fits = false;
    }
    return fits;
  };
}

/** Validates the items that no other keyword covers: those after a tuple, or those that nothing evaluated. */
function otherItems(part: Part, isCovered: (index: number, seen: Seen | undefined) => boolean): Validator {
  const validate = part.scope.validatorOf(part.given);
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

/** The message for duplicate items names the last pair. */
function uniqueItems(part: Part): Validator {
  return (value, run) => {
    const places = new Map<string, number>();
    let message: string | undefined;
    for (const [again, item] of (value as Items).entries()) {
      const key = canonicalJson(item);
      const first = places.get(key);
      if (first !== undefined)
        message = `must not have duplicate items (items ${first} and ${again} are identical)`;
      places.set(key, again);
    }
    return message === undefined || run.refuse(value, part, { message });
  };
}

function contains(part: Part): Validator | undefined {
  const least = part.scope.knows('minContains') ? Number(part.schema.minContains ?? 1) : 1;
  const most = part.scope.knows('maxContains') ? Number(part.schema.maxContains ?? Infinity) : Infinity;
  const validate = part.scope.validatorOf(part.given);
  const upTo = most === Infinity ? '' : ` and no more than ${most}`;
  const message = `must contain at least ${least}${upTo} valid item(s)`;
  if (least === 0 && most === Infinity && !part.scope.whole.isTracking) return undefined;
  return (value, run, seen) => {
    const items = value as Items;
    let count = 0;
    let index = 0;
    for (; index < items.length && count <= most; index += 1) {
      if (!run.quietly(items[index], validate)) continue;
      count += 1;
      if (part.scope.whole.draft === '2020-12') seen?.add(index);
    }
    if (count >= least && count <= most) return true;
    // Report why each item does not match.
    if (run.isReporting && least <= most)
      for (const [at, item] of items.slice(0, index).entries()) run.below(at, item, validate);
    return run.refuse(value, part, { message });
  };
}

function format(part: Part, type: 'number' | 'string') {
  const name = String(part.given);
  const test = formatTest(name, type);
  if (test === undefined) return undefined;
  return refusesUnless(part, `must match format "${name}"`, { test });
}

/** Shorter lists are compared value by value. */
const MAX_COMPARED = 12;

function oneOf(part: Part, values: readonly unknown[]): Validator {
  const plain = new Set(values.filter((value) => !isObject(value)));
  const nested = new Set(values.filter(isObject).map(canonicalJson));
  const test: Test = (value) =>
    isObject(value) ? nested.size > 0 && nested.has(canonicalJson(value)) : plain.has(value);
  const isShort = nested.size === 0 && plain.size > 0 && plain.size <= MAX_COMPARED;
  const code: TestCode = (value) => Array.from(plain, (each) => `${value} === ${literal(each)}`).join(' || ');
  return refusesUnless(part, undefined, { test, code: isShort ? code : undefined });
}

function condition(part: Part): Validator {
  const holds = part.scope.validatorOf(part.given);
  const clause = (keyword: 'then' | 'else'): Validator => {
    const given = part.schema[keyword];
    if (given === undefined) return ALWAYS_VALID;
    const validate = part.scope.validatorOf(given);
    const complaint = { message: `must match "${keyword}" schema` };
    return (value, run, seen) => validate(value, run, seen) || run.refuse(value, part, complaint);
  };
  const [follows, otherwise] = [clause('then'), clause('else')];
  if (follows === ALWAYS_VALID && otherwise === ALWAYS_VALID && !part.scope.whole.isTracking)
    return ALWAYS_VALID;
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
  const validates = branches.map((branch) => part.scope.validatorOf(branch));
  const choose = unionChooser(branches, part.scope.whole.root);
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
      run.reportClosest(value, validates[closestBranch(branches, part.scope.whole.root, value)]);
    return false;
  };
}

/** Whether a property or an item was evaluated. */
function isSeen(member: string | number, seen: Seen | undefined): boolean {
  return seen !== undefined && (seen.has(ALL) || seen.has(member));
}

/** Names such as `toString` count only as own properties. */
function has(value: Fields, name: string): boolean {
  return value[name] !== undefined && Object.hasOwn(value, name);
}

function requiredNames(part: Part, names: readonly string[], message?: string): Validator {
  return (value, run) =>
    run.every(names, (key) => has(value as Fields, key) || run.refuse(value, part, { key, message }));
}

function propertyNames(part: Part): Validator {
  const validate = part.scope.validatorOf(part.given);
  return (value, run) =>
    run.every(Object.keys(value as Fields), (key) => {
      const before = run.errors.length;
      if (run.belowKey(key, validate)) return true;
      return run.errors.length === before ? run.refuse(value, part, { key }) : false;
    });
}

function namesOf(schemas: unknown): readonly string[] {
  return Object.keys((schemas ?? {}) as Fields).filter((name) => name !== '__proto__');
}

function properties(part: Part): Validator {
  const schemas = part.given as Fields;
  const validates = namesOf(schemas).map((name) => [name, part.scope.validatorOf(schemas[name])] as const);
  return (value, run, seen) => {
    const fields = value as Fields;
    return run.every(validates, ([name, validate]) => {
      if (!has(fields, name)) return true;
      seen?.add(name);
      return run.below(name, fields[name], validate);
    });
  };
}

function patternProperties(part: Part): Validator {
  const schemas = part.given as Fields;
  const validates = namesOf(schemas).map(
    (pattern) => [patternOf(pattern), part.scope.validatorOf(schemas[pattern])] as const,
  );
  return (value, run, seen) => {
    const fields = value as Fields;
    return run.every(validates, ([pattern, validate]) =>
      run.every(Object.keys(fields), (name) => {
        if (!pattern.test(name)) return true;
        seen?.add(name);
        return run.below(name, fields[name], validate);
      }),
    );
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
  const validate = part.scope.validatorOf(part.given);
  return (value, run, seen) => {
    const fields = value as Fields;
    const fits = run.every(Object.keys(fields), (key) => {
      if (isCovered(key, seen)) return true;
      return part.given === false ? run.refuse(value, part, { key }) : run.below(key, fields[key], validate);
    });
    seen?.add(ALL);
    return fits;
  };
}

/** Each of these properties requires other properties, or another schema. */
function dependents(part: Part, properties: readonly string[]): Validator {
  const given = part.given as Fields;
  const validates = properties.map((property): Validator => {
    const needed = given[property];
    let validate: Validator;
    if (Array.isArray(needed)) {
      const noun = needed.length === 1 ? 'property' : 'properties';
      const message = `must have ${noun} ${needed.join(', ')} when property ${property} is present`;
      validate = requiredNames(part, needed, message);
    } else validate = part.scope.validatorOf(needed);
    return (value, run, seen) => !has(value as Fields, property) || validate(value, run, seen);
  });
  return allOfValidators(validates);
}

/** The keywords by the type of their values, in the order in which errors are reported. */
const MAKERS: readonly (readonly [
  type: string | undefined,
  makers: Readonly<Record<string, ValidatorFactory>>,
])[] = [
  [
    undefined,
    {
      ...{ $dynamicRef: referred, $recursiveRef: referred, $ref: referred },
      const: (part) => oneOf(part, [part.given]),
      enum: (part) => oneOf(part, part.given as readonly unknown[]),
      not: (part) => {
        const validate = part.scope.validatorOf(part.given);
        const complaint = { message: 'must NOT be valid' };
        return (value, run) => !run.quietly(value, validate) || run.refuse(value, part, complaint);
      },
      allOf: ({ given, scope }) =>
        allOfValidators((given as readonly unknown[]).map((schema) => scope.validatorOf(schema))),
      if: condition,
      anyOf: union,
      oneOf: union,
    },
  ],
  [
    'number',
    {
      maximum: limit('<='),
      minimum: limit('>='),
      exclusiveMaximum: limit('<'),
      exclusiveMinimum: limit('>'),
      multipleOf: (part) => {
        const step = part.given as number;
        // Like compiled schemas: quotients that are written with an exponent are never whole.
        const test = (value: number) => Number.isInteger(value / step) && Math.abs(value / step) < 1e21;
        return refusesUnless(part, `must be a multiple of ${step}`, { test });
      },
      format: (part) => format(part, 'number'),
    },
  ],
  [
    'string',
    {
      maxLength: limit('<=', 'character'),
      minLength: limit('>=', 'character'),
      pattern: (part) => {
        const expression = patternOf(part.given as string);
        return refusesUnless(part, `must match pattern "${part.given}"`, {
          test: (text: string) => expression.test(text),
          code: (text, constant) => `${constant(expression)}.test(${text})`,
        });
      },
      format: (part) => format(part, 'string'),
    },
  ],
  [
    'array',
    {
      maxItems: limit('<=', 'item'),
      minItems: limit('>=', 'item'),
      additionalItems: (part) => {
        const { items } = part.schema;
        return Array.isArray(items) ? otherItems(part, (index) => index < items.length) : undefined;
      },
      prefixItems: listedItems,
      items: (part) => {
        const { prefixItems } = part.schema;
        // Earlier drafts do not have this keyword.
        const isAfterTuple =
          !Array.isArray(part.given) && Array.isArray(prefixItems) && part.scope.knows('prefixItems');
        return isAfterTuple ? otherItems(part, (index) => index < prefixItems.length) : listedItems(part);
      },
      contains,
      maxContains: () => undefined,
      minContains: () => undefined,
      unevaluatedItems: (part) => (part.scope.whole.isTracking ? otherItems(part, isSeen) : undefined),
      uniqueItems: (part) => (part.given === true ? uniqueItems(part) : undefined),
    },
  ],
  [
    'object',
    {
      maxProperties: limit('<=', 'property'),
      minProperties: limit('>=', 'property'),
      required: (part) => requiredNames(part, part.given as readonly string[]),
      propertyNames,
      additionalProperties,
      dependencies: (part) => dependents(part, namesOf(part.given)),
      properties,
      patternProperties,
      dependentRequired: (part) => dependents(part, Object.keys(part.given as Fields)),
      dependentSchemas: (part) => dependents(part, Object.keys(part.given as Fields)),
      unevaluatedProperties: (part) =>
        part.scope.whole.isTracking ? otherProperties(part, isSeen) : undefined,
    },
  ],
];

/** The validator of one schema: all its keywords, each only for values of its type. */
function schemaValidator(schema: JsonSchema, scope: Scope): Validator {
  const { types, groups } = validatorGroups(schema, scope);
  const typePart = { keyword: 'type', given: schema.type, schema };
  const refuseType: Validator = (value, run) => run.refuse(value, typePart, {});
  const validates: Validator[] = [];
  if (types.length > 0)
    validates.push((value, run) => types.some((type) => isOfType(value, type)) || refuseType(value, run));
  for (const { type, made, isOnly } of groups) {
    const validate = allOfValidators(made.map(([, each]) => each));
    if (validate === ALWAYS_VALID && !isOnly) continue;
    if (type === undefined) validates.push(validate);
    else {
      const others = isOnly ? refuseType : ALWAYS_VALID;
      validates.push((value, run, seen) => (isOfType(value, type) ? validate : others)(value, run, seen));
    }
  }
  return allOfValidators(validates);
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
  scope: Scope,
): { readonly types: readonly string[]; readonly groups: readonly ValidatorGroup[] } {
  const groups: Omit<ValidatorGroup, 'isOnly'>[] = [];
  for (const [type, makers] of MAKERS) {
    let made: Made[] | undefined;
    for (const keyword in makers) {
      if (schema[keyword] === undefined || !scope.knows(keyword)) continue;
      made ??= [];
      const validate = makers[keyword]?.({ keyword, given: schema[keyword], schema, scope });
      if (validate !== undefined && validate !== ALWAYS_VALID) made.push([keyword, validate]);
    }
    if (made !== undefined) groups.push({ type, made });
  }
  let types = [schema.type ?? []].flat() as readonly string[];
  if (schema.nullable === true && !types.includes('null')) types = [...types, 'null'];
  const only = types.length === 1 ? types[0] : 'several';
  const marked = groups.map((group) => ({ ...group, isOnly: group.type === only }));
  return { types: marked.some(({ isOnly }) => isOnly) ? [] : types, groups: marked };
}
