import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { findReference } from '../../schema/find-reference.js';
import { draftOf, isKnownIn, isSchemaNode, KEYWORDS } from '../../schema/keywords.js';
import {
  GROUPS,
  type Made,
  madeValidators,
  othersTest,
  schemaValidator,
  typesOf,
} from './schema-validator.js';
import {
  ALWAYS_VALID,
  addSeen,
  literal,
  type Part,
  Run,
  type SchemaError,
  type Test,
  testOf,
  type Validator,
} from './validator.js';
import { type WholeSchema, wholeSchema } from './whole-schema.js';

/** Creates the part for a keyword of a schema. */
type PartOf = (schema: JsonSchema, keyword: string) => Part;

/** Deeper schemas become separate functions. */
const MAX_DEPTH = 8;
/** Objects with more properties are tested in a loop, because engines do not optimize very large functions. */
const MAX_PROPERTIES = 200;
/** More keys are looked up in a set. */
const MAX_COMPARED = 16;

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
    const types = typesOf(schema);
    let isTypeTested = types.length === 0;
    let code = '';
    for (const [group, made] of madeValidators(schema, (keyword) => this.#partOf(schema, keyword))) {
      const { type } = GROUPS[group] ?? {};
      const isOnly = types.length === 1 && types[0] === type;
      isTypeTested ||= isOnly;
      const body = this.#group({ schema, made, value, depth, type });
      if (type === undefined) code += body;
      else if (isOnly) code += `if (!(${typeCode(type, value)})) return false; ${body}`;
      else if (body !== '') code += `if (${typeCode(type, value)}) { ${body} }`;
    }
    if (isTypeTested) return code;
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
      listed.length > MAX_COMPARED
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
    const message =
      'Code must not be generated here, so that JSON schemas are interpreted: with the same verdicts, in more time for each call.';
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
export function fitsSchema(
  value: unknown,
  { schema, root }: { readonly schema: JsonSchema; readonly root: JsonSchema },
): boolean {
  const scope = scopes.get(root) ?? new Scope({ ...WITHOUT_MEMORY, root, draft: draftOf(root) }, []);
  scopes.set(root, scope);
  try {
    return testOf(scope.validatorOf(schema))(value);
  } catch (error) {
    if (error instanceof RangeError) return true;
    throw error;
  }
}

const WITHOUT_MEMORY = {
  isTracking: false,
  isDynamic: false,
  isRepeating: false,
};

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
    const resource = isDynamic ? findReference('#', { root, from: schema }) : undefined;
    if (!isSchemaNode(resource) || this.#resources.includes(resource)) return this;
    const inner = this.#inner.get(resource) ?? new Scope(this.whole, [...this.#resources, resource]);
    this.#inner.set(resource, inner);
    return inner;
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
      : schemaValidator(schema, (keyword) => this.#part(schema, keyword));
    const isCounting = (schema.unevaluatedProperties ?? schema.unevaluatedItems) !== undefined;
    const tracking = this.whole.isTracking && isCounting ? withOwnTrack(validate) : validate;
    this.#validates.set(schema, tracking);
    return tracking;
  }

  generate(schema: JsonSchema): Test {
    return new TestWriter((of, keyword) => this.#part(of, keyword)).write(schema);
  }

  #part(schema: JsonSchema, keyword: string): Part {
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
  }

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
    const target = findReference(reference, { root: this.whole.root, from });
    if (keyword === '$ref' || !isSchemaNode(target)) return target;
    const anchor = keyword === '$dynamicRef' ? '$dynamicAnchor' : '$recursiveAnchor';
    const wanted = keyword === '$dynamicRef' ? reference.slice(1) : true;
    if (target[anchor] !== wanted) return target;
    // The outermost enclosing resource with the same anchor.
    for (const resource of this.#resources) {
      const other = findReference(reference, { root: this.whole.root, from: resource });
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
