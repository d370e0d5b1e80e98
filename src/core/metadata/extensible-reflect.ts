/**
 * `Reflect`, where `reflect-metadata` can put its functions: with `node --frozen-intrinsics`, the global is made
 * to be an object of the same functions that is not frozen. To be imported before `reflect-metadata`.
 */
export const extensibleReflect: object = Object.isExtensible(Reflect) ? Reflect : replaceReflect();

function replaceReflect(): object {
  const value = Object.create(Object.prototype, Object.getOwnPropertyDescriptors(Reflect));
  Object.defineProperty(globalThis, 'Reflect', { value, configurable: true, writable: true });
  return value;
}
