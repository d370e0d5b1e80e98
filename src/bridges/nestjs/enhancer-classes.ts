import type { Type } from '@nestjs/common';
import {
  EXCEPTION_FILTERS_METADATA,
  GUARDS_METADATA,
  INTERCEPTORS_METADATA,
  PIPES_METADATA,
} from '@nestjs/common/constants.js';
import type { CallTarget } from './call-target.js';

/** A class given to `@UseGuards` and its like or to a parameter's decorator, and what it is. */
export interface EnhancerClass {
  readonly type: Type;
  readonly subtype: 'guard' | 'interceptor' | 'pipe' | 'filter';
}

const SUBTYPES = [
  [GUARDS_METADATA, 'guard'],
  [INTERCEPTORS_METADATA, 'interceptor'],
  [PIPES_METADATA, 'pipe'],
  [EXCEPTION_FILTERS_METADATA, 'filter'],
] as const;

/**
 * The enhancer classes that stand on a target's class, method or parameters; enhancers given as instances need
 * nothing.
 */
export function enhancerClasses(target: CallTarget): readonly EnhancerClass[] {
  const { declared, handler, parameterPipes } = target;
  return [
    ...SUBTYPES.flatMap(([key, subtype]) =>
      [declared.constructor, handler].flatMap((place) =>
        classes(Reflect.getMetadata(key, place) ?? [], subtype),
      ),
    ),
    ...classes(parameterPipes, 'pipe'),
  ];
}

function classes(enhancers: readonly unknown[], subtype: EnhancerClass['subtype']): readonly EnhancerClass[] {
  return enhancers
    .filter((enhancer): enhancer is Type => typeof enhancer === 'function')
    .map((type) => ({ type, subtype }));
}
