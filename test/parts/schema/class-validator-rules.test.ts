import { describe, expect, test } from '@jest/globals';
import * as cv from 'class-validator';
import fc from 'fast-check';
import { classModel } from '../../../src/tools/schema/class-model.js';
import { RUN_AT_CALL_TIME, ruleMeaning } from '../../../src/tools/schema/class-validator-rules.js';
import { writeParameters } from '../../../src/tools/schema/write-schema.js';
import { validatedProperties, validationRules } from '../../../src/tools/validators/dto-rules.js';
import { runs } from '../../setup/runs.js';
import { compileSchema } from './compile-schema.js';
import { DECORATOR_ROWS, type DecoratorRow } from './decorator-rows.js';
import { dtoWith } from './dto-with.js';
import { SAMPLE_VALUES } from './sample-values.js';

/** Exports that are not property decorators, and `ValidateNested`, which is tested separately. */
const OTHER_EXPORTS = [
  'ValidatorConstraint',
  'ValidationError',
  'ValidationTypes',
  'Validator',
  'MetadataStorage',
];

/** Array rules do not describe the items, so they are combined with a rule that does. */
function dtoOf({ decorate, designType, schema }: DecoratorRow) {
  const isArray = (schema as { type?: unknown }).type === 'array';
  return isArray
    ? dtoWith([decorate, cv.IsString({ each: true })], Array)
    : dtoWith([decorate], designType ?? Object);
}

describe('table of decorators', () => {
  test.each(DECORATOR_ROWS.map((row, index) => [`${row.name} (row ${index})`, row] as const))(
    '%s gives the schema in the table',
    (_, row) => {
      const Dto = dtoOf(row);
      const written = writeParameters({ class: Dto });
      expect(written).toEqual({
        ok: true,
        schema: {
          type: 'object',
          properties: { value: row.schema },
          required: row.optional ? [] : ['value'],
        },
      });
      const read = classModel(Dto);
      expect(read.ok && read.model.remaining !== 'none').toBe(row.calls);
    },
  );

  test('every decorator that class-validator exports has a row here', () => {
    const decorators = Object.entries(cv)
      .filter(([name, value]) => typeof value === 'function' && /^[A-Z]/.test(name))
      .map(([name]) => name)
      .filter((name) => !OTHER_EXPORTS.includes(name) && name !== 'ValidateNested');
    const rows = new Set(DECORATOR_ROWS.map(({ name }) => name));
    expect(decorators.filter((name) => !rows.has(name))).toEqual([]);
  });

  test('every rule that class-validator records has a meaning, except rules without a name', () => {
    const unknown = DECORATOR_ROWS.filter((row) => {
      const rules = validationRules(dtoWith([row.decorate])).get('value') ?? [];
      return rules.some(
        ({ role, name, constraints }) => role === 'custom' && ruleMeaning(name, constraints) === undefined,
      );
    });
    expect(unknown.map(({ name }) => name)).toEqual(['Validate', 'ValidateBy']);
  });

  test('rules that run only at call time give no keywords', () => {
    for (const name of RUN_AT_CALL_TIME) {
      expect(ruleMeaning(name, [])).toEqual({ hint: 'string', keywords: {}, exact: false });
    }
  });

  test('validatedProperties lists the own properties in declaration order', () => {
    class Base {
      @cv.IsInt() a!: number;
    }
    class Sub extends Base {
      @cv.IsInt() c!: number;
      @cv.IsInt() b!: number;
    }
    expect(validatedProperties(Sub)).toEqual(['c', 'b']);
  });
});

describe('schemas and class-validator', () => {
  const rows = DECORATOR_ROWS.filter(({ name }) => !['Validate', 'ValidatePromise', 'IsEnum'].includes(name));
  test.each(rows.map((row, index) => [`${row.name} (row ${index})`, row] as const))(
    '%s: the schema accepts all valid values, and no others if it is exact',
    (_, row) => {
      const Dto = dtoOf(row);
      const written = writeParameters({ class: Dto });
      const accepts = compileSchema(written.ok ? written.schema : {});
      // class-validator throws on numbers in exponential notation when it counts decimal places.
      const samples = row.name === 'IsNumber' ? SAMPLE_VALUES.filter((one) => one !== 1e-7) : SAMPLE_VALUES;
      for (const value of samples.filter((sample) => isOfKind(sample, row.schema))) {
        const instance = Object.assign(new Dto(), { value });
        const isValid = cv.validateSync(instance).length === 0;
        const fits = accepts({ value });
        if (isValid) expect([value, fits]).toEqual([value, true]);
        if (!row.calls) expect([value, fits]).toEqual([value, isValid]);
      }
    },
  );
});

/** Only values of the declared type are compared; dates are instances and are tested elsewhere. */
function isOfKind(value: unknown, schema: { type?: unknown; format?: unknown }): boolean {
  if (schema.format === 'date-time') return false;
  const type = [schema.type ?? []].flat()[0];
  switch (type) {
    case undefined:
      return true;
    case 'integer':
    case 'number':
      return typeof value === 'number';
    case 'array':
      return Array.isArray(value);
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    default:
      return typeof value === type;
  }
}

test('every mail address that skips class-validator is valid for it', () => {
  const enough = ruleMeaning('isEmail', [])?.enough;
  const part = fc.stringMatching(/^[a-zA-Z0-9._+-]{1,12}$/);
  const address = fc.tuple(part, part, part).map(([user, host, tld]) => `${user}@${host}.${tld}`);
  fc.assert(
    fc.property(fc.oneof(address, fc.emailAddress()), (text) => {
      if (enough?.test(text)) expect(cv.isEmail(text)).toBe(true);
    }),
    { numRuns: runs(300) },
  );
  expect(enough?.test('mara.lindt@shop.example.com')).toBe(true);
  expect(ruleMeaning('isEmail', [{ host_blacklist: ['x.com'] }])?.enough).toBeUndefined();
});
