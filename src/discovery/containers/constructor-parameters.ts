import type { InjectionToken } from 'tsyringe';
import type { ClassType } from '../../contract/declaration.js';
import { readDescription } from '../../metadata/class-record.js';
import { loadTsyringe } from './load-tsyringe.cjs';

/** What one constructor parameter asks the container for. */
export interface ConstructorParameter {
  readonly token: InjectionToken | undefined;
  readonly isOptional: boolean;
  /** `@injectAll`: every provider of the token. */
  readonly isMultiple: boolean;
}

/** The parameters, or `unknown` where the class needs arguments that nothing describes. */
type ConstructorFacts = readonly ConstructorParameter[] | 'unknown';

/** tsyringe's own key for what `@inject` and its siblings said. */
const TOKENS_KEY = 'injectionTokens';

interface TokenDescriptor {
  readonly token: InjectionToken;
  readonly isOptional?: boolean;
  readonly multiple?: boolean;
}

/**
 * What a class's constructor asks for. Where decorator metadata exists, the class is marked injectable on
 * the way: tsyringe refuses classes that its `injectable()` never saw, and a decorator of ours must not
 * do more than record.
 */
export function constructorParameters(target: ClassType): ConstructorFacts {
  const tokens: Readonly<Record<number, InjectionToken | TokenDescriptor>> =
    Reflect.getOwnMetadata(TOKENS_KEY, target) ?? {};
  const designTypes = describedTypes(target) ?? designTypesFrom(tokens, target.length);
  if (designTypes === undefined) return 'unknown';
  const parameters = designTypes.map((designType, index) => readParameter(tokens[index] ?? designType));
  loadTsyringe().injectable()(target as new () => object);
  return parameters;
}

/**
 * What metadata and the generated file say of a constructor; where both do, the classes of the latter, which
 * `import type` and interfaces cannot hide. It is kept where tsyringe looks for it.
 */
function describedTypes(target: ClassType): readonly unknown[] | undefined {
  const emitted: readonly unknown[] | undefined = Reflect.getMetadata('design:paramtypes', target);
  const described = readDescription(target)?.dependencies;
  if (described === undefined || (emitted !== undefined && emitted.length !== described.length))
    return emitted;
  const types = described.map((one, index) => one ?? emitted?.[index]);
  Reflect.defineMetadata('design:paramtypes', types, target);
  return types;
}

/** Without metadata, as under esbuild, `@inject` on every parameter says as much. */
function designTypesFrom(tokens: object, count: number): readonly unknown[] | undefined {
  const parameters = Array.from({ length: count }, (_, index) => index);
  return parameters.every((index) => Object.hasOwn(tokens, index))
    ? parameters.map(() => undefined)
    : undefined;
}

function readParameter(asked: unknown): ConstructorParameter {
  if (!isDescriptor(asked)) {
    return { token: asked as InjectionToken | undefined, isOptional: false, isMultiple: false };
  }
  return { token: asked.token, isOptional: asked.isOptional ?? false, isMultiple: asked.multiple ?? false };
}

function isDescriptor(asked: unknown): asked is TokenDescriptor {
  return typeof asked === 'object' && asked !== null && 'token' in asked;
}
