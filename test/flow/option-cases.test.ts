import { afterEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { InvalidOptionsError, ToolwrightError } from 'toolwright';
import { ReadonlyVisitor } from 'toolwright/plugin';
import {
  happened,
  LOOP_CASES,
  NEST_CASES,
  type OptionCase,
  OUTER_CASES,
  PLUGIN_CASES,
  TOOL_CASES,
} from './option-cases.js';

afterEach(() => {
  happened.length = 0;
});

const CASES: readonly (readonly [string, OptionCase, number])[] = [
  ...[...LOOP_CASES, ...TOOL_CASES, ...OUTER_CASES, ...PLUGIN_CASES].map(
    (optionCase) => [optionCase.name, optionCase, 40] as const,
  ),
  ...NEST_CASES.map((optionCase) => [optionCase.name, optionCase, 10] as const),
];

/** All misspellings of a name by one letter. */
function slips(name: string): readonly string[] {
  const at = (index: number) => [name.slice(0, index), name.slice(index)] as const;
  return Array.from({ length: name.length }, (_, index) => {
    const [before, after] = at(index);
    return [
      before + after.slice(1),
      `${before}x${after}`,
      `${before}x${after.slice(1)}`,
      before + after.slice(1, 2) + after.slice(0, 1) + after.slice(2),
      before + (after[0] ?? '').toUpperCase() + after.slice(1),
      before + (after[0] ?? '').toLowerCase() + after.slice(1),
    ];
  }).flat();
}

/** The reported faults. Fails if there are faults and anything was called all the same. */
async function faultsOf(optionCase: OptionCase, options: unknown): Promise<InvalidOptionsError['faults']> {
  try {
    await optionCase.call(options);
  } catch (error) {
    if (!(error instanceof InvalidOptionsError)) return [];
    expect(error).toMatchObject({ name: 'InvalidOptions', code: 521 });
    expect(happened).toEqual([]);
    return error.faults;
  } finally {
    happened.length = 0;
  }
  return [];
}

/** The options of an entry point with one of them renamed. */
function renamed({ options }: OptionCase, name: string, slip: string): Readonly<Record<string, unknown>> {
  const { [name]: value, ...others } = options;
  return { ...others, [slip]: value };
}

describe.each(CASES)('%s', (_name, optionCase, numRuns) => {
  const names = Object.keys(optionCase.options);
  const misspelt = names.flatMap((name) =>
    slips(name)
      .filter((slip) => slip !== '' && !names.includes(slip))
      .map((slip) => [name, slip] as const),
  );

  test('accepts all its options', async () => {
    expect(await faultsOf(optionCase, optionCase.options)).toEqual([]);
  });

  test('refuses a misspelt option and suggests the right name', async () => {
    const { path } = optionCase;
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...misspelt), async ([name, slip]) => {
        const faults = await faultsOf(optionCase, renamed(optionCase, name, slip));
        const unknown = faults.find(({ option }) => option === path + slip);
        expect(`${unknown?.problem} ${unknown?.fix}`).toMatch(new RegExp(`\`${path}${name}\`|\\b${name}: `));
      }),
      { numRuns },
    );
  });

  test('refuses an unknown option and lists the valid names', async () => {
    const [fault] = await faultsOf(optionCase, { ...optionCase.options, zzzzzzzz: 1 });
    expect(fault).toMatchObject({
      option: `${optionCase.path}zzzzzzzz`,
      fix: expect.stringMatching(/^one of /),
    });
  });

  test('refuses invalid values and reports all of them together', async () => {
    const closed = names.filter((name) => !optionCase.open.includes(name));
    await fc.assert(
      fc.asyncProperty(
        fc.subarray(closed, { minLength: 1 }),
        fc.constantFrom(null, Symbol('odd'), Number.NaN),
        async (wrong, value) => {
          const options = {
            ...optionCase.options,
            ...Object.fromEntries(wrong.map((name) => [name, value])),
          };
          const told = (await faultsOf(optionCase, options)).map(({ option }) => option);
          expect(told.sort()).toEqual(wrong.map((name) => optionCase.path + name).sort());
        },
      ),
      { numRuns },
    );
  });

  test('refuses options that are not an object', async () => {
    for (const given of [null, 5, 'options', [optionCase.options]])
      expect((await faultsOf(optionCase, given)).length).toBeGreaterThan(0);
  });

  test('refuses undefined for exactly the required and the protective options', async () => {
    const refused: string[] = [];
    for (const name of names)
      if ((await faultsOf(optionCase, { ...optionCase.options, [name]: undefined })).length > 0)
        refused.push(name);
    expect(refused.sort()).toEqual([...optionCase.protecting, ...optionCase.required].sort());
  });

  test('refuses an empty string for protective options', async () => {
    // An owner may be any JSON value.
    for (const name of optionCase.protecting.filter((name) => name !== 'owner')) {
      const told = (await faultsOf(optionCase, { ...optionCase.options, [name]: '' })).map(
        ({ option }) => option,
      );
      expect(told).toEqual([optionCase.path + name]);
    }
  });
});

test('InvalidOptions reports all faults at once and contains no secret', async () => {
  const [run] = LOOP_CASES;
  if (run === undefined) throw new Error('there is no case');
  const wrong = { ...renamed(run, 'policy', 'polcy'), onLimit: 'explode', stateSecret: 7, logger: 'no' };
  const error = await Promise.resolve(run.call(wrong)).catch((thrown: unknown) => thrown);
  expect(ToolwrightError.is(error) && error.code).toBe(521);
  const { message, faults } = error as InvalidOptionsError;
  expect(faults.map(({ option }) => option)).toEqual(['onLimit', 'stateSecret', 'logger', 'polcy']);
  expect(message).toContain('did you mean `policy`?');
  expect(message).not.toContain('7');
});

test('ReadonlyVisitor accepts the options that the Nest CLI adds for each plugin', () => {
  const added = { pathToSource: '/src', readonly: true };
  expect(() => new ReadonlyVisitor({ strict: true, ...added })).not.toThrow();
});
