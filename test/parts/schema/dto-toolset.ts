import 'reflect-metadata';
import { type ClassType, Tool, Toolset } from 'toolwright';

/** A toolset with a tool `take` that accepts the class and passes its argument on. */
export function dtoToolset(dto: ClassType, take: (input: object) => void): ClassType {
  class Tools {
    take(input: object) {
      take(input);
    }
  }
  Reflect.defineMetadata('design:paramtypes', [dto], Tools.prototype, 'take');
  const method = Object.getOwnPropertyDescriptor(Tools.prototype, 'take');
  Reflect.decorate([Tool('x') as MethodDecorator], Tools.prototype, 'take', method);
  Reflect.decorate([Toolset() as ClassDecorator], Tools);
  return Tools;
}
