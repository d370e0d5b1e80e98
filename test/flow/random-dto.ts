import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  ArrayNotEmpty,
  ArrayUnique,
  IsArray,
  IsOptional,
  ValidateNested,
} from 'class-validator';
import fc from 'fast-check';
import { type RandomLeaf, randomLeaf } from './random-leaf.js';

/** A DTO class as plain data, so that a counterexample is readable and can be shrunk. */
export interface RandomDto {
  readonly properties: readonly RandomProperty[];
}

/** One property: its type, whether it is a list, and whether it is optional. */
export interface RandomProperty {
  readonly name: string;
  readonly of: RandomLeaf | RandomDto;
  readonly list?: RandomList;
  readonly isOptional: boolean;
}

/** The rules of a list as a whole. The first rule always refuses a value that is not a list. */
export interface RandomList {
  readonly first: 'IsArray' | 'ArrayNotEmpty' | 'ArrayMinSize';
  readonly least: number;
  readonly most?: number;
  readonly isUnique: boolean;
}

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'] as const;

const list: fc.Arbitrary<RandomList> = fc
  .record(
    {
      first: fc.constantFrom('IsArray', 'ArrayNotEmpty', 'ArrayMinSize'),
      least: fc.nat(2),
      most: fc.integer({ min: 1, max: 3 }),
      isUnique: fc.boolean(),
    },
    { requiredKeys: ['first', 'least', 'isUnique'] },
  )
  .map(({ most, ...others }) => ({
    ...others,
    ...(most === undefined ? {} : { most: Math.max(most, others.least) }),
  }));

/** DTOs of two to six properties, with nested classes down to the given depth. */
export function randomDto(depth = 2): fc.Arbitrary<RandomDto> {
  const leaf = { weight: 4, arbitrary: randomLeaf as fc.Arbitrary<RandomLeaf | RandomDto> };
  const of = depth === 0 ? fc.oneof(leaf) : fc.oneof(leaf, { weight: 1, arbitrary: randomDto(depth - 1) });
  const property = fc.record({
    of,
    list: fc.option(list, { nil: undefined, freq: 3 }),
    isOptional: fc.boolean(),
  });
  return fc.array(property, { minLength: 2, maxLength: NAMES.length }).map((all) => ({
    properties: all.map((one, index) => ({ name: NAMES[index] ?? '', ...one })),
  }));
}

/** Whether the type of a property is a class. */
export function isDto(of: RandomLeaf | RandomDto): of is RandomDto {
  return 'properties' in of;
}

/** The class, decorated as a compiler would do it. */
export function buildDto(dto: RandomDto): new () => object {
  class Input {}
  for (const { name, of, list: rules, isOptional } of dto.properties) {
    const options = rules === undefined ? {} : { each: true };
    const decorators = isDto(of)
      ? nestedDecorators(of, options)
      : [
          ...of.rules.map((rule) => rule.decorate(options)),
          ...(of.kind === 'date' ? [Type(() => Date)] : []),
        ];
    if (rules !== undefined) decorators.push(...listDecorators(rules));
    if (isOptional) decorators.push(IsOptional());
    Reflect.defineMetadata('design:type', designType(of, rules), Input.prototype, name);
    Reflect.decorate(decorators, Input.prototype, name);
  }
  return Input;
}

function nestedDecorators(of: RandomDto, options: { readonly each?: boolean }): PropertyDecorator[] {
  const nested = buildDto(of);
  return [ValidateNested(options), Type(() => nested)];
}

function listDecorators({ first, least, most, isUnique }: RandomList): readonly PropertyDecorator[] {
  const kinds = { IsArray: IsArray(), ArrayNotEmpty: ArrayNotEmpty(), ArrayMinSize: ArrayMinSize(least) };
  return [
    kinds[first],
    ...(most === undefined ? [] : [ArrayMaxSize(most)]),
    ...(isUnique ? [ArrayUnique()] : []),
  ];
}

function designType(of: RandomLeaf | RandomDto, rules: RandomList | undefined): unknown {
  if (rules !== undefined) return Array;
  return isDto(of) ? Object : of.designType;
}
