import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import { Exclude, Expose, Transform, Type } from 'class-transformer';
import {
  Allow,
  IsArray,
  IsDate,
  IsEnum,
  IsIn,
  IsInt,
  IsNotEmpty,
  IsOptional,
  IsString,
  Length,
  Matches,
  Max,
  MaxLength,
  Min,
  MinLength,
  ValidateIf,
  ValidateNested,
} from 'class-validator';
import { Param } from 'toolwright/decorators';
import { classModel } from '../../../src/tools/schema/class-model.js';
import { writeParameters } from '../../../src/tools/schema/write-schema.js';

enum Color {
  Red = 'red',
}

function schemaOf(target: new () => object, groups?: readonly string[]) {
  const written = writeParameters({ class: target, groups });
  if (!written.ok) throw new Error(written.faults.map(({ problem }) => problem).join('; '));
  return written.schema;
}

function modelOf(target: new () => object, groups?: readonly string[]) {
  const read = classModel(target, groups);
  if (!read.ok) throw new Error(read.faults.map(({ problem }) => problem).join('; '));
  return read.model;
}

describe('how a class becomes a schema', () => {
  test('the constructor is never called', () => {
    let calls = 0;
    class Counted {
      @IsInt() n = 1;
      constructor() {
        calls += 1;
      }
    }
    schemaOf(Counted);
    expect(calls).toBe(0);
  });

  test('the model is cached by class and groups, never by name', () => {
    const make = (decorate: PropertyDecorator) => {
      class Args {}
      decorate(Args.prototype, 'value');
      return Args;
    };
    const [One, Other] = [make(IsInt()), make(IsString())];
    expect(modelOf(One)).toBe(modelOf(One));
    expect(modelOf(One, ['a', 'b'])).toBe(modelOf(One, ['b', 'a']));
    expect(modelOf(One).properties[0]?.type).toEqual({ kind: 'scalar', name: 'integer' });
    expect(modelOf(Other).properties[0]?.type).toEqual({ kind: 'scalar', name: 'string' });
  });

  test('@Param works without rules and overrides them keyword by keyword', () => {
    class Dto {
      @Param('Plain') name!: string;
      @Param({ type: () => Number, maximum: 5 }) @Max(10) @Min(0) n!: number;
      @Param({ required: false, items: () => String }) tags!: string[];
      @Param({ default: 'x' }) mode!: string;
      @Param({ name: 'from_date' }) from!: Date;
    }
    expect(schemaOf(Dto)).toEqual({
      type: 'object',
      properties: {
        name: { type: 'string', description: 'Plain' },
        n: { type: 'number', minimum: 0, maximum: 5 },
        tags: { type: 'array', items: { type: 'string' } },
        mode: { type: 'string', default: 'x' },
        from_date: { type: 'string', format: 'date-time' },
      },
      required: ['name', 'n', 'from_date'],
    });
    expect(modelOf(Dto).properties.at(-1)).toMatchObject({ name: 'from_date', key: 'from' });
  });

  test('an explicit schema of a property overrides its rules, which still run at call time', () => {
    class Dto {
      @Param({ schema: { type: 'string', pattern: '^x' } }) @MaxLength(3) value!: string;
    }
    expect(schemaOf(Dto).properties).toEqual({ value: { type: 'string', pattern: '^x' } });
    expect(modelOf(Dto).remaining).not.toBe('none');
  });

  test('arrays get their item type from each, @Type or @Param', () => {
    class Dto {
      @IsString({ each: true }) @MaxLength(5, { each: true }) @IsNotEmpty({ each: true }) words!: string[];
      @IsEnum(Color, { each: true }) colors!: Color[];
      @Type(() => Number) numbers!: number[];
      @IsDate({ each: true }) dates!: Date[];
      @IsString({ each: true }) set!: Set<string>;
      @IsInt({ each: true }) map!: Map<string, number>;
    }
    expect(schemaOf(Dto).properties).toEqual({
      words: { type: 'array', items: { type: 'string', maxLength: 5, minLength: 1 } },
      colors: { type: 'array', items: { type: 'string', enum: ['red'] } },
      numbers: { type: 'array', items: { type: 'number' } },
      dates: { type: 'array', items: { type: 'string', format: 'date-time' } },
      set: { type: 'array', items: { type: 'string' } },
      map: { type: 'object', additionalProperties: { type: 'integer' } },
    });
  });

  test('an array whose item type is unknown is an error', () => {
    class Dto {
      @IsArray() things!: unknown[];
    }
    expect(classModel(Dto)).toMatchObject({ ok: false, faults: [{ property: 'things' }] });
  });

  test('of several bounds the strictest applies, and all patterns apply', () => {
    class Dto {
      @Length(1, 10) @MinLength(3) @MaxLength(20) @Matches(/^a/) @Matches(/z$/) value!: string;
    }
    expect(schemaOf(Dto).properties?.value).toEqual({
      type: 'string',
      minLength: 3,
      maxLength: 10,
      pattern: '^a',
      allOf: [{ pattern: 'z$' }],
    });
  });
});

test('a @Type that resolves to nothing is an error that mentions import cycles', () => {
  class Dto {
    @Type(() => undefined as never) one!: unknown;
    @Type(() => {
      throw new ReferenceError('Cannot access X before initialization');
    })
    two!: unknown;
  }
  const read = classModel(Dto);
  expect(read.ok ? [] : read.faults.map(({ property, problem }) => [property, problem])).toEqual([
    ['one', 'property Dto.one: its type reference gave undefined'],
    ['two', 'property Dto.two: its type reference threw: Cannot access X before initialization'],
  ]);
});

test('two enum rules allow the values of both, and class-validator also runs', () => {
  class Dto {
    @IsIn(['a', 'b']) @IsIn(['b', 'c']) both!: string;
    @IsIn(['a']) @IsIn(['z']) none!: string;
  }
  expect(schemaOf(Dto).properties).toEqual({
    both: { type: 'string', enum: ['b'] },
    none: { type: 'string', enum: ['a'] },
  });
  expect(modelOf(Dto).remaining).not.toBe('none');
});

describe('class-transformer', () => {
  test('@Expose renames a property, and @Exclude removes it', () => {
    class Dto {
      @IsString() @Expose({ name: 'full_name' }) fullName!: string;
      @IsString() @Exclude() secret!: string;
      @IsString() @Exclude({ toPlainOnly: true }) password!: string;
      @IsString() @Expose({ name: 'out', toPlainOnly: true }) inside!: string;
      @IsString() @Expose({ groups: ['admin'] }) role!: string;
    }
    expect(schemaOf(Dto).required).toEqual(['full_name', 'password', 'inside']);
    expect(modelOf(Dto).properties[0]).toMatchObject({ name: 'full_name', key: 'fullName' });
  });

  test('@Exclude on the class leaves only exposed properties', () => {
    @Exclude()
    class Dto {
      @IsString() hidden!: string;
      @IsString() @Expose() shown!: string;
    }
    expect(schemaOf(Dto).required).toEqual(['shown']);
  });

  test('class-validator also validates the value after a @Transform', () => {
    class Dto {
      @Transform(({ value }) => String(value).trim()) @MaxLength(5) value!: string;
    }
    expect(schemaOf(Dto).properties).toEqual({ value: { type: 'string', maxLength: 5 } });
    expect(modelOf(Dto).remaining).not.toBe('none');
  });
});

describe('inheritance', () => {
  class Base {
    @IsString() id!: string;
    @MaxLength(5) @Param('The name') name!: string;
  }
  class Sub extends Base {
    @IsInt() extra!: number;
    @MinLength(1) declare name: string;
  }

  test('properties of the base class come first, and a subclass does not change its base', () => {
    expect(schemaOf(Sub).required).toEqual(['id', 'name', 'extra']);
    expect(schemaOf(Base).required).toEqual(['id', 'name']);
    expect(schemaOf(Base).properties?.name).toEqual({
      type: 'string',
      description: 'The name',
      maxLength: 5,
    });
  });

  test('rules of a class replace those of its base on the same property, as in class-validator', () => {
    expect(schemaOf(Sub).properties?.name).toEqual({ type: 'string', description: 'The name', minLength: 1 });
  });
});

describe('optional and conditional', () => {
  class Dto {
    @IsString() kind!: string;
    @ValidateIf((dto: Dto) => dto.kind === 'a') @IsString() @MinLength(2) value!: string;
    @IsOptional() @IsInt() n?: number;
    @Allow() note!: string;
    @IsInt({ validateIf: () => false }) maybe!: number;
  }

  test('@ValidateIf drops the constraints, allows null and absence, and runs at call time', () => {
    expect(schemaOf(Dto)).toEqual({
      type: 'object',
      properties: {
        kind: { type: 'string' },
        value: { type: ['string', 'null'] },
        n: { type: 'integer' },
        note: { type: 'string' },
        maybe: { type: 'number' },
      },
      required: ['kind'],
    });
    expect(modelOf(Dto).remaining).not.toBe('none');
  });
});

describe('groups, as class-validator reads them', () => {
  class Dto {
    @IsInt({ groups: ['update'] }) id!: number;
    @MaxLength(5, { groups: ['create'] }) @MinLength(1, { always: true }) @IsIn(['x']) name!: string;
    @IsString() free!: string;
  }

  test('without groups, all rules apply', () => {
    expect(schemaOf(Dto).required).toEqual(['id', 'name', 'free']);
    expect(schemaOf(Dto).properties?.name).toMatchObject({ enum: ['x'] });
  });

  test('with groups, their rules and rules with always apply; a property without rules is optional', () => {
    expect(schemaOf(Dto, ['create'])).toEqual({
      type: 'object',
      properties: {
        id: { type: 'number' },
        name: { type: 'string', minLength: 1, maxLength: 5 },
        free: { type: 'string' },
      },
      required: ['name'],
    });
  });

  test('rules of other groups give the type if nothing else does', () => {
    class Loose {
      @IsInt({ groups: ['update'] }) @Max(5, { groups: ['update'] }) value!: number | null;
    }
    expect(schemaOf(Loose, ['create'])).toEqual({
      type: 'object',
      properties: { value: { type: 'integer' } },
      required: [],
    });
  });

  test('nested classes use the same groups', () => {
    class Outer {
      @ValidateNested({ always: true }) inner!: Dto;
    }
    expect(schemaOf(Outer, ['update']).properties?.inner?.required).toEqual(['id', 'name']);
  });
});
