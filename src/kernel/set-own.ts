/**
 * Sets a field of an object of ours, whatever its name. Plain assignment of `toString` and the like fails where
 * `Object.prototype` is frozen.
 */
export function setOwn(holder: object, key: PropertyKey, value: unknown): void {
  if (key in Object.prototype)
    Object.defineProperty(holder, key, { value, configurable: true, enumerable: true, writable: true });
  else (holder as Record<PropertyKey, unknown>)[key] = value;
}
