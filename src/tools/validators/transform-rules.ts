import type { ClassType } from '../../core/contract/declaration.js';
import { provided } from '../../core/kernel/optional-package.cjs';
import { declarations, lineage } from '../../core/metadata/class-record.js';
import { loadedCopies } from './loaded-copies.js';

/** The `@Type` of a property. */
export interface TypeRule {
  /** Calls the author's function; throws its errors. */
  resolve(): unknown;
  /** `design:type` as `@Type` found it: `Array`, `Set`, `Map`, a class, or `undefined`. */
  readonly reflected: unknown;
  readonly discriminator?: Discriminator;
}

/** The discriminator of a `@Type`: the property, and the class of each of its values. */
interface Discriminator {
  readonly property: string;
  readonly keepProperty: boolean;
  readonly subTypes: readonly { readonly name: string; readonly value: ClassType }[];
}

/** A `@Transform` for input, with the parameters of class-transformer. */
export type PropertyTransform = (
  value: unknown,
  of: { readonly key: string; readonly source: object },
) => unknown;

/** class-transformer's decorators of one property, for input. */
export interface TransformRule {
  readonly type?: TypeRule;
  /** The name in JSON, from `@Expose({ name })`. */
  readonly name?: string;
  /** `@Exclude`, or exposed only to some groups: arguments never set it. */
  readonly withheld: boolean;
  /** `@Expose`: its transforms run even if no value was sent. */
  readonly isExposed: boolean;
  readonly transforms: readonly PropertyTransform[];
}

/** The part of class-transformer's store (0.5) that is used here. */
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

/** A key that is not a string means a decorator on the class itself. */
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

/** class-transformer's decorators of a class and its bases, for input. */
interface ClassTransforms {
  /** The decorated properties of one class, without inherited ones. */
  ownProperties(ancestor: ClassType): readonly string[];
  /** `undefined` if the property has no decorators. */
  ruleOf(property: string): TransformRule | undefined;
  /** Whether arguments must not set the property. */
  withholds(property: string): boolean;
}

/**
 * Reads the decorators of a class. class-transformer is not loaded; every loaded copy of it is read, so that a second
 * copy is not silently ignored.
 */
export function classTransforms(target: ClassType): ClassTransforms {
  const all: Store[] = [];
  for (const copy of transformStores()) {
    const store = (copy as { defaultMetadataStorage?: Store } | undefined)?.defaultMetadataStorage;
    if (store !== undefined) all.push(store);
  }
  const ancestors = lineage(target);
  const decorated = all.map((store) => ({
    store,
    properties: new Set(ancestors.flatMap((ancestor) => decoratedIn(store, ancestor))),
  }));
  const ruleOf = (property: string): TransformRule | undefined => {
    const store = decorated.find(({ properties }) => properties.has(property))?.store;
    return store && readRule(store, target, property);
  };
  const excludesAll = all.some((store) => store.getStrategy(target) === 'excludeAll');
  const isExposed = (property: string): boolean =>
    all.some((store) => store.getExposedProperties(target, PLAIN_TO_CLASS).includes(property));
  return {
    ownProperties: (ancestor) => [...new Set(all.flatMap((store) => decoratedIn(store, ancestor)))],
    ruleOf,
    withholds: (property) => ruleOf(property)?.withheld === true || (excludesAll && !isExposed(property)),
  };
}

/** The name under which a bundled application provides the stores of class-transformer. */
export const TRANSFORM_STORES = 'class-transformer/storage';

let stores: { readonly at: number; readonly copies: readonly unknown[] } | undefined;

/**
 * Every copy of class-transformer's store, including those in the application's bundle. A class's dependencies were
 * loaded before it, so the search is repeated only after new declarations or calls of the author's type functions:
 * the module list of a large application is long.
 */
function transformStores(): readonly unknown[] {
  const at = declarations();
  if (stores?.at !== at) {
    const bundled = provided(TRANSFORM_STORES) as readonly unknown[] | undefined;
    stores = { at, copies: [...(bundled ?? []), ...loadedCopies('class-transformer/cjs/storage.js')] };
  }
  return stores.copies;
}

/** Marks that a function of the author ran, which may have loaded modules. */
export function authorHasRun(): void {
  stores = undefined;
}

function decoratedIn(store: Store, target: ClassType): readonly string[] {
  const { _typeMetadatas, _transformMetadatas, _exposeMetadatas, _excludeMetadatas } = store;
  const keys: string[] = [];
  for (const stored of [_typeMetadatas, _transformMetadatas, _exposeMetadatas, _excludeMetadatas])
    for (const key of stored.get(target)?.keys() ?? []) if (key !== undefined) keys.push(key);
  return keys;
}

function readRule(store: Store, target: ClassType, property: string): TransformRule {
  const stored = store.findTypeMetadata(target, property);
  const expose = store.findExposeMetadata(target, property)?.options;
  return {
    type: stored && readType(stored),
    name: expose?.toPlainOnly ? undefined : expose?.name,
    withheld:
      (expose?.groups ?? []).length > 0 ||
      store.getExcludedProperties(target, PLAIN_TO_CLASS).includes(property),
    isExposed: store.getExposedProperties(target, PLAIN_TO_CLASS).includes(property),
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
    // The function may read the object that is being built; there is none when a schema is written.
    resolve() {
      authorHasRun();
      return typeFunction?.({ newObject: {}, object: {}, property: '' });
    },
    reflected: reflectedType,
    discriminator: property && subTypes ? { property, keepProperty, subTypes } : undefined,
  };
}
