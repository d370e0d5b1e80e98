import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { discoverTools, ToolRegistry } from 'toolwright';
import { BuiltinTools, calculateTool } from 'toolwright/builtin';

const tools = new ToolRegistry().register(calculateTool);

async function calculate(expression: string): Promise<string> {
  const { forLLM, isError } = await tools.execute('calculate', { expression });
  return isError ? `error: ${forLLM}` : forLLM;
}

describe('calculateTool', () => {
  test('evaluates 2 + 2 * 3 to 8, as plain text and without details', async () => {
    const result = await tools.execute('calculate', { expression: '2 + 2 * 3' });
    expect(result).toMatchObject({ forLLM: '8', isError: false, details: undefined });
  });

  test('is called calculate, has one required argument and is read-only', () => {
    expect(calculateTool).toMatchObject({ name: 'calculate', annotations: { readOnly: true } });
    expect(calculateTool.parameters).toMatchObject({ required: ['expression'] });
  });

  test.each([
    ['12 * (3 + 4)', '84'],
    ['10 / 4', '2.5'],
    ['10 % 4', '2'],
    ['-2 ^ 2', '-4'],
    ['(-2) ^ 2', '4'],
    ['2 ^ 3 ^ 2', '512'],
    ['2 ** 10', '1024'],
    ['6 × 7 ÷ 2 − 1', '20'],
    ['--5', '5'],
    ['.5 + 1.', '1.5'],
    ['1.5e3 + 1E-2', '1500.01'],
    ['sqrt(16) + abs(-3)', '7'],
    ['round(2.5) + floor(2.9) + ceil(2.1)', '8'],
    ['round(1.005, 2)', '1.01'],
    ['round(-1.005, 2)', '-1.01'],
    ['min(3, 1, 2) + max(3, 1, 2)', '4'],
    ['sin(0) + cos(0) + tan(0)', '1'],
    ['log(e) + ln(e) + log10(1000) + log2(8)', '8'],
    ['exp(0) + pow(2, 3)', '9'],
    ['2 * π', '6.28318530717959'],
    ['0.1 + 0.2', '0.3'],
    ['1.1 * 3', '3.3'],
    ['-0', '0'],
    ['2 ^ 60', '1152921504606846976'],
    ['1 / 3', '0.333333333333333'],
    ['  7  ', '7'],
  ])('%s is %s', async (expression, value) => {
    expect(await calculate(expression)).toBe(value);
  });

  test.each([
    ['1 / 0', 'Division by zero.'],
    ['5 % (2 - 2)', 'Division by zero.'],
    ['9 ^ 9 ^ 9', "The result of '9 ^ 9 ^ 9' is not a finite number."],
    ['sqrt(-1)', "The result of 'sqrt(-1)' is not a finite number."],
    ['sqrt', "The result of 'sqrt' is not a finite number."],
    ['', 'The expression is empty.'],
    ['   ', 'The expression is empty.'],
  ])('%j is an error result: %s', async (expression, message) => {
    expect(await calculate(expression)).toBe(`error: ${message}`);
  });

  test.each(['2 +', '(1', '1)', '2 3', '* 4', '1..2', '1,234', '2(3)', '()', 'sqrt(,)'])(
    'the syntax error %j is reported in an error result',
    async (expression) => {
      expect(await calculate(expression)).toMatch(/^error: (Cannot read the expression|The result of) '/);
    },
  );

  test('an unknown name is refused with a list of the known names', async () => {
    expect(await calculate('foo(1)')).toMatch(/^error: Unknown name 'foo'\. Known names: pi, .*sqrt/);
  });

  test.each([
    'process',
    'globalThis',
    'constructor',
    '__proto__',
    'toString()',
    'sqrt.constructor',
    'sqrt.constructor(1)',
    'random(1)',
    'x = 1',
    'f(x) = x',
    'map(sqrt, 1)',
    '"text"',
    "'a' + 'b'",
    '[1, 2]',
    '1; 2',
    '1 ? 2 : 3',
    '1 == 1',
    'true',
    '5!',
    'length 5',
    '`1`',
    '$1',
    '{1}',
    '1\u0000',
  ])('%j cannot access globals, prototypes, strings, lists or statements', async (expression) => {
    expect(await calculate(expression)).toMatch(/^error: /);
  });

  test('an expression that is too long or nested too deeply is refused', async () => {
    expect(await calculate(`${'1+'.repeat(500)}1`)).toMatch(
      /^error: The expression is too long: 1001 characters/,
    );
    expect(await calculate(`${'('.repeat(51)}1${')'.repeat(51)}`)).toMatch(/nested too deeply/);
    expect(await calculate(`${'-'.repeat(999)}1`)).toBe('-1');
    expect(await calculate(`${'2^'.repeat(400)}0`)).toMatch(/not a finite number|^1$|^2$/);
  });

  test('sums and products of integers equal those of JavaScript', async () => {
    const number = fc.integer({ min: -1_000, max: 1_000 });
    const law = fc.asyncProperty(number, number, number, async (a, b, c) => {
      expect(await calculate(`(${a}) + ${b} * (${c})`)).toBe(String(a + b * c || 0));
    });
    await fc.assert(law);
  });

  test('any text results in a number or an error result', async () => {
    const signs = fc.string({
      unit: fc.constantFrom(...'0123456789.+-*/%^() ,esqrtpi_[]"=;'.split('')),
      maxLength: 40,
    });
    const law = fc.asyncProperty(fc.oneof(signs, fc.string()), async (expression) => {
      expect(await calculate(expression)).toMatch(/^(error: .|-?\d)/s);
    });
    await fc.assert(law, { numRuns: 500 });
  });
});

describe('BuiltinTools', () => {
  test('the tools of the toolset have the same definitions as the single tools', () => {
    const [calculateMethod, timeMethod] = discoverTools({ toolsets: [BuiltinTools] });
    expect(calculateMethod).toMatchObject({ name: 'calculate', description: calculateTool.description });
    expect(calculateMethod?.parameters).toEqual(calculateTool.parameters);
    expect(timeMethod).toMatchObject({ name: 'get_current_time', annotations: { readOnly: true } });
  });

  test('calculate of the toolset returns the same result', async () => {
    const registry = new ToolRegistry().register(...discoverTools({ toolsets: [BuiltinTools] }));
    const { forLLM } = await registry.execute('calculate', { expression: '2 + 2 * 3' });
    expect(forLLM).toBe('8');
  });
});
