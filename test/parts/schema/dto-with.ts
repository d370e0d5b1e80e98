import 'reflect-metadata';

/** A class with a decorated property `value` and the metadata that TypeScript would emit for it. */
export function dtoWith(
  decorators: readonly PropertyDecorator[],
  designType?: unknown,
): new () => Record<string, unknown> {
  class Dto {}
  if (designType !== undefined) Reflect.defineMetadata('design:type', designType, Dto.prototype, 'value');
  for (const decorate of [...decorators].reverse()) decorate(Dto.prototype, 'value');
  return Dto as new () => Record<string, unknown>;
}
