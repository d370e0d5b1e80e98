import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { canonicalJson } from '../../../core/kernel/json.js';
import { formatTest, patternOf } from '../formats.js';
import { isOfType, unionChooser } from '../schema-level.js';
import {
  ALL,
  ALWAYS_VALID,
  addSeen,
  allOfValidators,
  countBound,
  literal,
  type Part,
  type Run,
  refusesUnless,
  type Seen,
  type Test,
  type TestCode,
  testOf,
  type Validator,
  type ValidatorFactory,
} from './validator.js';

/** Keywords for arrays. */
const ARRAY_KEYWORDS: Readonly<Record<string, ValidatorFactory>> = {
  maxItems: countBound('more', 'items', (most) => ({
    test: (items: Items) => items.length <= most,
    code: (items) => `${items}.length <= ${literal(most)}`,
  })),
  minItems: countBound('fewer', 'items', (least) => ({
    test: (items: Items) => items.length >= least,
    code: (items) => `${items}.length >= ${literal(least)}`,
  })),
  additionalItems: (part) => {
    const { items } = part.schema;
    return Array.isArray(items) ? itemsFrom(part, items.length) : undefined;
  },
  prefixItems: tuple,
  items: (part) => {
    if (Array.isArray(part.given)) return tuple(part);
    const { prefixItems } = part.schema;
    // Earlier drafts do not have this keyword.
    const isTuple = Array.isArray(prefixItems) && part.knows('prefixItems');
    return isTuple ? itemsFrom(part, prefixItems.length) : eachItem(part);
  },
  contains,
  maxContains: () => undefined,
  minContains: () => undefined,
  unevaluatedItems: (part) => (part.isTracking ? unevaluatedItems(part) : undefined),
  uniqueItems: (part) =>
    part.given === true
      ? (value, run) => {
          const twice = duplicateItems(value as Items);
          return twice === undefined || run.refuse(value, part, twice);
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
    seen?.add(ALL);
    return fitEach(value as Items, run, { validate, from: 0 });
  };
}

/** Validates the items after a tuple. */
function itemsFrom(part: Part, from: number): Validator {
  const validate = part.validatorOf(part.given);
  const complaint = { params: { limit: from }, message: `must NOT have more than ${from} items` };
  return (value, run, seen) => {
    const items = value as Items;
    seen?.add(ALL);
    if (part.given === false) return items.length <= from || run.refuse(value, part, complaint);
    return fitEach(items, run, { validate, from });
  };
}

function fitEach(
  items: Items,
  run: Run,
  { validate, from }: { readonly validate: Validator; readonly from: number },
): boolean {
  let fits = true;
  for (let index = from; index < items.length; index += 1) {
    if (run.below(index, items[index], validate)) continue;
    if (!run.isReporting) return false;
    fits = false;
  }
  return fits;
}

function contains(part: Part): Validator | undefined {
  const least = part.knows('minContains') ? Number(part.schema.minContains ?? 1) : 1;
  const most = part.knows('maxContains') ? (part.schema.maxContains as number | undefined) : undefined;
  const validate = part.validatorOf(part.given);
  const upTo = most === undefined ? '' : ` and no more than ${most}`;
  const complaint = {
    params: most === undefined ? { minContains: least } : { minContains: least, maxContains: most },
    message: `must contain at least ${least}${upTo} valid item(s)`,
  };
  if (least === 0 && most === undefined && !part.isTracking) return undefined;
  return (value, run, seen) => {
    const items = value as Items;
    let count = 0;
    let index = 0;
    for (; index < items.length && (most === undefined || count <= most); index += 1) {
      if (!run.quietly(items[index], validate)) continue;
      count += 1;
      if (part.marksContained) seen?.add(index);
    }
    if (count >= least && (most === undefined || count <= most)) return true;
    // Report why each item does not match.
    if (run.isReporting && (most === undefined || least <= most))
      for (const [at, item] of items.slice(0, index).entries()) run.below(at, item, validate);
    return run.refuse(value, part, complaint);
  };
}

function unevaluatedItems(part: Part): Validator {
  const validate = part.validatorOf(part.given);
  return (value, run, seen) => {
    const items = value as Items;
    let fits = true;
    for (const [index, item] of items.entries()) {
      if (seen?.has(ALL) || seen?.has(index)) continue;
      if (part.given === false) {
        fits = run.refuse(value, part, {
          params: { limit: index },
          message: `must NOT have more than ${index} items`,
        });
        break;
      }
      fits = run.below(index, item, validate) && fits;
    }
    seen?.add(ALL);
    return fits;
  };
}

/** Reports as a compiled validator does: the last equal item and its index. */
function duplicateItems(items: Items) {
  const places = new Map<string, number>();
  let params: { readonly i: number; readonly j: number } | undefined;
  items.forEach((item, again) => {
    const key = canonicalJson(item);
    const first = places.get(key);
    if (first !== undefined) params = { i: again, j: first };
    places.set(key, again);
  });
  if (params === undefined) return undefined;
  const { i, j } = params;
  return { params, message: `must NOT have duplicate items (items ## ${j} and ${i} are identical)` };
}

/** Keywords that compare a value of any type. */
const ANY_KEYWORDS: Readonly<Record<string, ValidatorFactory>> = {
  const: (part) => refusesUnless(part, { params: { allowedValue: part.given } }, oneOfTest([part.given])),
  enum: (part) =>
    refusesUnless(
      part,
      { params: { allowedValues: part.given } },
      oneOfTest(part.given as readonly unknown[]),
    ),
};

/** Keywords for numbers. */
const NUMBER_KEYWORDS: Readonly<Record<string, ValidatorFactory>> = {
  maximum: bound('<=', (value, limit) => value <= limit),
  minimum: bound('>=', (value, limit) => value >= limit),
  exclusiveMaximum: bound('<', (value, limit) => value < limit),
  exclusiveMinimum: bound('>', (value, limit) => value > limit),
  multipleOf: (part) => {
    const step = part.given as number;
    const complaint = { params: { multipleOf: step }, message: `must be multiple of ${step}` };
    return refusesUnless(part, complaint, {
      // Like compiled schemas: quotients that are written with an exponent are never whole.
      test: (value: number) => Number.isInteger(value / step) && Math.abs(value / step) < 1e21,
    });
  },
  format: (part) => format(part, 'number'),
};

/** Keywords for strings. */
const TEXT_KEYWORDS: Readonly<Record<string, ValidatorFactory>> = {
  maxLength: countBound('more', 'characters', (most) => ({
    test: (text: string) => text.length <= most || charactersOf(text) <= most,
    code: (text, constant) =>
      `(${text}.length <= ${literal(most)} || ${constant(charactersOf)}(${text}) <= ${literal(most)})`,
  })),
  minLength: countBound('fewer', 'characters', (least) => ({
    test: (text: string) => text.length >= least && charactersOf(text) >= least,
    code: (text, constant) =>
      least === 1
        ? `${text} !== ''`
        : `${text}.length >= ${literal(least)} && ${constant(charactersOf)}(${text}) >= ${literal(least)}`,
  })),
  pattern: (part) => {
    const expression = patternOf(part.given as string);
    const complaint = {
      params: { pattern: part.given },
      message: `must match pattern "${part.given}"`,
    };
    return refusesUnless(part, complaint, {
      test: (text: string) => expression.test(text),
      code: (text, constant) => `${constant(expression)}.test(${text})`,
    });
  },
  format: (part) => format(part, 'string'),
};

function bound(comparison: string, isWithin: (value: number, limit: number) => boolean): ValidatorFactory {
  return (part) => {
    const limit = part.given as number;
    const complaint = { params: { comparison, limit }, message: `must be ${comparison} ${limit}` };
    return refusesUnless(part, complaint, {
      test: (value: number) => isWithin(value, limit),
      code: (value) => `${value} ${comparison} ${literal(limit)}`,
    });
  };
}

function format(part: Part, type: 'number' | 'string') {
  const name = String(part.given);
  const test = formatTest(name, type);
  if (test === undefined) return undefined;
  return refusesUnless(part, { params: { format: name }, message: `must match format "${name}"` }, { test });
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
  const plain = new Set(values.filter((value) => typeof value !== 'object' || value === null));
  const nested = new Set(
    values.filter((value) => typeof value === 'object' && value !== null).map(canonicalJson),
  );
  const test: Test = (value) => {
    if (typeof value !== 'object' || value === null) return plain.has(value);
    return nested.size > 0 && nested.has(canonicalJson(value));
  };
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
  const clause = (failingKeyword: 'then' | 'else'): Validator => {
    const given = part.schema[failingKeyword];
    if (given === undefined) return ALWAYS_VALID;
    const validate = part.validatorOf(given);
    const complaint = { params: { failingKeyword }, message: `must match "${failingKeyword}" schema` };
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
 * branches run, and their errors are discarded.
 */
function union(part: Part): Validator {
  const branches = part.given as readonly JsonSchema[];
  const validates = branches.map((branch) => part.validatorOf(branch));
  const choose = unionChooser(branches, part.root);
  const complaint = { message: `must match a schema in ${part.keyword}` };
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
    return (isOneOf ? fitting === 1 : fitting > 0) || run.refuse(value, part, complaint);
  };
}

/** Keywords for objects. */
const OBJECT_KEYWORDS: Readonly<Record<string, ValidatorFactory>> = {
  maxProperties: countBound('more', 'properties', (most) => ({
    test: (value: Fields) => Object.keys(value).length <= most,
  })),
  minProperties: countBound('fewer', 'properties', (least) => ({
    test: (value: Fields) => Object.keys(value).length >= least,
  })),
  required,
  propertyNames,
  additionalProperties,
  dependencies: (part) => {
    const all = Object.entries(part.given as JsonSchema).filter(([name]) => name !== '__proto__');
    const [lists, schemas] = [
      all.filter(([, needed]) => Array.isArray(needed)),
      all.filter(([, needed]) => !Array.isArray(needed)),
    ];
    return allOfValidators([neededNames(part, lists), neededSchemas(part, schemas)]);
  },
  properties,
  patternProperties,
  dependentRequired: (part) => neededNames(part, Object.entries(part.given as JsonSchema)),
  dependentSchemas: (part) => neededSchemas(part, Object.entries(part.given as JsonSchema)),
  unevaluatedProperties: (part) =>
    part.isTracking
      ? forOthers(part, (name, seen) => seen !== undefined && (seen.has(ALL) || seen.has(name)))
      : undefined,
};

type Fields = Readonly<Record<string, unknown>>;

/** Names such as `toString` count only as own properties. */
function has(value: Fields, name: string): boolean {
  return value[name] !== undefined && Object.hasOwn(value, name);
}

function required(part: Part): Validator {
  const names = part.given as readonly string[];
  return (value, run) => {
    let fits = true;
    for (const missingProperty of names) {
      if (has(value as Fields, missingProperty)) continue;
      fits = run.refuse(value, part, { params: { missingProperty } });
      if (!run.isReporting) break;
    }
    return fits;
  };
}

function propertyNames(part: Part): Validator {
  const validate = part.validatorOf(part.given);
  return (value, run) => {
    let fits = true;
    for (const propertyName of Object.keys(value as Fields)) {
      if (validate(propertyName, run, run.track())) continue;
      fits = run.refuse(value, part, {
        params: { propertyName },
        message: 'property name must be valid',
      });
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
  return forOthers(part, (name) => known.has(name) || patterns.some((pattern) => pattern.test(name)));
}

/** Validates all properties except those that another keyword covers. */
function forOthers(part: Part, isKnown: (name: string, seen: Seen | undefined) => boolean): Validator {
  const validate = part.validatorOf(part.given);
  const unknown = part.keyword === 'unevaluatedProperties' ? 'unevaluatedProperty' : 'additionalProperty';
  return (value, run, seen) => {
    const fields = value as Fields;
    let fits = true;
    for (const name of Object.keys(fields)) {
      if (isKnown(name, seen)) continue;
      fits =
        (part.given === false
          ? run.refuse(value, part, { params: { [unknown]: name } })
          : run.below(name, fields[name], validate)) && fits;
      if (!fits && !run.isReporting) return false;
    }
    seen?.add(ALL);
    return fits;
  };
}

/** The test for properties that are not listed; `undefined` if any are accepted. */
export function othersTest(
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

type Dependencies = readonly (readonly [name: string, needed: unknown])[];

function neededNames(part: Part, dependencies: Dependencies): Validator {
  return allOfValidators(
    dependencies.map(([property, needed]): Validator => {
      const names = needed as readonly string[];
      const deps = names.join(', ');
      const message = `must have ${names.length === 1 ? 'property' : 'properties'} ${deps} when property ${property} is present`;
      return (value, run) => {
        if (!has(value as Fields, property)) return true;
        let fits = true;
        for (const missingProperty of names) {
          if (has(value as Fields, missingProperty)) continue;
          const params = { property, missingProperty, depsCount: names.length, deps };
          fits = run.refuse(value, part, { params, message });
          if (!run.isReporting) break;
        }
        return fits;
      };
    }),
  );
}

function neededSchemas(part: Part, dependencies: Dependencies): Validator {
  return allOfValidators(
    dependencies.map(([property, schema]): Validator => {
      const validate = part.validatorOf(schema);
      return (value, run, seen) => !has(value as Fields, property) || validate(value, run, seen);
    }),
  );
}

type Makers = Readonly<Record<string, ValidatorFactory>>;

const referred: ValidatorFactory = (part) => part.referred();

/** The keywords by the type of their values, in the order in which errors are reported. */
export const GROUPS: readonly { readonly type?: string; readonly makers: Makers }[] = [
  {
    makers: {
      ...{ $dynamicRef: referred, $recursiveRef: referred, $ref: referred },
      ...ANY_KEYWORDS,
      ...COMBINING_KEYWORDS,
    },
  },
  { type: 'number', makers: NUMBER_KEYWORDS },
  { type: 'string', makers: TEXT_KEYWORDS },
  { type: 'array', makers: ARRAY_KEYWORDS },
  { type: 'object', makers: OBJECT_KEYWORDS },
];

/** The position of a keyword in that order; `format` has two. */
interface Known {
  readonly keyword: string;
  readonly group: number;
  readonly rank: number;
  readonly make: ValidatorFactory;
}

const KNOWN: ReadonlyMap<string, readonly Known[]> = Map.groupBy(
  GROUPS.flatMap(({ makers }, group) =>
    Object.entries(makers).map(([keyword, make], rank) => ({ keyword, group, rank, make })),
  ),
  ({ keyword }) => keyword,
);

/** Creates the part for a keyword of a schema. */
type MakePart = (keyword: string) => Part;

/** The validator of one schema: all its keywords, each only for values of its type. */
export function schemaValidator(schema: JsonSchema, part: MakePart): Validator {
  const types = typesOf(schema);
  const refuseType: Validator = (value, run) =>
    run.refuse(value, part('type'), { params: { type: schema.type } });
  const validates: Validator[] = [];
  let isTypeChecked = types.length === 0;
  for (const [group, made] of madeValidators(schema, part)) {
    const { type } = GROUPS[group] ?? {};
    const isOnly = types.length === 1 && types[0] === type;
    isTypeChecked ||= isOnly;
    const validate = allOfValidators(made.map(([, each]) => each));
    if (type === undefined) validates.push(validate);
    else if (isOnly || validate !== ALWAYS_VALID)
      validates.push(ofType(type, validate, isOnly ? refuseType : ALWAYS_VALID));
  }
  if (!isTypeChecked) {
    const tests = types.map(typeTest);
    validates.unshift((value, run) => tests.some((isOf) => isOf(value)) || refuseType(value, run));
  }
  return allOfValidators(validates.filter((validate) => validate !== ALWAYS_VALID));
}

export type Made = readonly [keyword: string, validate: Validator];

/** By group, in order. A group that contains only keywords without a validator is present but empty. */
export function madeValidators(schema: JsonSchema, part: MakePart): ReadonlyMap<number, readonly Made[]> {
  const known: Known[] = [];
  for (const keyword of Object.keys(schema))
    if (schema[keyword] !== undefined) known.push(...(KNOWN.get(keyword) ?? []));
  known.sort((one, other) => one.group - other.group || one.rank - other.rank);
  const made = new Map<number, Made[]>();
  for (const { keyword, group, make } of known) {
    const named = part(keyword);
    if (!named.knows(keyword)) continue;
    const validate = make(named);
    const validates = made.get(group) ?? [];
    made.set(group, validates);
    if (validate !== undefined && validate !== ALWAYS_VALID) validates.push([keyword, validate]);
  }
  return made;
}

function ofType(type: string, validate: Validator, others: Validator): Validator {
  const isOf = typeTest(type);
  return (value, run, seen) => (isOf(value) ? validate(value, run, seen) : others(value, run, seen));
}

export function typesOf({ type, nullable }: JsonSchema): readonly string[] {
  const types = [type ?? []].flat() as readonly string[];
  return nullable === true && !types.includes('null') ? [...types, 'null'] : types;
}

/** Only finite numbers are numbers, as in JSON. */
function typeTest(type: string): Test {
  switch (type) {
    case 'string':
      return (value) => typeof value === 'string';
    case 'number':
      return Number.isFinite;
    case 'integer':
      return Number.isInteger;
    case 'array':
      return Array.isArray;
    default:
      return (value) => isOfType(value, type);
  }
}
