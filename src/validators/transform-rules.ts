import type { ClassType } from '../contract/class-type.js';
import { lineage } from '../metadata/class-record.js';
import { transformStores } from './loaded-copies.js';

/** What `@Type` said of a property. */
export interface TypeRule {
  /** Calls the author's function; throws what it throws. */
  resolve(): unknown;
  /** `design:type` as `@Type` found it: `Array`, `Set`, `Map`, a class, or nothing. */
  readonly reflected: unknown;
  readonly discriminator?: Discriminator;
}

/** The discriminator of a `@Type`: which value of which property stands for which class. */
export interface Discriminator {
  readonly property: string;
  readonly keepProperty: boolean;
  readonly subTypes: readonly { readonly name: string; readonly value: ClassType }[];
}

/** One `@Transform` on the way in, with the parameters that class-transformer gives it. */
export type PropertyTransform = (
  value: unknown,
  of: { readonly key: string; readonly source: object },
) => unknown;

/** What class-transformer's decorators say of one property on the way in. */
export interface TransformRule {
  readonly type?: TypeRule;
  /** The name in JSON, from `@Expose({ name })`. */
  readonly name?: string;
  /** `@Exclude`, or exposed to some groups only: it is never taken from the arguments. */
  readonly withheld: boolean;
  readonly transforms: readonly PropertyTransform[];
}

/** class-transformer's store (0.5), as far as it is used here. */
interface Store {
  readonly _typeMetadatas: StoredByClass;
  readonly _transformMetadatas: StoredByClass;
  readonly _exposeMetadatas: StoredByClass;
  readonly _excludeMetadatas: StoredByClass;
  findTypeMetadata(target: ClassType, property: string): StoredType | undefined;
  findExposeMetadata(target: ClassType, property: string): StoredExpose | undefined;
  findTransformMetadatas(target: ClassType, property: string, direction: number): readonly StoredTransform[];
  getExposedProperties(target: ClassType, direction: number): readonly string[];
  getExcludedProperties(target: ClassType, direction: number): readonly string[];
  getStrategy(target: ClassType): 'excludeAll' | 'exposeAll' | 'none';
}

/** A key that is not a string stands for a decorator on the class itself. */
type StoredByClass = ReadonlyMap<unknown, ReadonlyMap<string | undefined, unknown>>;

interface StoredType {
  readonly reflectedType?: unknown;
  readonly typeFunction?: (of?: object) => unknown;
  readonly options?: {
    readonly keepDiscriminatorProperty?: boolean;
    readonly discriminator?: { readonly property?: string; readonly subTypes?: Discriminator['subTypes'] };
  };
}

interface StoredExpose {
  readonly options?: {
    readonly name?: string;
    readonly groups?: readonly string[];
    readonly toPlainOnly?: boolean;
  };
}

interface StoredTransform {
  readonly transformFn: (of: object) => unknown;
  readonly options?: { readonly groups?: readonly string[] };
}

/** `TransformationType.PLAIN_TO_CLASS`. */
const PLAIN_TO_CLASS = 0;

/**
 * What class-transformer's decorators say of one property of a class or its bases; nothing where there are
 * none. The package is not loaded; every loaded copy of it is read, so that a second copy in the tree is not
 * ignored in silence.
 */
export function transformRule(target: ClassType, property: string): TransformRule | undefined {
  const store = stores().find((one) =>
    lineage(target).some((ancestor) => ownProperties(one, ancestor).includes(property)),
  );
  return store && readRule(store, target, property);
}

/** The properties that class-transformer's decorators stand on in this very class. */
export function transformedProperties(target: ClassType): readonly string[] {
  return [...new Set(stores().flatMap((store) => ownProperties(store, target)))];
}

/** Whether `@Exclude` on the class withholds every property that is not exposed. */
export function excludesAll(target: ClassType): boolean {
  return stores().some((store) => store.getStrategy(target) === 'excludeAll');
}

/** Whether a property is exposed on the way in. */
export function isExposed(target: ClassType, property: string): boolean {
  return stores().some((store) => store.getExposedProperties(target, PLAIN_TO_CLASS).includes(property));
}

function stores(): readonly Store[] {
  return transformStores().flatMap((copy) => {
    const store = (copy as { defaultMetadataStorage?: Store } | undefined)?.defaultMetadataStorage;
    return store === undefined ? [] : [store];
  });
}

function ownProperties(store: Store, target: ClassType): readonly string[] {
  const maps = [
    store._typeMetadatas,
    store._transformMetadatas,
    store._exposeMetadatas,
    store._excludeMetadatas,
  ];
  const keys = maps.flatMap((map) => [...(map.get(target)?.keys() ?? [])]);
  return keys.filter((key) => key !== undefined);
}

function readRule(store: Store, target: ClassType, property: string): TransformRule {
  const type = store.findTypeMetadata(target, property);
  const expose = store.findExposeMetadata(target, property)?.options;
  return {
    type: type && readType(type),
    name: expose?.toPlainOnly ? undefined : expose?.name,
    withheld:
      (expose?.groups ?? []).length > 0 ||
      store.getExcludedProperties(target, PLAIN_TO_CLASS).includes(property),
    transforms: store
      .findTransformMetadatas(target, property, PLAIN_TO_CLASS)
      .filter(({ options }) => (options?.groups ?? []).length === 0)
      .map(
        ({ transformFn }) =>
          (value, { key, source }) =>
            transformFn({ value, key, obj: source, type: PLAIN_TO_CLASS, options: {} }),
      ),
  };
}

function readType({ typeFunction, reflectedType, options }: StoredType): TypeRule {
  const { property, subTypes } = options?.discriminator ?? {};
  const keepProperty = options?.keepDiscriminatorProperty ?? false;
  return {
    // The function may look at the object that is being built; there is none when a schema is written.
    resolve: () => typeFunction?.({ newObject: {}, object: {}, property: '' }),
    reflected: reflectedType,
    discriminator: property && subTypes ? { property, keepProperty, subTypes } : undefined,
  };
}
