/** Records the same metadata as `@ApiProperty` of `@nestjs/swagger`, which is not installed here. */
export function ApiProperty(options: Readonly<Record<string, unknown>> = {}): PropertyDecorator {
  return (target, key) => {
    const list = 'swagger/apiModelPropertiesArray';
    const keys: readonly string[] = Reflect.getMetadata(list, target) ?? [];
    Reflect.defineMetadata(list, [...keys, `:${String(key)}`], target);
    const type = Reflect.getMetadata('design:type', target, key);
    const before = Reflect.getMetadata('swagger/apiModelProperties', target, key) ?? {};
    Reflect.defineMetadata('swagger/apiModelProperties', { type, ...before, ...options }, target, key);
  };
}

/** The same for `@ApiOperation`. */
export function ApiOperation(options: Readonly<Record<string, unknown>>): MethodDecorator {
  return (_target, _key, { value }: PropertyDescriptor) => {
    Reflect.defineMetadata('swagger/apiOperation', { summary: '', ...options }, value);
  };
}
