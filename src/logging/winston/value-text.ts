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
  if (value instanceof Error) return jsonOf(messagesOf(value), style);
  if (typeof value === 'string' && /^[^\s"'=\p{Cc}\p{Cf}]+$/u.test(value)) return value;
  return jsonOf(value, style);
}

function plainPart(part: unknown, { stacks }: ValueStyle): unknown {
  if (typeof part === 'bigint') return String(part);
  if (!(part instanceof Error)) return part;
  const { name, message, stack } = part;
  const { code } = part as { code?: unknown };
  const { cause, errors } = within(part);
  return { name, message, code, stack: stacks ? stack : undefined, cause, errors };
}

/** The message of an error with those of its causes, and of all errors that it stands for. */
function messagesOf(thrown: unknown, seen = new Set<unknown>()): string {
  return messageOf(thrown) + messagesWithin(thrown, seen);
}

function messagesWithin(thrown: unknown, seen: Set<unknown>): string {
  // A chain of causes may be a ring.
  if (!(thrown instanceof Error) || seen.has(thrown)) return '';
  seen.add(thrown);
  const { cause, errors = [] } = within(thrown);
  const all = errors.map((one) => messagesOf(one, seen)).join('; ');
  const others = all === '' ? '' : ` (errors: ${all})`;
  if (cause === undefined) return others;
  // Many an error tells its cause itself.
  const isTold = messageOf(thrown).endsWith(messageOf(cause));
  return isTold ? messagesWithin(cause, seen) + others : ` (cause: ${messagesOf(cause, seen)})${others}`;
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
}

function within(error: Error): { readonly cause?: unknown; readonly errors?: readonly unknown[] } {
  const { cause, errors } = error as { cause?: unknown; errors?: unknown };
  return { cause: cause ?? undefined, ...(Array.isArray(errors) ? { errors } : {}) };
}
