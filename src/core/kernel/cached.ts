/** The value stored for a key; it is created and stored on first use. */
export function cached<Key, Value>(
  cache: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  create: (key: Key) => Value,
): Value {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const created = create(key);
  cache.set(key, created);
  return created;
}
