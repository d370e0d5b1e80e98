import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import { plainToInstance, Transform, Type } from 'class-transformer';
import {
  IsDefined,
  IsInt,
  IsNotEmpty,
  IsOptional,
  IsString,
  Length,
  ValidateBy,
  ValidateNested,
  validate,
} from 'class-validator';
import { describeClass, discoverTools, type JsonObject, Param, ToolRegistry } from 'toolwright';
import { dtoToolset } from './dto-toolset.js';

class Line {
  @IsInt() count = 1;
}
class Accepted {
  @Length(2, 5) value = 'abc';
}
class Defined {
  @IsDefined() value = 'abc';
}
class Listed {
  @IsString({ each: true }) value = ['a', 'b'];
}
class Empty {
  @ValidateNested({ each: true }) @Type(() => Line) value: Line[] = [];
}
class Missing {
  @IsOptional() @IsString() value: string | null = null;
}
class Asked {
  @ValidateBy({ name: 'asked', validator: { validate: (value) => value === 'abc' } }) value = 'abc';
}
class Short {
  @Length(2, 5) value = '';
}
class Blank {
  @IsNotEmpty() value = '';
}
class Nothing {
  @IsDefined() value = null;
}
class ListedWrongly {
  @IsString({ each: true }) value = ['a', 1];
}
class Nested {
  @ValidateNested() @Type(() => Line) value: Line = { count: 1 };
}
class Refused {
  @ValidateBy({ name: 'refused', validator: { validate: (value) => value === 'abc' } }) value = '';
}
class Explicit {
  @Param({ schema: { type: 'string' } }) @Length(2, 5) value = 'abc';
}
class Doubled {
  @Transform(({ value }) => value * 2) @IsInt() value = 5;
}

const text = { type: 'string' };
describeClass(Line, { properties: { count: { optional: true, schema: { type: 'number', default: 1 } } } });

/** A tool that takes the class, whose generated description contains the value of its initializer. */
function toolOf(dto: new () => { value: unknown }, schema: object) {
  const taken: unknown[] = [];
  const initial = new dto().value;
  describeClass(dto, {
    properties: { value: { optional: true, schema: { ...schema, default: initial } } },
  });
  const tools = new ToolRegistry().register(
    ...discoverTools({ toolsets: [dtoToolset(dto, (input) => taken.push(input))] }),
  );
  return { tools, taken, parameters: tools.get('take')?.parameters as JsonObject, initial };
}

async function isPlainlyAccepted(dto: new () => object): Promise<boolean> {
  return (await validate(plainToInstance(dto, {}))).length === 0;
}

describe('a property with rules and an initializer', () => {
  test.each([
    ['text that fits its rules', Accepted, text],
    ['any value with @IsDefined', Defined, text],
    ['an array whose items fit their rules', Listed, { type: 'array', items: text }],
    ['an empty array of objects', Empty, { type: 'array', items: { instanceOf: Line } }],
    ['null for an optional property', Missing, { type: ['string', 'null'] }],
    ['a value that a custom rule accepts', Asked, text],
  ])('is optional with its value as default: %s', async (_, dto, schema) => {
    const { tools, taken, parameters, initial } = toolOf(dto, schema);
    expect(parameters).toMatchObject({ properties: { value: { default: initial } }, required: [] });
    expect((await tools.execute('take', {})).isError).toBe(false);
    expect(taken).toStrictEqual([Object.assign(new dto(), { value: initial })]);
    expect(await isPlainlyAccepted(dto)).toBe(true);
  });

  test.each([
    ['text that breaks its rules', Short, text],
    ['an empty text', Blank, text],
    ['null with @IsDefined', Nothing, { type: ['string', 'null'] }],
    ['an array with an item that breaks its rules', ListedWrongly, { type: 'array', items: {} }],
    ['an object that is not an instance', Nested, { instanceOf: Line }],
  ])('is required if class-validator would refuse its value: %s', async (_, dto, schema) => {
    const { tools, taken, parameters } = toolOf(dto, schema);
    expect(parameters.required).toEqual(['value']);
    expect(parameters.properties).not.toHaveProperty('value.default');
    expect((await tools.execute('take', {})).forLLM).toContain('value: is required');
    expect(taken).toEqual([]);
    expect(await isPlainlyAccepted(dto)).toBe(false);
  });

  test('is validated by a custom rule at call time', async () => {
    const { tools, taken } = toolOf(Refused, text);
    expect((await tools.execute('take', {})).isError).toBe(true);
    expect(taken).toEqual([]);
    expect(await isPlainlyAccepted(Refused)).toBe(false);
  });

  test('is required if it has an explicit schema without a default', () => {
    const { parameters } = toolOf(Explicit, text);
    expect(parameters).toMatchObject({ properties: { value: { type: 'string' } }, required: ['value'] });
    expect(parameters.properties).not.toHaveProperty('value.default');
  });

  test('is not transformed if its value comes from the initializer', async () => {
    const { tools, taken, parameters } = toolOf(Doubled, { type: 'number' });
    expect(parameters).toEqual({ type: 'object', properties: { value: { type: 'integer' } }, required: [] });
    await tools.execute('take', {});
    await tools.execute('take', { value: 5 });
    expect(taken).toStrictEqual([5, 10].map((value) => Object.assign(new Doubled(), { value })));
    expect(plainToInstance(Doubled, {})).toStrictEqual(taken[0]);
  });
});
