import { ToolResult } from '../contract/tool-result.js';
import { zonedTime } from './zoned-time.js';

/**
 * What `get_current_time` answers: the local time in the zone for the model, and milliseconds since 1970 as
 * `details.utcTimestamp` for the application.
 *
 * @throws Error `Invalid timezone: X. Current UTC time: <ISO>` where the zone is unknown.
 */
export function currentTime(instant: Date, timezone?: string): ToolResult {
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
