import { visibleText } from '../kernel/visible-text.js';

const MAX_TEXT = 2000;
const MAX_ITEMS = 20;
/** Causes of causes: a chain may be a ring. */
const MAX_CAUSES = 5;

/** A field of an entry as it may be logged: of bounded size, and with nothing hidden in its texts. */
export function boundField(value: unknown): unknown {
  try {
    return bound(value);
  } catch {
    return 'it cannot be shown: it throws when it is looked at';
  }
}

function bound(value: unknown): unknown {
  if (typeof value === 'string') return boundText(value);
  if (Array.isArray(value) && value.length > MAX_ITEMS)
    return [...value.slice(0, MAX_ITEMS).map(boundField), `… ${value.length - MAX_ITEMS} more`];
  if (Array.isArray(value)) return value.map(boundField);
  return value instanceof Error ? boundError(value, MAX_CAUSES) : value;
}

function boundText(text: string): string {
  const shown = visibleText(text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) : text);
  return text.length > MAX_TEXT ? `${shown}… (${text.length - MAX_TEXT} more characters)` : shown;
}

/** The error itself where its texts may be logged as they are; otherwise one that has it for its prototype. */
function boundError(error: Error, causes: number): Error {
  const told: PropertyDescriptorMap = {};
  for (const part of ['message', 'stack'] as const) {
    const text: unknown = error[part];
    const bounded = typeof text === 'string' ? boundText(text) : text;
    if (bounded !== text) told[part] = { value: bounded, configurable: true, writable: true };
  }
  const { cause } = error;
  const bounded = causes > 0 ? boundCause(cause, causes - 1) : undefined;
  if (bounded !== cause) told.cause = { value: bounded, configurable: true, writable: true };
  return Object.keys(told).length === 0 ? error : Object.create(error, told);
}

function boundCause(cause: unknown, causes: number): unknown {
  return cause instanceof Error ? boundError(cause, causes) : boundField(cause);
}
