import { Parser } from 'expr-eval-fork';
import { Param, Tool } from '../../../decorators/index.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import { checkOptions } from '../../core/errors/author-fault.js';
import { FUNCTION, optionTable } from '../../core/kernel/options.js';
import { defineTool } from '../../tools/discovery/define-tool.js';

/** Description for the model, for both forms of `calculate`. */
const CALCULATE_DESCRIPTION =
  'Calculate an arithmetic expression. Supports + - * / % ^, parentheses, pi, e and functions such as sqrt, round, min, max, sin, log (natural) and log10.';

const EXPRESSION_DESCRIPTION = 'Arithmetic expression, e.g. 2 + 2 * 3 or round(sqrt(2), 3)';

/** Description for the model, for both forms of `get_current_time`. */
const TIME_DESCRIPTION = 'Get the current date and time, in ISO 8601 with the UTC offset of the time zone.';

const TIMEZONE_DESCRIPTION =
  'IANA time zone, e.g. America/New_York or UTC; default: the time zone of the machine';

// The entry point of the decorators loads `reflect-metadata`, without which this class has no parameter types.

/**
 * The built-in tools as a toolset: `calculate` and `get_current_time`. To use another clock, override `now` in a
 * subclass.
 *
 * @example
 * ```ts
 * tools.register(...discoverTools({ toolsets: [BuiltinTools, ShopTools] }));
 * ```
 */
// No @Toolset: a bare `discoverTools()` must not offer a class just because it was imported.
export class BuiltinTools {
  /** The value of an arithmetic expression as text; throws an Error with the reason if there is no value. */
  @Tool({ description: CALCULATE_DESCRIPTION, annotations: { title: 'Calculate', readOnly: true } })
  calculate(
    @Param({ name: 'expression', description: EXPRESSION_DESCRIPTION, required: true }) expression: string,
  ): string {
    return formatNumber(evaluateExpression(expression));
  }

  /** The time in a zone; throws an Error if the zone is unknown. */
  @Tool({ description: TIME_DESCRIPTION, annotations: { title: 'Current time', readOnly: true } })
  getCurrentTime(
    @Param({ name: 'timezone', description: TIMEZONE_DESCRIPTION, required: false }) timezone?: string,
  ): ToolResult {
    return currentTime(this.now(), timezone);
  }

  protected now(): Date {
    return new Date();
  }
}

/**
 * The tool `calculate`, argument `{ expression: string }`: evaluates arithmetic without running code. The result is the
 * number as text; an error result states why an expression cannot be evaluated.
 *
 * @example
 * ```ts
 * const tools = new ToolRegistry().register(calculateTool);
 * const { forLLM } = await tools.execute('calculate', { expression: '2 + 2 * 3' }); // '8'
 * ```
 */
export const calculateTool: ToolDefinition = defineTool({
  name: 'calculate',
  description: CALCULATE_DESCRIPTION,
  parameters: {
    type: 'object',
    properties: { expression: { type: 'string', description: EXPRESSION_DESCRIPTION } },
    required: ['expression'],
  },
  annotations: { title: 'Calculate', readOnly: true },
  execute: ({ expression }) => formatNumber(evaluateExpression(String(expression))),
});

/** Options of {@link createCurrentTimeTool}. */
export interface CurrentTimeOptions {
  /** The clock; default: the machine's. */
  readonly now?: () => Date;
}

const OPTIONS = optionTable<CurrentTimeOptions>('createCurrentTimeTool', { now: FUNCTION });

/**
 * Creates a tool `get_current_time` with your own clock, for tests and simulations.
 *
 * @example
 * ```ts
 * const tool = createCurrentTimeTool({ now: () => new Date('2024-01-15T15:30:00Z') });
 * ```
 */
export function createCurrentTimeTool(options: CurrentTimeOptions = {}): ToolDefinition {
  checkOptions(options, OPTIONS);
  const { now = () => new Date() } = options;
  return defineTool({
    name: 'get_current_time',
    description: TIME_DESCRIPTION,
    parameters: {
      type: 'object',
      properties: { timezone: { type: 'string', description: TIMEZONE_DESCRIPTION } },
      required: [],
    },
    annotations: { title: 'Current time', readOnly: true },
    execute: ({ timezone }) => currentTime(now(), timezone === undefined ? undefined : String(timezone)),
  });
}

/**
 * The tool `get_current_time`, argument `{ timezone?: string }` (an IANA name; default: the zone of the
 * machine): the time as `2024-01-15T10:30:00-05:00`. An unknown zone is an error result.
 *
 * @example
 * ```ts
 * const tools = new ToolRegistry().register(getCurrentTimeTool);
 * const { forLLM } = await tools.execute('get_current_time', { timezone: 'America/New_York' });
 * ```
 */
export const getCurrentTimeTool: ToolDefinition = createCurrentTimeTool();

/**
 * The result of `get_current_time`: the local time in the zone for the model, and milliseconds since 1970 as
 * `details.utcTimestamp` for the application.
 *
 * @throws Error `Invalid timezone: X. Current UTC time: <ISO>` if the zone is unknown.
 */
function currentTime(instant: Date, timezone?: string): ToolResult {
  // Models send '' for an omitted argument.
  const zone = timezone?.trim() || undefined;
  try {
    return new ToolResult({
      forLLM: zonedTime(instant, zone),
      details: { utcTimestamp: instant.getTime() },
    });
  } catch (cause) {
    if (zone === undefined || !(cause instanceof RangeError)) throw cause;
    const utc = `${instant.toISOString().slice(0, 19)}Z`;
    throw new Error(`Invalid timezone: ${zone.slice(0, 80)}. Current UTC time: ${utc}`, { cause });
  }
}

/**
 * The local time in a zone, ISO 8601 with offset and without fractions of a second: `2024-01-15T10:30:00-05:00`.
 *
 * @param timezone IANA name; default: the zone of the machine.
 * @throws RangeError if the zone is unknown.
 */
function zonedTime(instant: Date, timezone?: string): string {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'longOffset',
  });
  const parts = new Map(format.formatToParts(instant).map(({ type, value }) => [type, value]));
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.get(type) ?? '';
  // Intl writes `GMT-05:00`, and for UTC only `GMT`.
  const offset = part('timeZoneName').slice('GMT'.length) || '+00:00';
  const date = `${part('year').padStart(4, '0')}-${part('month')}-${part('day')}`;
  return `${date}T${part('hour')}:${part('minute')}:${part('second')}${offset}`;
}

/** Expressions come from a model, so their cost is limited. */
const MAX_LENGTH = 1_000;
const MAX_DEPTH = 50;

/** No quotes, brackets, `;`, `=`, `?`, `!`: without them, the parser has no strings, lists or statements. */
const FOREIGN = /[^\w\s.,+\-*/%^()]/u;

/** A name, but not the `e5` of `1e5` or the `xFF` of `0xFF`. */
const NAMES = /(?<![\w.])[A-Za-z_]\w*/g;

const DISABLED = Object.fromEntries(
  'assignment fndef logical comparison conditional concatenate in factorial array'
    .split(' ')
    .map((operator) => [operator, false]),
);

/**
 * The value of an arithmetic expression: `+ - * / % ^`, parentheses, and the functions and constants of
 * {@link MATH_FUNCTIONS} and {@link MATH_CONSTANTS}. It cannot access anything else.
 *
 * @throws Error with a message for the model if the expression is too long or too deep, cannot be parsed, contains an
 * unknown name, divides by zero, or has no finite value.
 */
function evaluateExpression(expression: string): number {
  // Models write these characters instead of the plain operators.
  const text = expression
    .replaceAll('**', '^')
    .replace(/[×·⋅]/gu, '*')
    .replaceAll('÷', '/')
    .replace(/[−–]/gu, '-')
    .replaceAll('π', 'pi')
    .trim();
  if (text === '') throw new Error('The expression is empty.');
  if (text.length > MAX_LENGTH)
    throw new Error(`The expression is too long: ${text.length} characters, at most ${MAX_LENGTH}.`);
  const foreign = FOREIGN.exec(text)?.[0];
  if (foreign !== undefined)
    throw new Error(
      `The expression has '${foreign}', which is not allowed. Use numbers, + - * / % ^ and ( ).`,
    );
  let depth = 0;
  let deepest = 0;
  for (const sign of text) {
    if (sign === '(') depth += 1;
    else if (sign === ')') depth -= 1;
    deepest = Math.max(deepest, depth);
  }
  if (deepest > MAX_DEPTH)
    throw new Error(`The expression is nested too deeply: at most ${MAX_DEPTH} levels of parentheses.`);
  const known = [...Object.keys(MATH_CONSTANTS), ...Object.keys(MATH_FUNCTIONS)];
  const unknown = text.match(NAMES)?.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new Error(`Unknown name '${excerpt(unknown)}'. Known names: ${known.join(', ')}.`);
  const value = evaluate(text);
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw new Error(`The result of '${excerpt(text)}' is not a finite number.`);
  return value;
}

class DivisionByZero extends Error {
  constructor() {
    super('Division by zero.');
  }
}

function evaluate(text: string): unknown {
  // A new parser for each expression, because the library stores state in it.
  const parser: Parser & { binaryOps?: Record<string, unknown> } = new Parser({
    allowMemberAccess: false,
    operators: DISABLED,
  });
  parser.functions = MATH_FUNCTIONS;
  parser.consts = MATH_CONSTANTS;
  parser.unaryOps = Object.assign(Object.create(null), { '-': (a: number) => -a, '+': (a: number) => a });
  parser.binaryOps = Object.assign(Object.create(null), parser.binaryOps, {
    '/': (a: number, b: number) => a / nonZero(b),
    '%': (a: number, b: number) => a % nonZero(b),
  });
  try {
    return parser.evaluate(text);
  } catch (error) {
    if (error instanceof DivisionByZero) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`Cannot read the expression '${excerpt(text)}': ${reason}.`, { cause: error });
  }
}

function nonZero(divisor: number): number {
  if (divisor === 0) throw new DivisionByZero();
  return divisor;
}

function excerpt(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

/** Without a prototype, so that names such as `constructor` are unknown. */
function table<Value>(entries: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> {
  return Object.freeze(Object.assign(Object.create(null), entries));
}

/** The constants of expressions. */
const MATH_CONSTANTS = table({ pi: Math.PI, PI: Math.PI, e: Math.E, E: Math.E });

/** In the order in which an error lists them. `Math` has no `ln`, and its `round` takes no digits: both are set below. */
const FUNCTION_NAMES =
  'sqrt cbrt abs sign round floor ceil trunc min max sin cos tan asin acos atan log ln log10 log2 exp pow';

/** The functions of expressions; `log` is the natural logarithm, as in JavaScript, C and Python. */
const MATH_FUNCTIONS = table<(...values: number[]) => number>({
  ...Object.fromEntries(FUNCTION_NAMES.split(' ').map((name) => [name, Math[name as 'max']])),
  round: roundTo,
  ln: Math.log,
});

/** `round(2.345, 2)`. Moves the decimal point in the text, because `1.005 * 100` is 100.49999999999999. */
function roundTo(value: number, digits = 0): number {
  if (!Number.isInteger(digits) || Math.abs(digits) > 15)
    throw new Error('round takes a whole number of digits, at most 15');
  const sign = value < 0 ? -1 : 1;
  return sign * shift(Math.round(shift(Math.abs(value), digits)), -digits);
}

function shift(value: number, digits: number): number {
  const [mantissa, exponent = '0'] = String(value).split('e');
  return Number(`${mantissa}e${Number(exponent) + digits}`);
}

/** Every double preserves 15 digits. 17 digits would show its binary storage: 0.1 + 0.2 must be 0.3. */
const SAFE_DIGITS = 15;

/** From here on, JavaScript writes `1e+21`. */
const PLAIN_BELOW = 1e21;

/** A number as a person writes it: whole numbers without an exponent, fractions without artefacts of binary storage. */
function formatNumber(value: number): string {
  // `String(2 ** 60)` ends in `7000`: it has the shortest digits, not the exact ones. `BigInt` also writes `-0` as `0`.
  if (Number.isInteger(value) && Math.abs(value) < PLAIN_BELOW) return String(BigInt(value));
  return String(Number(value.toPrecision(SAFE_DIGITS)));
}
