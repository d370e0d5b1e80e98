/** JSON text that does not depend on the order of keys, which databases may change. */
export function canonicalJson(value: unknown): string {
  return isCanonical(value) ? JSON.stringify(value) : written(value);
}

/** Whether JSON writes a value canonically as it is: most arguments have a key or two. */
function isCanonical(value: unknown): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true;
    case 'number':
      return Number.isFinite(value);
    case 'object':
      return value === null || (Array.isArray(value) ? value.every(isCanonical) : areSorted(value));
    default:
      return false;
  }
}

function areSorted(value: object): boolean {
  if ('toJSON' in value) return false;
  let last: string | undefined;
  for (const key of Object.keys(value)) {
    if (last !== undefined && key < last) return false;
    if (!isCanonical((value as Readonly<Record<string, unknown>>)[key])) return false;
    last = key;
  }
  return true;
}

function written(value: unknown): string {
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : 'null';
  if (typeof value === 'bigint') return `"${value}"`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map((item) => written(item ?? null)).join(',')}]`;
  let members = '';
  for (const key of Object.keys(value).sort()) {
    const member = (value as Readonly<Record<string, unknown>>)[key];
    if (member === undefined) continue;
    members += `${members === '' ? '' : ','}${JSON.stringify(key)}:${written(member)}`;
  }
  return `{${members}}`;
}
