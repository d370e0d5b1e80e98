import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { pointerStep } from '../../../core/kernel/json.js';

/** Validates a value by a schema or one of its keywords; where it does not fit and the run tells, it says so to the run. */
export interface Validator {
  (value: unknown, run: Run, seen?: Seen): boolean;
  /** The verdict as an expression of JavaScript, if that is worth it. */
  readonly code?: TestCode;
}

/** Writes an expression about a value; `constant` gives the name of something that it refers to. */
export type TestCode = (value: string, constant: (referred: unknown) => string) => string;

/** A value of a schema in generated code: always a literal, so that no schema can bring code of its own. */
export function literal(value: unknown): string {
  return JSON.stringify(value) ?? 'undefined';
}

/** Whether a value fits. */
export type Test = (value: unknown) => boolean;

export const ALWAYS_VALID: Validator = () => true;

/** The result of one validator alone, without evaluated properties. */
export function testOf(validate: Validator): Test {
  return (value) => validate(value, QUIET);
}

/** A keyword in its schema, on the way to become a validator. */
export interface Part {
  readonly keyword: string;
  readonly given: unknown;
  readonly schema: JsonSchema;
  readonly root: JsonSchema;
  /** Whether some schema of the whole asks what has been validated of a value. */
  readonly isTracking: boolean;
  /** Whether items that `contains` has found count as validated. */
  readonly marksContained: boolean;
  /** Whether the draft takes notice of a keyword. */
  knows(keyword: string): boolean;
  /** The validator of a schema within this one. */
  validatorOf(schema: unknown): Validator;
  /** The validator of what the keyword's reference means; made when it is first asked, because it may contain itself. */
  referred(): Validator;
}

/** Makes a validator of a keyword; nothing where it refuses no value. */
export type ValidatorFactory = (part: Part) => Validator | undefined;

/** What is wrong with a value, the keyword apart. */
interface Complaint {
  readonly params?: SchemaError['params'];
  readonly message?: string;
}

/** What the validators of one value share. */
export class Run {
  readonly #isTracking: boolean;
  readonly #path: (string | number)[] = [];
  /** For each step of the path, where it leads, as far as it was needed. */
  readonly #places: string[] = [];
  /** Absent where only the verdict is wanted, so that the first disagreement ends the matter. */
  #errors: SchemaError[] | undefined;
  #verdicts: Map<Validator, Map<unknown, Verdict>> | undefined;

  constructor({ isTelling, isTracking }: { readonly isTelling: boolean; readonly isTracking: boolean }) {
    this.#errors = isTelling ? [] : undefined;
    this.#isTracking = isTracking;
  }

  get isTelling(): boolean {
    return this.#errors !== undefined;
  }

  get errors(): readonly SchemaError[] {
    return this.#errors ?? [];
  }

  /** Where the value that is being validated lies, as a JSON pointer. */
  get place(): string {
    const places = this.#places;
    for (const step of this.#path.slice(places.length))
      places.push(`${places.at(-1) ?? ''}/${typeof step === 'number' ? step : pointerStep(step)}`);
    return places.at(-1) ?? '';
  }

  /** A list of what has been validated of a value, where some schema asks for it. */
  track(): Seen | undefined {
    return this.#isTracking ? new Set() : undefined;
  }

  /** Validates what lies in the value. */
  below(key: string | number, value: unknown, validate: Validator): boolean {
    // Without error reports no path is needed.
    if (this.#errors === undefined) return validate(value, this, this.track());
    this.#path.push(key);
    const fits = validate(value, this, this.track());
    this.#path.pop();
    if (this.#places.length > this.#path.length) this.#places.pop();
    return fits;
  }

  /** Validates without telling what is wrong. */
  quietly(value: unknown, validate: Validator, seen = this.track()): boolean {
    const errors = this.#errors;
    this.#errors = undefined;
    const fits = validate(value, this, seen);
    this.#errors = errors;
    return fits;
  }

  /** Says that a value does not fit. */
  refuse(value: unknown, { keyword, given, schema }: Refusing, complaint: Complaint): false {
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

  /** What a validator has said already, by value. */
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

/** Who refuses a value. */
type Refusing = Pick<Part, 'keyword' | 'given' | 'schema'>;

/** What came of validating a value. */
interface Verdict {
  readonly fits: boolean;
  readonly seen?: Seen | undefined;
  /** The location of the value when all its errors were reported. */
  readonly toldAt?: string | undefined;
}

/** A validator by a plain condition. */
export function refusesUnless<Value>(
  part: Part,
  complaint: Complaint,
  { test, code }: { readonly test: (value: Value) => boolean; readonly code?: TestCode },
): Validator {
  const validate: Validator = (value, run) => test(value as Value) || run.refuse(value, part, complaint);
  return Object.assign(validate, { code });
}

/** A bound of how many characters, items or properties a value may have. */
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

/** The validator that all of some validators are one after the other. */
export function allOfValidators(validates: readonly Validator[]): Validator {
  const [only, second] = validates;
  if (only === undefined) return ALWAYS_VALID;
  if (second === undefined) return only;
  return (value, run, seen) => {
    let fits = true;
    for (const validate of validates) {
      if (validate(value, run, seen)) continue;
      if (!run.isTelling) return false;
      fits = false;
    }
    return fits;
  };
}

/** Where only a verdict is wanted. */
const QUIET = new Run({ isTelling: false, isTracking: false });

/** Stands for all properties of an object, or all items of a list. */
export const ALL = Symbol('all');

/** What of one object or list some schema has validated, for `unevaluatedProperties` and `unevaluatedItems`. */
export type Seen = Set<string | number | typeof ALL>;

/** Takes over what another schema has validated of the same value. */
export function addSeen(seen: Seen | undefined, others: Seen | undefined): void {
  if (seen !== undefined && others !== undefined) for (const member of others) seen.add(member);
}

/** One disagreement between a value and a schema, in the terms of JSON Schema. */
export interface SchemaError {
  readonly keyword: string;
  /** Where the value lies: a JSON pointer. */
  readonly instancePath: string;
  /** What the keyword says of it: the property that is missing, the format that it has not. */
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string | undefined;
  /** What the keyword is given. */
  readonly schema?: unknown;
  readonly parentSchema?: object | undefined;
  readonly data?: unknown;
}

/** The maximum of reported errors; more are only counted. */
export const MAX_ERRORS = 200;
