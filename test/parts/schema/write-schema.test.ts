import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import { Expose, Type } from 'class-transformer';
import {
  ArrayMinSize,
  IsIn,
  IsInt,
  IsNumber,
  IsOptional,
  IsString,
  Max,
  MaxLength,
  Min,
  ValidateNested,
} from 'class-validator';
import { Param } from 'toolwright/decorators';
import type { PropertyModel, ValueType } from '../../../src/tools/schema/value-type.js';
import { writeParameters } from '../../../src/tools/schema/write-schema.js';
import { compileSchema } from './compile-schema.js';

class Line {
  @IsString() @MaxLength(20) sku!: string;
  @IsInt() @Min(1) @Max(99) @Param('How many') quantity!: number;
}

class Order {
  @ValidateNested({ each: true }) @Type(() => Line) @ArrayMinSize(1) lines!: Line[];
  @ValidateNested() @Type(() => Line) main!: Line;
  @IsOptional() @IsIn(['post', 'air']) by?: string;
}

class Folder {
  @IsString() name!: string;
  @IsOptional() @ValidateNested({ each: true }) @Type(() => Folder) children?: Folder[];
}

class Circle {
  @IsNumber() radius!: number;
}

class Group {
  @IsString() kind!: string;
  @ValidateNested({ each: true })
  @Type(() => Object, {
    discriminator: {
      property: 'kind',
      subTypes: [
        { name: 'circle', value: Circle },
        { name: 'group', value: Group },
      ],
    },
    keepDiscriminatorProperty: true,
  })
  shapes!: (Circle | Group)[];
}

const property = (name: string, type: ValueType, more: Partial<PropertyModel> = {}): PropertyModel => ({
  name,
  type,
  required: true,
  nullable: false,
  keywords: {},
  ...more,
});

const classType = (target: new () => object): ValueType => ({ kind: 'class', class: target });

describe('parameters of a tool', () => {
  test('a tool without parameters gets an object without properties', () => {
    expect(writeParameters({ properties: [] })).toEqual({
      ok: true,
      schema: { type: 'object', properties: {}, required: [] },
    });
  });

  test('add(a, b) gets two required integers in order', () => {
    const integer: ValueType = { kind: 'scalar', name: 'integer' };
    const written = writeParameters({ properties: [property('a', integer), property('b', integer)] });
    expect(JSON.stringify(written.ok && written.schema)).toBe(
      '{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}',
    );
  });

  test('a property called __proto__ is an ordinary property', () => {
    const written = writeParameters({ properties: [property('__proto__', { kind: 'any' })] });
    expect(written.ok && Object.keys(written.schema.properties ?? {})).toEqual(['__proto__']);
  });
});

describe('DTO classes', () => {
  const line = {
    type: 'object',
    properties: {
      sku: { type: 'string', maxLength: 20 },
      quantity: { type: 'integer', description: 'How many', minimum: 1, maximum: 99 },
    },
    required: ['sku', 'quantity'],
  };

  test('nested classes are inlined, without additionalProperties', () => {
    expect(writeParameters({ class: Order })).toEqual({
      ok: true,
      schema: {
        type: 'object',
        properties: {
          lines: { type: 'array', items: line, minItems: 1 },
          main: line,
          by: { type: 'string', enum: ['post', 'air'] },
        },
        required: ['lines', 'main'],
      },
    });
  });

  test('the same class gives the same output every time', () => {
    expect(JSON.stringify(writeParameters({ class: Order }))).toBe(
      JSON.stringify(writeParameters({ class: Order })),
    );
  });

  test('a recursive class gets a definition under its name', () => {
    const folder = {
      type: 'object',
      properties: {
        name: { type: 'string' },
        children: { type: 'array', items: { $ref: '#/$defs/Folder' } },
      },
      required: ['name'],
    };
    const written = writeParameters({ class: Folder });
    expect(written).toEqual({ ok: true, schema: { ...folder, $defs: { Folder: folder } } });
    const fits = compileSchema(written.ok ? written.schema : {});
    expect(fits({ name: 'a', children: [{ name: 'b', children: [] }] })).toBe(true);
    expect(fits({ name: 'a', children: [{ children: [] }] })).toBe(false);
  });

  test('two recursive classes with the same name get numbered definitions', () => {
    const make = (key: 'left' | 'right') => {
      class Node {}
      Type(() => Node)(Node.prototype, key);
      IsOptional()(Node.prototype, key);
      return Node;
    };
    const [First, Second] = [make('left'), make('right')];
    const written = writeParameters({
      properties: [property('a', classType(First)), property('b', classType(Second))],
    });
    expect(written.ok && written.schema.properties).toEqual({
      a: { $ref: '#/$defs/Node' },
      b: { $ref: '#/$defs/Node2' },
    });
    expect(written.ok && Object.keys(written.schema.$defs?.Node2?.properties ?? {})).toEqual(['right']);
  });

  test('classes with the same name that are not recursive are not merged', () => {
    const make = (decorate: PropertyDecorator) => {
      class Input {}
      decorate(Input.prototype, 'value');
      return Input;
    };
    const properties = [property('a', classType(make(IsInt()))), property('b', classType(make(IsString())))];
    const written = writeParameters({ properties: properties });
    expect(written).toMatchObject({
      schema: {
        properties: {
          a: { properties: { value: { type: 'integer' } } },
          b: { properties: { value: { type: 'string' } } },
        },
      },
    });
  });

  test('a discriminated union is anyOf with a required constant tag', () => {
    const written = writeParameters({ class: Group });
    const fits = compileSchema(written.ok ? written.schema : {});
    expect(written).toMatchObject({
      schema: {
        properties: {
          shapes: {
            items: {
              anyOf: [
                {
                  type: 'object',
                  properties: { kind: { type: 'string', const: 'circle' }, radius: { type: 'number' } },
                  required: ['kind', 'radius'],
                },
                { $ref: '#/$defs/Group' },
              ],
            },
          },
        },
        $defs: { Group: { properties: { kind: { const: 'group' } }, required: ['kind', 'shapes'] } },
      },
    });
    expect(
      fits({
        kind: 'x',
        shapes: [
          { kind: 'circle', radius: 1 },
          { kind: 'group', shapes: [] },
        ],
      }),
    ).toBe(true);
    expect(fits({ kind: 'x', shapes: [{ kind: 'square', radius: 1 }] })).toBe(false);
    expect(fits({ kind: 'x', shapes: [{ radius: 1 }] })).toBe(false);
  });

  test('nullable objects and unions get null as a second type or branch', () => {
    const tagged: ValueType = {
      kind: 'tagged',
      property: 'k',
      keepProperty: false,
      variants: [{ tag: 'c', class: Circle }],
    };
    const written = writeParameters({
      properties: [
        property('o', classType(Circle), { nullable: true }),
        property('u', tagged, { nullable: true }),
        property('f', classType(Folder), { nullable: true }),
      ],
    });
    expect(written).toMatchObject({
      schema: {
        properties: {
          o: { type: ['object', 'null'] },
          u: { anyOf: [{ type: 'object' }, { type: 'null' }] },
          f: { anyOf: [{ $ref: '#/$defs/Folder' }, { type: 'null' }] },
        },
      },
    });
  });

  test('all errors of all classes are reported together, with class and property', () => {
    class Inner {
      @Expose() odd!: unknown;
    }
    class Outer {
      @ValidateNested() inner!: Inner;
      @IsOptional() list!: string[];
      @IsOptional() empty!: Promise<string>;
    }
    const written = writeParameters({ class: Outer });
    expect(written.ok ? [] : written.faults.map(({ property: name, problem }) => [name, problem])).toEqual([
      [
        'list',
        expect.stringMatching(/^property Outer.list: its type is unknown \(the metadata contains Array\)/),
      ],
      ['empty', expect.stringMatching(/^property Outer.empty: its type is unknown/)],
    ]);
    const nested = writeParameters({ properties: [property('inner', classType(Inner))] });
    expect(nested.ok ? [] : nested.faults.map(({ property: name }) => name)).toEqual(['inner.odd']);
  });

  test('a class without any metadata is an error', () => {
    class Bare {
      name = 'x';
    }
    expect(writeParameters({ class: Bare })).toMatchObject({
      ok: false,
      faults: [{ problem: 'the properties of class Bare are unknown' }],
    });
  });
});

describe('explicit schemas inside larger ones', () => {
  test('a schema without references is inlined unchanged', () => {
    const schema = { type: 'object', properties: { b: {}, a: {} }, $defs: { Unused: {} } };
    const written = writeParameters({ properties: [property('it', { kind: 'schema', schema })] });
    expect(JSON.stringify(written.ok && written.schema.properties?.it)).toBe(JSON.stringify(schema));
  });

  test('references inside a schema still resolve to the same target', () => {
    const tree = (value: string) => ({
      type: 'object',
      properties: { value: { type: value }, next: { $ref: '#/$defs/Tree' } },
      required: ['value'],
      $defs: { Tree: { type: 'object', properties: { value: { type: value }, next: { $ref: '#' } } } },
    });
    const written = writeParameters({
      properties: [
        property('a', { kind: 'schema', schema: tree('string') }),
        property('b', { kind: 'schema', schema: tree('number') }),
      ],
    });
    const fits = compileSchema(written.ok ? written.schema : {});
    const chain = (value: unknown) => ({ value, next: { value, next: { value } } });
    expect(fits({ a: chain('x'), b: chain(1) })).toBe(true);
    expect(fits({ a: chain('x'), b: { value: 1, next: { value: 'x' } } })).toBe(false);
    expect(fits({ a: { value: 'x', next: { next: {} } }, b: chain(1) })).toBe(false);
  });
});
