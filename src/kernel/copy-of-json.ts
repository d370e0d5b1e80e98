/**
 * A copy of what was sent, which stays as it is whatever is done to the original. What is nested too deep to be
 * copied is given as it is.
 */
export function copyOfJson(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  try {
    return copy(value);
  } catch {
    return value;
  }
}

function copy(value: object): object {
  return Array.isArray(value) ? value.map(copyOfPart) : copyOfFields(value);
}

/** A field that is there already takes any value, whatever its name. */
function copyOfFields(value: object): object {
  const copied: Record<string, unknown> = { ...value };
  for (const key in copied) {
    const part = copied[key];
    if (typeof part === 'object' && part !== null) copied[key] = copy(part);
  }
  return copied;
}

function copyOfPart(part: unknown): unknown {
  return typeof part === 'object' && part !== null ? copy(part) : part;
}
