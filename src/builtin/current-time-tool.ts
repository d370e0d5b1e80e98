import type { ToolDefinition } from '../contract/tool-definition.js';
import { defineTool } from '../discovery/define-tool.js';
import { checkOptions } from '../errors/invalid-options.js';
import { FUNCTION } from '../kernel/option-rules.js';
import { optionTable } from '../kernel/options.js';
import { currentTime } from './current-time.js';
import { TIME_DESCRIPTION, TIMEZONE_DESCRIPTION } from './descriptions.js';

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
