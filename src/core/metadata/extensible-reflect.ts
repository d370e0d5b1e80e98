/**
 * The `Reflect` that `reflect-metadata` extends. With `node --frozen-intrinsics`, the global is replaced by an object
 * with the same functions that is not frozen. Import this before `reflect-metadata`.
 */
export const extensibleReflect: object = Object.isExtensible(Reflect) ? Reflect : replaceReflect();

function replaceReflect(): object {
  const value = Object.create(Object.prototype, Object.getOwnPropertyDescriptors(Reflect));
  Object.defineProperty(globalThis, 'Reflect', { value, configurable: true, writable: true });
  return value;
}
