import type { JsonSchema } from '../../../core/contract/json-schema.js';
import { patternOf } from '../formats.js';
import {
  ALL,
  ALWAYS_VALID,
  allOfValidators,
  countBound,
  type Part,
  type Seen,
  testOf,
  type Validator,
  type ValidatorFactory,
} from './validator.js';

/** Keywords for objects. */
export const OBJECT_KEYWORDS: Readonly<Record<string, ValidatorFactory>> = {
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
      if (!run.isTelling) break;
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
      if (!run.isTelling) break;
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
      if (!run.isTelling) return false;
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
        if (!run.isTelling) return false;
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
      if (!fits && !run.isTelling) return false;
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
          if (!run.isTelling) break;
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
