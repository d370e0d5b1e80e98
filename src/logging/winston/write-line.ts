import { inspect } from 'node:util';
import { visibleLine, visibleText } from '../../kernel/visible-text.js';
import type { LogEntry } from './log-entry.js';
import { jsonOf, textOfValue, type ValueStyle } from './value-text.js';

/** How entries are laid out. */
export interface LineStyle extends ValueStyle {
  /** One JSON object per line, instead of text. */
  readonly json: boolean;
  /** Time of the entry, ISO 8601. */
  readonly time: string;
}

/**
 * One entry as one line: `<time> <level> <message> key=value …`, or a JSON object with `time`, `level`,
 * `message` and the fields. While debugging, the stacks of errors among the fields follow on lines of their own.
 */
export function writeLine(entry: LogEntry, style: LineStyle): string {
  return style.json ? jsonLine(entry, style) : textLine(entry, style);
}

function jsonLine({ level, message, fields }: LogEntry, style: LineStyle): string {
  const head = { time: style.time, level, message };
  // The head comes first and stays what it is, whatever the fields are called.
  const line = jsonOf({ ...head, ...fields, ...head }, style);
  return line.startsWith('{') ? line : jsonOf({ ...head, fields: JSON.parse(line) }, style);
}

function textLine({ level, message, fields }: LogEntry, style: LineStyle): string {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  const pairs = given.map(([key, value]) => `${visibleLine(key)}=${textOfValue(value, style)}`);
  const line = [style.time, level.padEnd(5), visibleLine(message), ...pairs].join(' ');
  if (!style.stacks) return line;
  const errors = given.map(([, value]) => value).filter((value) => value instanceof Error);
  return [line, ...errors.flatMap((error) => indentedStack(error))].join('\n');
}

/** The stack and those of the causes, as Node shows them. */
function indentedStack(error: Error): readonly string[] {
  return visibleText(inspect(error, { depth: 3 }))
    .split('\n')
    .map((line) => `  ${line}`);
}
