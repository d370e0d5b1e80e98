import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { pointerStep } from '../../../core/kernel/json.js';

/** Validates a value against a schema or one of its keywords; reports errors to the run, if it collects them. */
export interface Validator {
  (value: unknown, run: Run, seen?: Seen): boolean;
  /** The test as a JavaScript expression, if that is faster. */
  readonly code?: TestCode;
}

/** Writes an expression about a value; `constant` returns the name of a value that the expression refers to. */
export type TestCode = (value: string, constant: (referred: unknown) => string) => string;

/** A value of a schema in generated code. It is always a literal, so that schemas cannot inject code. */
export function literal(value: unknown): string {
  return JSON.stringify(value) ?? 'undefined';
}

/** Whether a value matches. */
export type Test = (value: unknown) => boolean;

export const ALWAYS_VALID: Validator = () => true;

/** The result of one validator alone, without evaluated properties. */
export function testOf(validate: Validator): Test {
  return (value) => validate(value, QUIET);
}

/** A keyword in its schema, from which a validator is created. */
export interface Part {
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
export type ValidatorFactory = (part: Part) => Validator | undefined;

/** An error of a value, without the keyword. */
interface Complaint {
  readonly params?: SchemaError['params'];
  readonly message?: string;
}

/** Shared by the validators of one value. */
export class Run {
  readonly #isTracking: boolean;
  readonly #path: (string | number)[] = [];
  /** The location for each segment of the path, as far as computed. */
  readonly #places: string[] = [];
  /** Absent if only the result is needed; validation then stops at the first error. */
  #errors: SchemaError[] | undefined;
  #verdicts: Map<Validator, Map<unknown, Verdict>> | undefined;

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

  /** Reports that a value does not match. */
  refuse(
    value: unknown,
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
        params: complaint.params ?? {},
        message: complaint.message,
        schema: given,
        parentSchema: schema,
        data: value,
      },
    );
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
export function refusesUnless<Value>(
  part: Part,
  complaint: Complaint,
  { test, code }: { readonly test: (value: Value) => boolean; readonly code?: TestCode },
): Validator {
  const validate: Validator = (value, run) => test(value as Value) || run.refuse(value, part, complaint);
  return Object.assign(validate, { code });
}

/** A limit on the number of characters, items or properties. */
export function countBound<Value>(
  than: 'more' | 'fewer',
  what: string,
  within: (limit: number) => { readonly test: (value: Value) => boolean; readonly code?: TestCode },
): ValidatorFactory {
  return (part) => {
    const limit = part.given as number;
    const complaint = { params: { limit }, message: `must NOT have ${than} than ${limit} ${what}` };
    return refusesUnless(part, complaint, within(limit));
  };
}

/** A validator that runs several validators in order. */
export function allOfValidators(validates: readonly Validator[]): Validator {
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
export const ALL = Symbol('all');

/** The evaluated properties or items of a value, for `unevaluatedProperties` and `unevaluatedItems`. */
export type Seen = Set<string | number | typeof ALL>;

/** Adds the properties or items that another schema evaluated. */
export function addSeen(seen: Seen | undefined, others: Seen | undefined): void {
  if (seen !== undefined && others !== undefined) for (const member of others) seen.add(member);
}

/** An error of a value, in the terms of JSON Schema. */
export interface SchemaError {
  readonly keyword: string;
  /** The location of the value: a JSON pointer. */
  readonly instancePath: string;
  /** Details of the keyword, such as the missing property or the expected format. */
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string | undefined;
  /** The value of the keyword. */
  readonly schema?: unknown;
  readonly parentSchema?: object | undefined;
  readonly data?: unknown;
}

/** The most errors that are reported; more are only counted. */
export const MAX_ERRORS = 200;
