import { Param, Tool } from '../../decorators/index.js';
import type { ToolDefinition } from '../contract/tool.js';
import { ToolResult } from '../contract/tool-result.js';
import { defineTool } from '../discovery/define-tool.js';
import { checkOptions } from '../errors/author-fault.js';
import { FUNCTION, optionTable } from '../kernel/options.js';
import { evaluateExpression, formatNumber } from './evaluate-expression.js';

/** Said to the model of `calculate`, in both of its forms. */
const CALCULATE_DESCRIPTION =
  'Calculate an arithmetic expression. Knows + - * / % ^, parentheses, pi, e and functions such as sqrt, round, min, max, sin, log (natural) and log10.';

const EXPRESSION_DESCRIPTION = 'Arithmetic expression, e.g. 2 + 2 * 3 or round(sqrt(2), 3)';

/** Said to the model of `get_current_time`, in both of its forms. */
const TIME_DESCRIPTION =
  'Get the current date and time. The answer is ISO 8601 with the offset from UTC of the time zone.';

const TIMEZONE_DESCRIPTION = 'IANA time zone, e.g. America/New_York or UTC; default: the zone of the machine';

// The door of the decorators loads `reflect-metadata`, without which this class would have no types.

/**
 * The built-in tools as a toolset: `calculate` and `get_current_time`. A subclass that overrides `now` has
 * a clock of its own.
 *
 * @example
 * ```ts
 * tools.register(...discoverTools({ toolsets: [BuiltinTools, ShopTools] }));
 * ```
 */
// No @Toolset: a bare `discoverTools()` must not offer what was only imported.
export class BuiltinTools {
  /** The value of an arithmetic expression as text; throws an Error that says why there is none. */
  @Tool({ description: CALCULATE_DESCRIPTION, annotations: { title: 'Calculate', readOnly: true } })
  calculate(@Param({ description: EXPRESSION_DESCRIPTION, required: true }) expression: string): string {
    return formatNumber(evaluateExpression(expression));
  }

  /** The time in a zone; throws an Error where the zone is unknown. */
  @Tool({ description: TIME_DESCRIPTION, annotations: { title: 'Current time', readOnly: true } })
  getCurrentTime(
    @Param({ description: TIMEZONE_DESCRIPTION, required: false }) timezone?: string,
  ): ToolResult {
    return currentTime(this.now(), timezone);
  }

  protected now(): Date {
    return new Date();
  }
}

/**
 * The tool `calculate`, argument `{ expression: string }`: evaluates arithmetic without running code. Its
 * result is the number as text; what cannot be evaluated is an error result that says why.
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

/** What {@link createCurrentTimeTool} is made from. */
export interface CurrentTimeOptions {
  /** The clock; default: the machine's. */
  readonly now?: () => Date;
}

const OPTIONS = optionTable<CurrentTimeOptions>('createCurrentTimeTool', { now: FUNCTION });

/**
 * A tool `get_current_time` with a clock of your own, for tests and simulations.
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
 * What `get_current_time` answers: the local time in the zone for the model, and milliseconds since 1970 as
 * `details.utcTimestamp` for the application.
 *
 * @throws Error `Invalid timezone: X. Current UTC time: <ISO>` where the zone is unknown.
 */
function currentTime(instant: Date, timezone?: string): ToolResult {
  // Models send '' for an argument that they mean to leave out.
  const zone = timezone?.trim() || undefined;
  return new ToolResult({ forLLM: timeIn(instant, zone), details: { utcTimestamp: instant.getTime() } });
}

function timeIn(instant: Date, zone: string | undefined): string {
  try {
    return zonedTime(instant, zone);
  } catch (cause) {
    if (zone === undefined || !(cause instanceof RangeError)) throw cause;
    const utc = `${instant.toISOString().slice(0, 19)}Z`;
    throw new Error(`Invalid timezone: ${zone.slice(0, 80)}. Current UTC time: ${utc}`, { cause });
  }
}

/**
 * An instant as local time in a zone, ISO 8601 with offset and without fractions of a second:
 * `2024-01-15T10:30:00-05:00`.
 *
 * @param timezone IANA name; default: the zone of the machine.
 * @throws RangeError where the zone is unknown.
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
