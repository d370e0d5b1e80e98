import 'reflect-metadata';

/** A class with one property `value`, decorated as TypeScript would do it, with the metadata it would emit. */
export function dtoWith(
  decorators: readonly PropertyDecorator[],
  designType?: unknown,
): new () => Record<string, unknown> {
  class Dto {}
  if (designType !== undefined) Reflect.defineMetadata('design:type', designType, Dto.prototype, 'value');
  for (const decorate of [...decorators].reverse()) decorate(Dto.prototype, 'value');
  return Dto as new () => Record<string, unknown>;
}
