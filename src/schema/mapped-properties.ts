import type { ClassType, ParamOptions } from '../contract/declaration.js';
import { lineage, loadedDtoClasses, propertyOptions } from '../metadata/class-record.js';
import { copiedProperties, validatedProperties, validationRules } from '../validators/validation-rules.js';
import { apiProperties } from './api-property.js';

/**
 * The properties of a class that a mapped type made (`PartialType`, `PickType`, …), with the class that each was
 * taken from. Such a class extends nothing and knows nothing of `@Param`; but class-validator's rules are copied to
 * it, and by them the class is found that they were written for; where there are none, by its name.
 */
export function mappedProperties(target: ClassType): ReadonlyMap<string, ClassType> {
  const copied = copiedProperties(target);
  const named = namedSource(target);
  if (copied.size === 0 && named.length === 0) return copied;
  const sources = new Map(copied);
  for (const source of new Set([...copied.values(), ...named])) {
    const known = [...validatedProperties(target), ...apiProperties(target)];
    const kept = takesAll(target, source) ? undefined : known;
    for (const key of decoratedKeys(source))
      if (!sources.has(key) && kept?.includes(key) !== false) sources.set(key, source);
  }
  return sources;
}

/** What `@Param` says of the properties of a class; a subclass that decorates one again says only what is different. */
export function inheritedOptions(
  ancestors: readonly ClassType[],
  mapped: readonly ReadonlyMap<string, ClassType>[] = ancestors.map(mappedProperties),
): ReadonlyMap<string, ParamOptions> {
  const options = new Map<string, ParamOptions>();
  const add = (key: string, more: ParamOptions) => options.set(key, { ...options.get(key), ...more });
  for (const [index, ancestor] of ancestors.entries()) {
    for (const [key, source] of mapped[index] ?? []) {
      const said = inheritedOptions(lineage(source)).get(key);
      if (isMadeOptional(ancestor, { key, source })) add(key, { ...said, required: false });
      else if (said !== undefined) add(key, said);
    }
    for (const [key, own] of propertyOptions(ancestor)) add(key, own);
  }
  return options;
}

/** The properties of a class and its bases on which decorators stand that mapped types know nothing of. */
function decoratedKeys(source: ClassType): readonly string[] {
  return lineage(source).flatMap((one) => [...propertyOptions(one).keys(), ...apiProperties(one)]);
}

/** What a class was made from that has no rules to tell it: the one whose name stands in its own. */
function namedSource(target: ClassType): readonly ClassType[] {
  const mapped = MAPPED_NAME.exec(target.name)?.[1];
  if (mapped === undefined || !MAPPED_CLASS.test(Function.prototype.toString.call(target))) return [];
  const named = loadedDtoClasses().filter(({ name }) => mapped.startsWith(name));
  const longest = Math.max(0, ...named.map(({ name }) => name.length));
  const meant = named.filter(({ name }) => name !== '' && name.length === longest);
  return meant.length === 1 ? meant : [];
}

/** What the constructors of all mapped types begin with. */
const MAPPED_CLASS = /inheritPropertyInitializers\)?\(this\b/;
const MAPPED_NAME = /^(?:Partial|Pick|Omit)(.+)$/;

/** The name says whether a mapped type took every property, also those that no rule stands on. */
function takesAll({ name }: ClassType, source: ClassType): boolean {
  return name === `Partial${source.name}` || (name.startsWith('Intersection') && name.includes(source.name));
}

function isMadeOptional(
  target: ClassType,
  { key, source }: { readonly key: string; readonly source: ClassType },
): boolean {
  const isMarked = (one: ClassType): boolean =>
    (validationRules(one).get(key) ?? []).some(({ role }) => role === 'conditional');
  const isUnruled = !validatedProperties(target).includes(key) && target.name.startsWith('Partial');
  return isUnruled || (isMarked(target) && !isMarked(source));
}
