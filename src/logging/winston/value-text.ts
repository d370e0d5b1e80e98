import { inspect } from 'node:util';
import { visibleLine } from '../../kernel/visible-text.js';

/** Whether stacks are shown: an error is told by its message, and by its stack only while debugging. */
export interface ValueStyle {
  readonly stacks: boolean;
}

/** The JSON of any value. Errors become objects; what JSON cannot say at all is shown as Node shows it. */
export function jsonOf(value: unknown, style: ValueStyle): string {
  try {
    return visibleLine(JSON.stringify(value, (_key, part) => plainPart(part, style)) ?? 'null');
  } catch {
    // A ring, or a `toJSON` that throws: a log line must never be the reason why a run fails.
    return visibleLine(JSON.stringify(inspect(value, { depth: 3, breakLength: Number.POSITIVE_INFINITY })));
  }
}

/** A value for a line that people read: bare where that is clear, otherwise its JSON. */
export function textOfValue(value: unknown, style: ValueStyle): string {
  if (value instanceof Error) return jsonOf(value.message, style);
  if (typeof value === 'string' && /^[^\s"'=\p{Cc}\p{Cf}]+$/u.test(value)) return value;
  return jsonOf(value, style);
}

function plainPart(part: unknown, { stacks }: ValueStyle): unknown {
  if (typeof part === 'bigint') return String(part);
  if (!(part instanceof Error)) return part;
  const { name, message, stack, cause } = part;
  const { code } = part as { code?: unknown };
  return { name, message, ...(code === undefined ? {} : { code }), ...(stacks ? { stack, cause } : {}) };
}
