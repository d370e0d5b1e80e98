import 'reflect-metadata';
import { expect, test } from '@jest/globals';
import { Exclude, Expose, Transform, Type } from 'class-transformer';
import * as cv from 'class-validator';
import {
  classTransforms,
  validateInstance,
  validationRules,
} from '../../../src/tools/validators/dto-rules.js';

class Base {
  @cv.IsInt() @cv.Min(1) n!: number;
  @cv.IsOptional() @cv.IsString({ each: true, groups: ['a'] }) tags?: string[];
}

class Sub extends Base {
  @cv.Max(9) declare n: number;
}

test('validationRules returns rules with their roles, without those that a subclass replaces', () => {
  const names = (target: new () => object) =>
    [...validationRules(target)].map(([property, rules]) => [
      property,
      rules.map(({ role, name }) => `${role}:${name}`),
    ]);
  expect(names(Base)).toEqual([
    ['n', ['custom:min', 'custom:isInt']],
    ['tags', ['custom:isString', 'conditional:isOptional']],
  ]);
  expect(names(Sub)).toEqual([
    ['n', ['custom:max']],
    ['tags', ['custom:isString', 'conditional:isOptional']],
  ]);
  expect(validationRules(Base).get('tags')?.[0]).toMatchObject({ each: true, conditional: false });
});

test('a property whose rules all belong to other groups has an empty list of rules', () => {
  expect(validationRules(Base, ['a']).get('n')).toEqual([]);
  expect(validationRules(Base, ['a']).get('tags')).toHaveLength(1);
});

test('the rules are the same as in class-validator, with and without groups', () => {
  const store = cv.getMetadataStorage();
  for (const groups of [[], ['a'], ['b'], ['a', 'b']]) {
    for (const target of [Base, Sub]) {
      const theirs = store.getTargetValidationMetadatas(target, '', false, false, groups);
      const ours = [...validationRules(target, groups).values()].flat();
      expect(ours.map(({ name }) => name).sort()).toEqual(theirs.map(({ name }) => name).sort());
    }
  }
});

test('a class without decorators has no rules', () => {
  expect(validationRules(class {}).size).toBe(0);
  expect(classTransforms(class {}).ruleOf('x')).toBeUndefined();
});

test('class-transformer decorators are read for each class, with or without its bases', () => {
  class Plain {
    @Type(() => Date) when!: Date;
    @Expose({ name: 'other' }) one!: string;
  }
  @Exclude()
  class Child extends Plain {
    @Transform(({ value, key, obj }) => [value, key, obj]) value!: unknown;
  }
  expect(classTransforms(Plain).ownProperties(Plain)).toEqual(['when', 'one']);
  expect(classTransforms(Child).ownProperties(Child)).toEqual(['value']);
  expect(classTransforms(Child).ruleOf('one')?.name).toBe('other');
  expect(classTransforms(Child).ruleOf('when')?.type?.resolve()).toBe(Date);
  expect(classTransforms(Child).ruleOf('when')?.type?.reflected).toBe(Date);
  expect(['one', 'value'].map(classTransforms(Child).withholds)).toEqual([false, true]);
  expect(['one', 'when'].map(classTransforms(Plain).withholds)).toEqual([false, false]);
  const source = { value: 1 };
  expect(classTransforms(Child).ruleOf('value')?.transforms[0]?.(1, { key: 'value', source })).toEqual([
    1,
    'value',
    source,
  ]);
});

test('faults have a path and a message without the property’s name', async () => {
  class Item {
    @cv.IsString() sku!: string;
  }
  class Order {
    @cv.ValidateNested({ each: true }) items!: Item[];
    @cv.IsInt({ message: 'please count' }) count!: number;
  }
  const instance = Object.assign(new Order(), { items: [new Item(), 5], count: 'x' });
  const nameOf = (_: object, property: string) => (property === 'sku' ? 'SKU' : property);
  expect(await validateInstance(instance, { path: 'order', nameOf })).toEqual([
    { path: 'order.items.0.SKU', message: 'must be a string', isAuthored: false },
    {
      path: 'order.items.1',
      message: 'each value in nested property items must be either object or array',
      isAuthored: false,
    },
    { path: 'order.count', message: 'please count', isAuthored: true },
  ]);
});
