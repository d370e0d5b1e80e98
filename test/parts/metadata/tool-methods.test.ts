import { expect, test } from '@jest/globals';
import { Param, Tool, Toolset } from 'toolwright/decorators';
import { loadedToolsets, readRecord, toolMethods } from '../../../src/core/metadata/class-record.js';

class Base {
  @Tool('base find')
  find(@Param('id') _id: string) {}

  @Tool('base list')
  list() {}
}

class Derived extends Base {
  @Tool('derived find')
  override find(_id: string) {}

  @Tool('derived only')
  more() {}

  override list() {}
}

const described = (target: typeof Base) =>
  toolMethods(target).map(({ record, declaredIn }) => [
    String(record.key),
    record.tool?.description,
    declaredIn.name,
  ]);

test('tools of a base class are tools of the subclass, and a redeclared tool replaces it in its position', () => {
  expect(described(Derived)).toEqual([
    ['find', 'derived find', 'Derived'],
    ['list', 'base list', 'Base'],
    ['more', 'derived only', 'Derived'],
  ]);
});

test('tools of a subclass are not tools of its base class', () => {
  expect(described(Base)).toEqual([
    ['find', 'base find', 'Base'],
    ['list', 'base list', 'Base'],
  ]);
});

test('two subclasses of one base class have separate tools', () => {
  class One extends Base {
    @Tool('one')
    one() {}
  }
  class Two extends Base {
    @Tool('two')
    two() {}
  }
  expect(toolMethods(One).map(({ record }) => record.key)).toEqual(['find', 'list', 'one']);
  expect(toolMethods(Two).map(({ record }) => record.key)).toEqual(['find', 'list', 'two']);
});

test('tools of a mixin are tools of the class that extends it', () => {
  // biome-ignore lint/suspicious/noExplicitAny: TypeScript wants exactly this of a mixin
  function WithPing<Class extends new (...args: any[]) => object>(Parent: Class) {
    class Pinging extends Parent {
      @Tool('ping')
      ping() {}
    }
    return Pinging;
  }
  class Host extends WithPing(Base) {
    @Tool('host')
    host() {}
  }
  expect(toolMethods(Host).map(({ record }) => record.key)).toEqual(['find', 'list', 'ping', 'host']);
});

test('the metadata of a class is not enumerable', () => {
  expect(Object.keys(Base)).toEqual([]);
  expect(JSON.stringify(Object.getOwnPropertyNames(Derived).sort())).toBe(
    JSON.stringify(['length', 'name', 'prototype']),
  );
  expect(readRecord(Derived)).not.toBe(readRecord(Base));
});

test('a toolset is listed once, however often it is decorated', () => {
  @Toolset({ prefix: 'b' })
  @Toolset({ prefix: 'a' })
  class Twice {}
  expect(loadedToolsets().filter((toolset) => toolset === Twice)).toHaveLength(1);
});
