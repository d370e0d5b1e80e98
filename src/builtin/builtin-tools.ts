// The door of the decorators loads `reflect-metadata`, without which this class would have no types.
import { Param, Tool } from '../../decorators/index.js';
import type { ToolResult } from '../contract/tool-result.js';
import { currentTime } from './current-time.js';
import {
  CALCULATE_DESCRIPTION,
  EXPRESSION_DESCRIPTION,
  TIME_DESCRIPTION,
  TIMEZONE_DESCRIPTION,
} from './descriptions.js';
import { evaluateExpression } from './evaluate-expression.js';
import { formatNumber } from './format-number.js';

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
