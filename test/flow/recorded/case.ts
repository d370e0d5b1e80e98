/** A case whose outcome is recorded. */
export interface RecordedCase {
  /** Unique among all cases. */
  readonly name: string;
  /** Returns the value to record, or a promise of it. Creates new registries and providers each time. */
  run(): unknown;
}

const FIXED_NOW = 1_000;
const FIXED_DATE = Date.UTC(2026, 0, 1);

/** Runs a case with fixed ids and clocks, and returns its outcome as text. */
export async function play({ run }: RecordedCase): Promise<string> {
  let ids = 0;
  const { randomUUID } = crypto;
  const { now } = performance;
  const { now: today } = Date;
  crypto.randomUUID = () => {
    ids += 1;
    return `00000000-0000-4000-8000-${String(ids).padStart(12, '0')}`;
  };
  performance.now = () => FIXED_NOW;
  Date.now = () => FIXED_DATE;
  try {
    return written(await run());
  } catch (thrown) {
    return written({ thrown });
  } finally {
    crypto.randomUUID = randomUUID;
    performance.now = now;
    Date.now = today;
  }
}

/** A value as JSON. Values that JSON cannot express become text that begins with `!`. Keys keep their order. */
export function written(value: unknown): string {
  return JSON.stringify(plain(value, [])) ?? '!undefined';
}

function plain(value: unknown, above: readonly object[]): unknown {
  if (value === undefined) return '!undefined';
  if (typeof value === 'bigint') return `!bigint ${value}`;
  if (typeof value === 'function') return '!function';
  if (typeof value === 'symbol') return `!${String(value)}`;
  if (typeof value === 'number' && !Number.isFinite(value)) return `!${value}`;
  if (Object.is(value, -0)) return '!-0';
  if (typeof value !== 'object' || value === null) return value;
  if (above.includes(value)) return '!circular';
  return plainObject(value, [...above, value]);
}

function plainObject(value: object, above: readonly object[]): unknown {
  const all = (items: Iterable<unknown>) => Array.from(items, (item) => plain(item, above));
  if (Array.isArray(value)) return all(value);
  if (value instanceof Date)
    return `!Date ${Number.isNaN(value.getTime()) ? 'invalid' : value.toISOString()}`;
  if (value instanceof Map) return { '!Map': all(value) };
  if (value instanceof Set) return { '!Set': all(value) };
  if (value instanceof RegExp) return `!${value}`;
  if (ArrayBuffer.isView(value)) return `!bytes ${value.byteLength}`;
  if (value instanceof AbortSignal) return `!signal ${value.aborted ? 'aborted' : 'open'}`;
  if (value instanceof Error) return { '!': value.name, message: value.message, ...extras(value, above) };
  // Absent and `undefined` properties are treated alike.
  const parts = Object.entries(value).filter(([, part]) => part !== undefined);
  const entries = parts.map(([key, part]) => [key, plain(part, above)] as const);
  const name = classOf(value);
  return Object.fromEntries(name === undefined ? entries : [['!', name], ...entries]);
}

/** The properties of an error besides its name and message. */
function extras(error: Error, above: readonly object[]): object {
  const own: [string, unknown][] = Object.entries(error).filter(([key]) => key !== 'name');
  const cause: [string, unknown][] = error.cause === undefined ? [] : [['cause', error.cause]];
  return Object.fromEntries([...own, ...cause].map(([key, part]) => [key, plain(part, above)]));
}

function classOf(value: object): string | undefined {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null) return undefined;
  const name = (prototype as { constructor?: { name?: string } }).constructor?.name;
  return name === 'Object' ? undefined : name;
}
