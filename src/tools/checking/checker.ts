import type { JsonObject, JsonSchema } from '../../core/contract/json-schema.js';
import type { ArgumentFault } from '../../core/contract/tool.js';
import { cached } from '../../core/kernel/cached.js';
import { readExactJson } from '../../core/kernel/exact-json.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import {
  childPath,
  copyOfJson,
  type Fields,
  isObject,
  isRecord,
  plainJson,
  setOwn,
} from '../../core/kernel/json.js';
import { misspeltName } from '../../core/kernel/nearest-name.js';
import {
  allSchemas,
  findReference,
  isSchemaNode,
  keywordNames,
  mapSubschemas,
  schemaPlaces,
  subschemas,
} from '../schema/keywords.js';
import { BIGINT_DIGITS } from '../schema/value-type.js';
import { describeErrors, type ValueFault } from './faults.js';
import { fitsSchema, generatedLater, interpretSchema, schemaTest } from './interpreter/interpret-schema.js';
import { readArguments } from './read-arguments.js';
import { schemaFaults } from './schema-faults.js';
import {
  branchTypes,
  isOfType,
  levelOf,
  resolveReference,
  type SchemaLevel,
  unionChooser,
} from './schema-level.js';

/** The changes to the arguments, by path. */
interface NormalizeNotes {
  /** Removed keys that the schema does not contain. */
  readonly removed: string[];
  /** The removed keys that look like a typo of an optional key that was not sent. */
  readonly misspelt: string[];
  /** Keys that stay because a schema other than the chosen branch names them. */
  readonly spared: string[];
  /** Values that were converted to a type of the schema. */
  readonly coerced: string[];
  /** The converted values that became an array with one item. */
  readonly wrapped: string[];
  /** Optional properties that were sent as `null`, which means absent. */
  readonly dropped: string[];
}

/** Limits on what normalizing may change. */
interface NormalizeOptions {
  /** Coerce types and drop `null`; only after plain validation has failed. */
  readonly repair: boolean;
  /**
   * The keys that are removed: `unnamed`: keys that no applicable schema names; `unknown`: keys that the chosen
   * branch does not name.
   */
  readonly extra: 'unnamed' | 'unknown' | 'none';
}

/** Shared by the values of one call. */
interface Walk extends NormalizeOptions {
  readonly notes: NormalizeNotes;
  readonly shapeOf: (schema: JsonSchema) => Shape;
  readonly root: JsonSchema;
}

/** With more unknown keys than this, typos are not searched. */
const MAX_LOOKED_AT = 50;

/** The position of a value. Its path and its schemas are computed only when they are needed. */
class Place {
  readonly walk: Walk;
  readonly step: string | number;
  readonly #above: Place | undefined;

  constructor(walk: Walk, step: string | number = '', above?: Place) {
    this.walk = walk;
    this.step = step;
    this.#above = above;
  }

  get path(): string {
    return childPath(this.#above?.path ?? '', this.step);
  }

  get level(): SchemaLevel {
    return this.#above?.level.below(String(this.step)) ?? levelOf(this.walk.root);
  }

  below(step: string | number): Place {
    return new Place(this.walk, step, this);
  }
}

function normalizeValue(shape: Shape, value: unknown, place: Place): unknown {
  const { walk } = place;
  if (!walk.repair && !isObject(value)) return value;
  const branch = branchFor(value, shape, walk);
  if (branch !== undefined) return normalizeValue(walk.shapeOf(branch), value, place);
  let repaired = value;
  if (walk.repair) {
    const { type, pattern } = shape.schema;
    const isText = [type].flat().every((name) => name === 'string' || name === 'null');
    // The digits of a whole number, if the schema requires those of a `bigint`; exact below 2^53.
    const isOfDigits = pattern === BIGINT_DIGITS && Number.isSafeInteger(value) && isText;
    repaired = isOfDigits ? String(value) : coerceValue(value, shape.types);
    if (repaired === value && typeof value === 'string') repaired = coerceForBranch(value, shape, walk);
  }
  if (repaired !== value) {
    const { path } = place;
    walk.notes.coerced.push(path);
    if (Array.isArray(repaired) && repaired[0] === value) walk.notes.wrapped.push(path);
    // The new object may have a tag that determines its branch.
    if (shape.branches.length > 0) return normalizeValue(shape, repaired, place);
  }
  if (isRecord(repaired)) return normalizeObject(shape, repaired, place);
  if (!Array.isArray(repaired) || shape.items === undefined) return repaired;
  const ofItems = walk.shapeOf(shape.items);
  let copy: unknown[] | undefined;
  for (const [index, item] of repaired.entries()) {
    const after = normalizeValue(ofItems, item, place.below(index));
    if (after === item) continue;
    copy ??= [...repaired];
    copy[index] = after;
  }
  return copy ?? repaired;
}

/** The only branch of a union that may accept a value: by its tag, or the only one for its type. */
function branchFor(value: unknown, { branches }: Shape, { root, shapeOf }: Walk): JsonSchema | undefined {
  if (branches.length === 0) return undefined;
  const chosen = unionChooser(branches, root)(value);
  if (chosen.kind === 'branch') return chosen.branch;
  if (!isObject(value)) return undefined;
  const [only, other] = branches.filter((branch) => {
    const { types } = shapeOf(branch);
    return types.length === 0 || types.some((type) => isOfType(value, type));
  });
  return other === undefined ? only : undefined;
}

/** The number or boolean of a text, if a branch of a union accepts it, and none the text. */
function coerceForBranch(text: string, { branches }: Shape, { root, shapeOf }: Walk): unknown {
  if (branches.some((branch) => fitsSchema(text, branch, root))) return text;
  for (const branch of branches) {
    const types = shapeOf(branch).types.filter((type) => type !== 'object' && type !== 'array');
    const value = coerceText(text, types);
    if (value !== undefined && fitsSchema(value, branch, root)) return value;
  }
  return text;
}

function normalizeObject(shape: Shape, value: JsonObject, place: Place): JsonObject {
  const { walk } = place;
  const { notes, extra } = walk;
  let copy: JsonObject | undefined;
  let gone: Set<string> | undefined;
  for (const key of Object.keys(value)) {
    const part = shape.properties.get(key) ?? shape.values;
    const child = part === undefined ? undefined : walk.shapeOf(part);
    const before = value[key];
    if (child === undefined) {
      if (shape.keepsExtra || extra === 'none') continue;
      if (extra === 'unnamed' && place.level.names(key)) {
        notes.spared.push(key);
        continue;
      }
      const { path } = place.below(key);
      notes.removed.push(path);
      if (notes.removed.length <= MAX_LOOKED_AT) {
        const open = [...shape.properties.keys()].filter(
          (name) => !shape.required.has(name) && !Object.hasOwn(value, name),
        );
        if (misspeltName(key, open) !== undefined) notes.misspelt.push(path);
      }
    } else if (before === null && walk.repair && !shape.required.has(key) && !acceptsNull(child, walk)) {
      // `null` for an optional property means absent: models send it in strict mode.
      notes.dropped.push(place.below(key).path);
    } else if (before !== undefined) {
      const after = normalizeValue(child, before, place.below(key));
      if (after === before) continue;
      copy ??= { ...value };
      copy[key] = after;
      continue;
    }
    gone ??= new Set();
    gone.add(key);
  }
  let left = copy ?? value;
  if (gone !== undefined) {
    // A copy, because objects with deleted fields stay slow.
    left = {};
    for (const [key, member] of Object.entries(copy ?? value)) if (!gone.has(key)) setOwn(left, key, member);
  }
  return withDefaults(left, shape.defaults);
}

/** Runs for each call. */
function withDefaults(value: JsonObject, defaults: Defaults): JsonObject {
  let filled = value;
  for (const [name, fallback] of defaults) {
    if (Object.hasOwn(value, name) && value[name] !== undefined) continue;
    if (filled === value) filled = { ...value };
    setOwn(filled, name, isObject(fallback) ? structuredClone(fallback) : fallback);
  }
  return filled;
}

function acceptsNull(shape: Shape, walk: Walk): boolean {
  if (shape.types.length > 0) return shape.types.includes('null');
  if (shape.schema.enum !== undefined) return shape.schema.enum.includes(null);
  if (shape.branches.length > 0)
    return shape.branches.some((branch) => acceptsNull(walk.shapeOf(branch), walk));
  return shape.schema.const === undefined || shape.schema.const === null;
}

/**
 * The facts about a schema that normalizing needs, read once: its keys, their defaults, and which keys may be absent.
 */
interface Shape {
  readonly schema: JsonSchema;
  /** JSON types that the schema or its branches allow; empty if the schema states no type. */
  readonly types: readonly string[];
  readonly properties: ReadonlyMap<string, JsonSchema>;
  readonly required: ReadonlySet<string>;
  readonly defaults: Defaults;
  /** Keys that `properties` does not list stay. */
  readonly keepsExtra: boolean;
  readonly items?: JsonSchema;
  readonly values?: JsonSchema;
  /** The branches of `anyOf`, or of a `oneOf` whose branches exclude each other. */
  readonly branches: readonly JsonSchema[];
}

/** The shapes of one root schema. */
function shapesOf(root: JsonSchema, defaultsOf: DefaultsOf): (schema: JsonSchema) => Shape {
  const known = new WeakMap<JsonSchema, Shape>();
  const readShape = (schema: JsonSchema): Shape => {
    const { type, properties = {}, additionalProperties, items, anyOf = [] } = schema;
    const isExclusive = schema.properties === undefined && isClosable('oneOf', schema, root);
    const branches = isExclusive ? (schema.oneOf as readonly JsonSchema[]) : anyOf;
    const named = Object.entries(properties).filter(([name]) => name !== '__proto__');
    return {
      schema,
      types: type === undefined ? branchTypes(branches, root) : [type].flat(),
      properties: new Map(named),
      required: new Set(schema.required),
      defaults: defaultsOf(schema),
      keepsExtra: schema.properties === undefined || keepsUnlisted(schema),
      items: isSchemaNode(items) ? items : undefined,
      values: isSchemaNode(additionalProperties) ? additionalProperties : undefined,
      branches,
    };
  };
  return (schema) => cached(known, resolveReference(schema, root), readShape);
}

/**
 * Converts a value to a wanted type without loss; otherwise returns the value itself. Text → number, integer,
 * boolean; one value → array with one item; JSON text → object or array. Never number → string (except the digits of
 * a `bigint`), never `null` → `""` or `0`, never `true` → `1`.
 */
function coerceValue(value: unknown, types: readonly string[]): unknown {
  if (types.length === 0 || value === null || types.some((type) => isOfType(value, type))) return value;
  if (typeof value === 'string') {
    const fromText = coerceText(value, types);
    if (fromText !== undefined) return fromText;
  }
  // If other types are allowed, it is not clear that an array was meant.
  const wantsList = types.includes('array') && types.every((type) => type === 'array' || type === 'null');
  return wantsList ? [value] : value;
}

function coerceText(text: string, types: readonly string[]): unknown {
  const trimmed = text.trim();
  if (types.includes('number') || types.includes('integer')) {
    const number = readNumber(trimmed);
    if (number !== undefined && (types.includes('number') || Number.isInteger(number))) return number;
  }
  if (types.includes('boolean') && (trimmed === 'true' || trimmed === 'false')) return trimmed === 'true';
  const isJson =
    (types.includes('object') && trimmed.startsWith('{')) ||
    (types.includes('array') && trimmed.startsWith('['));
  return isJson ? readExactJson(trimmed)?.value : undefined;
}

/** Every double can be written with fewer digits. */
const MAX_DIGITS = 400;
const DECIMAL = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The number in a text, if no digit is lost. */
function readNumber(text: string): number | undefined {
  if (text.length > MAX_DIGITS || !DECIMAL.test(text)) return undefined;
  const number = Number(text);
  const digits = text.replace(/[eE].*$|\D/g, '').replace(/^0+|0+$/g, '');
  return Number.isFinite(number) && digits.length <= 15 ? number : undefined;
}

type Defaults = readonly (readonly [name: string, value: unknown])[];

/** The defaults of a schema's own properties, not of nested ones. */
type DefaultsOf = (schema: JsonSchema) => Defaults;

/**
 * The defaults of a root schema that their own schema accepts. Others are ignored, such as the `null` that some
 * libraries write for a number without a default.
 */
function fittingDefaults(root: JsonSchema): DefaultsOf {
  return ({ properties = {} }) => {
    const fitting: [name: string, value: unknown][] = [];
    for (const [name, property] of Object.entries(properties)) {
      const fallback = isSchemaNode(property) && name !== '__proto__' ? property.default : undefined;
      if (fallback !== undefined && fitsSchema(fallback, property as JsonSchema, root))
        fitting.push([name, fallback]);
    }
    return fitting;
  };
}

/** Arguments that match the schema, with the changes made to them; or all faults. */
type Checked =
  | {
      readonly ok: true;
      readonly value: JsonObject;
      readonly removed: readonly string[];
      readonly coerced: readonly string[];
      /** The arguments are as they were sent, except for defaults. */
      readonly isAccepted?: true;
      /** Paths of optional properties whose `null` was read as absent; absent if there are no such properties. */
      readonly dropped?: readonly string[];
    }
  | {
      readonly ok: false;
      readonly faults: readonly ValueFault[];
      readonly removed: readonly string[];
      /** The arguments after partial repair. */
      readonly value?: JsonObject;
    };

/** Checks arguments against one schema. Never changes its input. */
export interface Checker {
  (args: JsonObject): Checked;
  /**
   * Accepts arguments without faults and without changes to report: returns them unchanged, or a copy with defaults.
   * Returns `undefined` for all others, which need the full check.
   */
  accept(args: JsonObject): JsonObject | undefined;
  /** Copies accepted arguments in the form in which they were sent. */
  readonly copy: Copier;
}

type Check = (args: JsonObject) => Checked;

/** The strictness of a checker. */
interface CheckerOptions {
  /** Unknown keys are faults instead of being removed: for destructive tools. */
  readonly refuseExtra?: boolean;
  /** Strict: no types are coerced and no `null` is dropped. */
  readonly asSent?: boolean;
  /** `false`: defaults are not filled in, because the tool itself does that. */
  readonly fillDefaults?: boolean;
}

const NO_PATHS: readonly string[] = [];

/**
 * The checker of a schema: the same schema that the model is offered, compiled on first use. Valid arguments cost one
 * pass of a stricter form of it. Otherwise plain validation comes first. Only arguments that fail it are repaired, on
 * a copy, and validated again.
 *
 * @throws Error if the schema itself is not valid.
 */
export function createChecker(schema: JsonSchema, options: CheckerOptions = {}): Checker {
  refuseMalformed(schema);
  const defaultsOf: DefaultsOf = options.fillDefaults === false ? () => [] : fittingDefaults(schema);
  const closed = closedSchema(schema, defaultsOf);
  const accept: Checker['accept'] = closed ? acceptor(closed, defaultsOf(schema)) : () => undefined;
  const shapeOf = shapesOf(schema, defaultsOf);
  const normalize: Normalize = (args, how, notes) =>
    normalizeObject(shapeOf(schema), args, new Place({ ...how, notes, shapeOf, root: schema }));
  let thorough: Check | undefined;
  const check: Check = (args) => {
    const value = accept(args);
    if (value !== undefined)
      return { ok: true, value, removed: NO_PATHS, coerced: NO_PATHS, isAccepted: true };
    const faults = boundFaults(args);
    if (faults.length > 0) return { ok: false, faults, removed: NO_PATHS };
    if (closed !== undefined && !options.asSent) {
      // Most other arguments are valid apart from unknown keys; this check collects no errors.
      const notes = noNotes();
      const trimmed = normalize(args, { repair: false, extra: 'unnamed' }, notes);
      const isMeant = (options.refuseExtra ? notes.removed : notes.misspelt).length === 0;
      if (trimmed !== args && isMeant && accept(trimmed) !== undefined)
        return { ok: true, value: trimmed, ...changes(notes) };
    }
    thorough ??= thoroughCheck(schema, options, normalize);
    return thorough(args);
  };
  const copy = closed
    ? generatedLater<[JsonObject], unknown>(copyOfJson, () => generateCopier(closed))
    : copyOfJson;
  return Object.assign(check, { accept, copy: copy as Copier });
}

/** Runs for each call, so it does only what the schema needs. */
function acceptor(closed: JsonSchema, defaults: Defaults): Checker['accept'] {
  const fits = schemaTest(closed);
  const isWithinBounds = boundsTest(closed);
  if (isWithinBounds === undefined && defaults.length === 0) return (args) => (fits(args) ? args : undefined);
  return (args) => {
    if (isWithinBounds?.(args) === false || !fits(args)) return undefined;
    return withDefaults(args, defaults);
  };
}

/** Converts arguments to the form of the schema. The input is never changed, only copied as needed. */
type Normalize = (args: JsonObject, how: NormalizeOptions, notes: NormalizeNotes) => JsonObject;

function thoroughCheck(
  schema: JsonSchema,
  { refuseExtra, asSent }: CheckerOptions,
  normalize: Normalize,
): Check {
  const validate = interpretSchema(schema).check;
  const normalized = (args: JsonObject, how: NormalizeOptions) => {
    const notes = noNotes();
    const value = normalize(args, how, notes);
    return { value, notes, errors: value === args && !how.repair ? undefined : validate(value) };
  };
  return (args) => {
    const errors = validate(args);
    if (errors !== undefined && asSent)
      return { ok: false, faults: describeErrors(errors, schema), removed: NO_PATHS };
    const fitting = errors === undefined ? normalized(args, { repair: false, extra: 'unnamed' }) : undefined;
    const isFitting = fitting !== undefined && (!refuseExtra || fitting.notes.removed.length === 0);
    // The arguments are valid only as they were sent.
    if (isFitting && fitting.errors !== undefined)
      return { ok: true, value: args, removed: NO_PATHS, coerced: NO_PATHS };
    let outcome = isFitting ? fitting : normalized(args, { repair: true, extra: 'unnamed' });
    const others: NormalizeOptions['extra'][] = [];
    // If faults remain, it may help to remove the keys that the chosen branch does not name, or no keys.
    if (!isFitting && outcome.notes.spared.length > 0) others.push('unknown');
    if (!isFitting && outcome.notes.removed.length > 0) others.push('none');
    for (const extra of outcome.errors === undefined ? [] : others) {
      const other = normalized(args, { repair: true, extra });
      if (other.errors !== undefined) continue;
      outcome = other;
      break;
    }
    const { value, notes } = outcome;
    const unknown = `is not a known property${refuseExtra ? ', and this tool accepts no others' : ''}`;
    const extra = (refuseExtra ? notes.removed : notes.misspelt).map((path) => ({ path, message: unknown }));
    if (outcome.errors === undefined && extra.length === 0) return { ok: true, value, ...changes(notes) };
    const faults = unwrapped(describeErrors(outcome.errors ?? [], schema), notes.wrapped);
    return { ok: false, faults: [...faults, ...extra], removed: notes.removed, value };
  };
}

function changes({ removed, coerced, dropped }: NormalizeNotes) {
  return { removed, coerced, dropped: dropped.length > 0 ? dropped : undefined };
}

function noNotes(): NormalizeNotes {
  return { removed: [], misspelt: [], spared: [], coerced: [], wrapped: [], dropped: [] };
}

/**
 * Faults must describe the arguments as they were sent: a value that was wrapped in an array, and then failed, was
 * not an array and had no item 0.
 */
function unwrapped(faults: readonly ValueFault[], wrapped: readonly string[]): readonly ValueFault[] {
  const open = new Set(wrapped);
  if (open.size === 0) return faults;
  const elements = new Set(wrapped.map((path) => `${path}.0`));
  const described: ValueFault[] = [];
  for (const fault of faults) {
    const { path } = fault;
    // The arrays around the value, from the outside in.
    for (let at = path.indexOf('.0'); at >= 0; at = path.indexOf('.0', at + 1)) {
      const list = path.slice(0, at);
      const isStep = at + 2 === path.length || path[at + 2] === '.';
      if (isStep && open.delete(list)) described.push({ path: list, message: 'must be array' });
    }
    if (!elements.has(path)) described.push(fault);
  }
  return described;
}

/** Enough for the tools of a large application. Beyond it, the oldest is dropped and compiled again when needed. */
const MAX_CHECKERS = 1000;
const checkers = new Map<string, Checker>();

/**
 * The checker of a schema, shared by equal schemas. Hand-written tools may create their schema at each access, and
 * factories at each call; compiling costs about a hundred times more than comparing.
 *
 * @throws Error if the schema itself is not valid.
 */
export function sharedChecker(schema: JsonSchema, options: CheckerOptions = {}): Checker {
  const key = `${options.refuseExtra === true} ${options.asSent === true} ${options.fillDefaults !== false} ${JSON.stringify(schema)}`;
  const known = checkers.get(key);
  if (known !== undefined) return known;
  const checker = createChecker(schema, options);
  checkers.set(key, checker);
  forgetOldest(checkers, MAX_CHECKERS);
  return checker;
}

/**
 * Checks arguments that were offered inside a property. Also accepts arguments without the property, in the tool's
 * own form. Paths are those of the sent arguments.
 */
export function wrappedChecker(checker: Checker, wrapper: string): Checker {
  const accept: Checker['accept'] = (args) => (isWrapped(args, wrapper) ? undefined : checker.accept(args));
  const check: Check = (args) => {
    if (!isWrapped(args, wrapper)) return checker(args);
    const read = readArguments(args[wrapper]);
    if (!read.ok) return { ok: false, faults: [{ path: wrapper, message: 'must be object' }], removed: [] };
    const checked = checker(read.value);
    const place = (paths: readonly string[]) => paths.map((path) => within(wrapper, path));
    const removed = [...place(checked.removed), ...Object.keys(args).filter((key) => key !== wrapper)];
    if (!checked.ok) return { ok: false, faults: placeWithin(checked.faults, wrapper), removed };
    const { coerced, dropped } = checked;
    return {
      ...checked,
      isAccepted: undefined,
      removed,
      coerced: place(coerced),
      dropped: dropped && place(dropped),
    };
  };
  return Object.assign(check, { accept, copy: checker.copy });
}

/** Whether arguments were sent inside the property in which they were offered. */
export function isWrapped(args: JsonObject, wrapper: string): boolean {
  return Object.hasOwn(args, wrapper);
}

/** Adds the property to the paths of faults inside it. */
export function placeWithin(faults: readonly ArgumentFault[], wrapper: string): readonly ArgumentFault[] {
  return faults.map((fault) => ({ ...fault, path: within(wrapper, fault.path) }));
}

function within(wrapper: string, path: string): string {
  return path === '' ? wrapper : `${wrapper}.${path}`;
}

/** Copies arguments, so that later changes do not affect the copy. */
type Copier = (args: JsonObject) => JsonObject;

/**
 * The copier for arguments that a closed schema accepts. Its schema determines where objects are, so that the code
 * takes a fraction of the time of a generic copy; it searches only the parts that the schema leaves open.
 */
function generateCopier(schema: JsonSchema): Copier {
  const functions: string[] = [];
  // One function for each part, because engines optimize a spread for the objects that it has seen.
  const add = (body: string): string => {
    functions.push(`const copy${functions.length} = (value) => { ${body} };`);
    return `copy${functions.length - 1}`;
  };
  /** The name of the function that copies a value; `undefined` for values that are not objects. */
  const copierOfPart = (part: unknown): string | undefined => {
    if (!isSchemaNode(part)) return 'copyOfJson';
    const { type, items, prefixItems, properties = {}, additionalProperties, patternProperties } = part;
    if (isScalar(part)) return undefined;
    // Null is accepted too.
    if (part.nullable === true) return 'copyOfJson';
    if (type === 'array' && prefixItems === undefined && isSchemaNode(items)) {
      const copyItem = copierOfPart(items);
      return add(
        `return ${copyItem === undefined ? '[...value]' : `value.map((item) => ${copyItem}(item))`};`,
      );
    }
    // Whether all objects within are in listed keys, without names from `Object.prototype`.
    const isListed =
      type === 'object' &&
      patternProperties === undefined &&
      (additionalProperties === false || isScalar(additionalProperties)) &&
      Object.keys(properties).every((name) => !(name in Object.prototype));
    if (!isListed) return 'copyOfJson';
    const inner = Object.entries(properties).map(([name, property]) => {
      const copyField = copierOfPart(property);
      const field = `copied[${JSON.stringify(name)}]`;
      return copyField === undefined ? '' : `if (${field} !== undefined) ${field} = ${copyField}(${field});`;
    });
    return add(`const copied = { ...value }; ${inner.join(' ')} return copied;`);
  };
  const whole = copierOfPart(schema) ?? 'copyOfJson';
  return new Function('copyOfJson', `${functions.join(' ')} return ${whole};`)(copyOfJson);
}

function isScalar(schema: unknown): boolean {
  return isSchemaNode(schema) && [schema.type].flat().every((name) => SCALARS.has(name));
}

const SCALARS: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'null']);

/** Lists the faults of a tool's result as JSON; empty if it matches. */
export type ResultChecker = (result: unknown) => readonly ArgumentFault[];

/**
 * Checks results against the declared output schema. The schema describes JSON, so that a `Date` counts as its text.
 *
 * @throws Error if the schema itself is not valid.
 */
export function createResultChecker(schema: JsonSchema): ResultChecker {
  refuseMalformed(schema);
  const validate = interpretSchema(schema).check;
  return (result) => {
    const json = plainJson(result);
    if (json === undefined && result !== undefined)
      return [{ path: '', message: 'cannot be written as JSON' }];
    const errors = validate(json);
    return errors === undefined ? [] : describeErrors(errors, schema);
  };
}

/** @throws TypeError if the schema, which messages call `name`, is not valid. */
export function refuseMalformed(schema: JsonSchema, name = 'schema'): void {
  const [fault] = schemaFaults(schema);
  if (fault !== undefined)
    throw new TypeError(`${name} is invalid: ${fault.path || 'it'} ${fault.problem}; write ${fault.fix}`);
}

/**
 * Keywords under which schemas are closed. Under other keywords, closing could make the whole schema accept more: if
 * a closed branch no longer matches, `oneOf` or `not` may succeed.
 */
const CLOSABLE: ReadonlySet<string> = new Set(keywordNames(({ closable }) => closable === true));

/** Keywords of an object that keep keys that `properties` does not list. */
const OPEN_KEYWORDS = keywordNames(({ minds }) => minds?.includes('unlisted') === true);

/** Keywords that may reject an object because a property was filled in. */
const MINDS_FILLING = keywordNames(({ minds }) => minds?.includes('filled') === true);

/** Whether a schema with `properties` may accept keys that they do not list. */
function keepsUnlisted(schema: JsonSchema): boolean {
  const { additionalProperties = false } = schema;
  return additionalProperties !== false || OPEN_KEYWORDS.some((keyword) => keyword in schema);
}

/**
 * A stricter form of a schema that accepts only arguments that need no normalizing: no unknown keys anywhere, and no
 * missing defaults below the root. The schema itself accepts everything that this form accepts, so a valid call costs
 * only one pass. Returns `undefined` if no such form can be derived.
 */
function closedSchema(schema: JsonSchema, defaultsOf: DefaultsOf): JsonSchema | undefined {
  const closed = new Set([schema]);
  const kept = new Set<JsonSchema>();
  for (const part of closed)
    for (const { node, name } of schemaPlaces(part))
      if (isSchemaNode(node)) (isClosable(name, part, schema) ? closed : kept).add(node);
  for (const part of kept) for (const within of subschemas(part)) kept.add(within);
  for (const part of kept) if (closed.has(part) || refers(part)) return undefined;
  let mindsFilling = MINDS_FILLING.some((keyword) => keyword in schema);
  for (const part of closed) {
    if ((part.unevaluatedProperties ?? part.unevaluatedItems) !== undefined) return undefined;
    if (typeof part.$ref === 'string') {
      const target = findReference(part.$ref, schema, part);
      if (typeof target !== 'object' || !closed.has(target)) return undefined;
      mindsFilling ||= target === schema;
    } else if (refers(part)) return undefined;
  }
  const close = (part: JsonSchema): JsonSchema => {
    if (!closed.has(part)) return part;
    const inner = mapSubschemas(part, close);
    if (inner.properties === undefined) return inner;
    const defaults = defaultsOf(part).map(([name]) => name);
    return {
      ...inner,
      ...(keepsUnlisted(inner) ? {} : { additionalProperties: false }),
      required: [...new Set([...(inner.required ?? []), ...defaults])],
    };
  };
  // Unless a keyword minds it, the root's own defaults are filled in without another check.
  return mindsFilling ? close(schema) : { ...close(schema), required: schema.required ?? [] };
}

/** If types or a tag distinguish the branches of `oneOf`, at most one branch matches. */
function isClosable(name: string, { oneOf }: JsonSchema, root: JsonSchema): boolean {
  if (name !== 'oneOf' || !Array.isArray(oneOf)) return CLOSABLE.has(name);
  const types = oneOf.map((branch) => [resolveReference(branch, root).type ?? []].flat());
  if (types.some((ofBranch) => ofBranch.length === 0)) return false;
  // An integer is a number.
  const names = types.flat().map((type) => (type === 'integer' ? 'number' : type));
  if (new Set(names).size === names.length) return true;
  if (!names.every((type) => type === 'object' || type === 'null')) return false;
  const chosen = unionChooser(oneOf, root)({});
  return chosen.kind === 'branch' || (chosen.kind === 'tag' && chosen.isCertain);
}

function refers({ $ref, $dynamicRef, $recursiveRef }: JsonSchema): boolean {
  return ($ref ?? $dynamicRef ?? $recursiveRef) !== undefined;
}

/** Checking, normalizing and the history each need stack for a level. No author intends this depth. */
const MOST_LEVELS = 500;
const MOST_FAULTS = 50;

const TOO_DEEP: ArgumentFault = {
  path: '',
  message: `the arguments are nested too deep: at most ${MOST_LEVELS} levels`,
};

/** Faults of arguments that are independent of the schema: numbers that JSON cannot write, and too deep nesting. */
function boundFaults(args: unknown): readonly ArgumentFault[] {
  const faults: ArgumentFault[] = [];
  if (isWithinBounds(args, 0)) return faults;
  return collectFaults(args, [], faults) ? faults : [TOO_DEEP];
}

/** Runs for each call, so it allocates nothing. */
function isWithinBounds(value: unknown, levels: number): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (!isObject(value)) return true;
  if (levels === MOST_LEVELS) return false;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const item = value[index];
      if (typeof item !== 'string' && !isWithinBounds(item, levels + 1)) return false;
    }
    return true;
  }
  for (const key in value) {
    const member = (value as Fields)[key];
    if (typeof member !== 'string' && !isWithinBounds(member, levels + 1)) return false;
  }
  return true;
}

/** Returns `false` if the nesting is too deep. `keys` lead to the value. */
function collectFaults(value: unknown, keys: string[], faults: ArgumentFault[]): boolean {
  if (typeof value === 'number' && !Number.isFinite(value) && faults.length < MOST_FAULTS) {
    const message = Number.isNaN(value) ? 'must be a number' : 'is too large for a number';
    faults.push({ path: keys.join('.'), message });
  }
  if (!isObject(value)) return true;
  if (keys.length === MOST_LEVELS) return false;
  for (const [key, member] of Object.entries(value)) {
    keys.push(key);
    if (!collectFaults(member, keys, faults)) return false;
    keys.pop();
  }
  return true;
}

/**
 * Creates the test for values that the schema would not bound: numbers that JSON cannot write, and too deep nesting.
 * Returns `undefined` if the schema bounds all values, as most schemas do. The test runs before the schema's check,
 * which may need stack for each level.
 */
function boundsTest(schema: JsonSchema): ((args: JsonObject) => boolean) | undefined {
  if (boundsValues(schema)) return undefined;
  const { type, properties = {}, additionalProperties, required: _, $defs: _defs, ...others } = schema;
  if (type !== 'object' || additionalProperties !== false || Object.keys(others).length > 0)
    return (args) => isWithinBounds(args, 0);
  // Only some properties may contain any value.
  const open = Object.keys(properties).filter((name) => {
    const property = properties[name];
    return !isRecord(property) || !boundsValues(property);
  });
  return (args) => open.every((name) => isWithinBounds(args[name], 1));
}

function boundsValues(schema: JsonSchema): boolean {
  for (const part of allSchemas(schema)) {
    const { type, anyOf, oneOf, items, additionalProperties = true } = part;
    if (refers(part) || schemaPlaces(part).some(({ node }) => node === true)) return false;
    if (part.enum !== undefined || 'const' in part) continue;
    const types = [type ?? []].flat();
    if (types.includes('object') && additionalProperties === true) return false;
    if (types.includes('array') && items === undefined) return false;
    if (types.length === 0 && (anyOf ?? oneOf) === undefined) return false;
  }
  return true;
}
