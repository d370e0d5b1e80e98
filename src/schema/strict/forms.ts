import { canonicalJson, copyOfJson, isRecord, setOwn } from '../../kernel/json.js';
import {
  type Field,
  type ObjectPlan,
  type Plan,
  Slot,
  type TuplePlan,
  type UnionPlan,
  type Use,
  usesWithin,
} from './plan.js';

/** How a field is strictly left out: not at all, as `null`, or as `null` where its value is wrapped. */
type Absence = 'never' | 'null' | 'wrapped';

/** The property that holds a value beside a tag, or one that may itself be `null`. */
export const VALUE = 'value';
/** The property that tells the branches of a union apart where nothing else does. */
export const VARIANT = 'variant';
/** The property that holds the pairs of an object within any value. */
export const ENTRIES = 'entries';

/**
 * What can only be told when all plans are there: what may be `null`, what has the same form on both sides,
 * and which unions need tags so that the way back is certain.
 */
export class Forms {
  /** What is used more than once, and what is used within itself. */
  readonly shared = new Set<Slot>();
  readonly recursive = new Set<Slot>();
  readonly #slots = new Set<Slot>();
  readonly #rewritten = new Set<Slot>();
  readonly #tags = new Map<Plan, ReadonlyMap<Use, string>>();
  readonly #absences = new Map<Field, Absence>();
  readonly #leading = new Set<Field>();

  constructor(root: Use) {
    this.#survey(root.slot, new Set());
    for (const { plan } of this.#slots)
      if (plan.kind === 'object' || plan.kind === 'tuple')
        for (const field of plan.fields) this.#absences.set(field, absenceOf(field));
    for (const slot of this.#slots) if (this.#isRewritten(slot.plan)) this.#rewritten.add(slot);
    this.#settle();
    for (const { plan } of this.#slots) if (plan.kind === 'union') this.#chooseLeading(plan);
  }

  absenceOf(field: Field): Absence {
    return this.#absences.get(field) ?? 'never';
  }

  /** The tags of a union's branches; those that need none are left out. */
  tagsOf(union: UnionPlan): ReadonlyMap<Use, string> | undefined {
    return this.#tags.get(union);
  }

  /** The fields as they are written: those first by which the branches of a union are told apart. */
  inOrder(fields: readonly Field[]): readonly Field[] {
    const [first, ...others] = fields.filter((field) => this.#leading.has(field));
    if (first === undefined || others.length > 0) return fields;
    return [first, ...fields.filter((field) => field !== first)];
  }

  /** Whether strict values of a plan are ordinary ones. */
  isSame(slot: Slot): boolean {
    return !this.#rewritten.has(slot);
  }

  #survey(slot: Slot, above: Set<Slot>): void {
    if (above.has(slot)) this.recursive.add(slot);
    if (this.#slots.has(slot)) {
      this.shared.add(slot);
      return;
    }
    this.#slots.add(slot);
    above.add(slot);
    for (const use of usesWithin(slot.plan)) this.#survey(use.slot, above);
    above.delete(slot);
  }

  #isRewritten(plan: Plan): boolean {
    if (plan.kind === 'object')
      return plan.rest !== undefined || plan.fields.some(({ isRequired }) => !isRequired);
    return plan.kind === 'tuple' || plan.kind === 'record' || plan.kind === 'any';
  }

  /** Objects of one union that begin with the same property have been refused: each begins with one of its own. */
  #chooseLeading(union: UnionPlan): void {
    const uses = union.branches.filter(({ slot }) => slot.plan.kind === 'object');
    const telling = tellingField(uses);
    const taken = new Set<string>();
    for (const { slot } of uses.length > 1 ? uses : []) {
      const fields = slot.plan.kind === 'object' ? slot.plan.fields : [];
      const first =
        fields.find(({ name }) => name === telling) ?? fields.find(({ name }) => !taken.has(name));
      if (first === undefined) continue;
      taken.add(first.name);
      this.#leading.add(first);
    }
  }

  /** What holds something rewritten is rewritten, and tags, which depend on that, rewrite more. */
  #settle(): void {
    let before: number;
    do {
      before = this.#rewritten.size;
      for (const slot of this.#slots) this.#settleOne(slot);
    } while (this.#rewritten.size > before);
  }

  #settleOne(slot: Slot): void {
    const { plan } = slot;
    if (plan.kind === 'union' && !this.#tags.has(plan) && this.#isUnclear(plan)) {
      this.#tags.set(plan, tagsFor(plan));
      this.#rewritten.add(slot);
    }
    if (usesWithin(plan).some((use) => this.#rewritten.has(use.slot))) this.#rewritten.add(slot);
  }

  #isUnclear({ branches }: UnionPlan): boolean {
    const lists = branches.filter(({ slot }) => ['list', 'record', 'any'].includes(slot.plan.kind));
    if (lists.length > 1 && lists.some(({ slot }) => this.#rewritten.has(slot))) return true;
    const byKeys = new Map<string, Use[]>();
    for (const use of branches) {
      const keys = strictKeys(use.slot.plan);
      if (keys === undefined) continue;
      const key = JSON.stringify([...keys].sort());
      byKeys.set(key, [...(byKeys.get(key) ?? []), use]);
    }
    return [...byKeys.values()].some((uses) => this.#areConfused(uses));
  }

  /** Objects of the same keys are told apart by constants, or need not be told apart. */
  #areConfused(uses: readonly Use[]): boolean {
    if (uses.length < 2 || uses.every(({ slot }) => !this.#rewritten.has(slot))) return false;
    return tellingField(uses) === undefined;
  }
}

function absenceOf({ use, isRequired }: Field): Absence {
  if (isRequired) return 'never';
  if (!allowsNull(use.slot.plan)) return 'null';
  // Left out it means null: there is nothing to keep apart.
  return use.fallback?.value === null ? 'never' : 'wrapped';
}

function allowsNull(plan: Plan): boolean {
  if (plan.kind === 'union') return plan.branches.some(({ slot }) => allowsNull(slot.plan));
  return plan.kind === 'any' || (plan.kind === 'scalar' && plan.type === 'null');
}

/** The keys of the object that a plan strictly is. */
function strictKeys(plan: Plan): readonly string[] | undefined {
  if (plan.kind === 'any') return [ENTRIES];
  return plan.kind === 'object' || plan.kind === 'tuple' ? keysOf(plan) : undefined;
}

function keysOf({ fields, rest }: ObjectPlan | TuplePlan): readonly string[] {
  return [...fields.map(({ name }) => name), ...(rest ? [rest.name] : [])];
}

/** The field whose constants tell objects apart: each has its own. */
function tellingField(uses: readonly Use[]): string | undefined {
  const plans = uses.map(({ slot }) => slot.plan).filter((plan) => plan.kind === 'object');
  const [first] = plans;
  if (first === undefined || plans.length < uses.length) return undefined;
  return first.fields
    .map(({ name }) => name)
    .find((name) => {
      const lists = plans.map((plan) => tellingConstants(plan, name));
      const all = lists.flat().map(canonicalJson);
      return lists.every((list) => list.length > 0) && new Set(all).size === all.length;
    });
}

function tellingConstants({ fields }: ObjectPlan, name: string): readonly unknown[] {
  const field = fields.find((each) => each.name === name);
  return field?.isRequired ? (constantsOf(field.use.slot) ?? []) : [];
}

/** A tag for each branch with parts: its name, or its number. */
function tagsFor({ branches }: UnionPlan): ReadonlyMap<Use, string> {
  const tags = new Map<Use, string>();
  const taken = new Set<string>();
  branches.forEach((use, index) => {
    const { plan, name } = use.slot;
    if (plan.kind === 'scalar') return;
    let tag = name ?? `${plan.kind}_${index + 1}`;
    while (taken.has(tag)) tag += '_';
    taken.add(tag);
    tags.set(use, tag);
  });
  return tags;
}

type Fields = Readonly<Record<string, unknown>>;

/** From strict values to ordinary ones. What is not strict stays as it is: the check of the call tells of it. */
export class Restorer {
  readonly #forms: Forms;

  constructor(forms: Forms) {
    this.#forms = forms;
  }

  restore(slot: Slot, value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if (this.#forms.isSame(slot)) return copyOfJson(value);
    const { plan } = slot;
    switch (plan.kind) {
      case 'list':
        return Array.isArray(value)
          ? value.map((item) => this.restore(plan.items.slot, item))
          : copyOfJson(value);
      case 'record':
        return pairsOf(value, (part) => this.restore(plan.values.slot, part))?.restored ?? copyOfJson(value);
      case 'object':
        return isRecord(value) ? this.#object(plan, value) : copyOfJson(value);
      case 'tuple':
        return isRecord(value) ? this.#tuple(plan, value) : copyOfJson(value);
      case 'union':
        return this.#union(plan, value);
      case 'any':
        return restoreAny(value);
      default:
        return copyOfJson(value);
    }
  }

  #object({ fields, rest }: ObjectPlan, value: Fields): unknown {
    const byName = new Map(fields.map((field) => [field.name, field]));
    const restored = {};
    let others: unknown;
    for (const key of Object.keys(value)) {
      const field = byName.get(key);
      if (field === undefined) {
        if (key === rest?.name) others = value[key];
        else setOwn(restored, key, copyOfJson(value[key]));
        continue;
      }
      const part = this.#field(field, value[key]);
      if (part !== ABSENT) setOwn(restored, key, part);
    }
    if (rest !== undefined && others !== undefined)
      this.#addRest({ restored, rest: rest.use, name: rest.name, others });
    return restored;
  }

  #addRest(to: {
    readonly restored: object;
    readonly rest: Use;
    readonly name: string;
    readonly others: unknown;
  }): void {
    const { plan } = to.rest.slot;
    const pairs =
      plan.kind === 'record'
        ? pairsOf(to.others, (part) => this.restore(plan.values.slot, part), to.restored)
        : undefined;
    if (pairs === undefined) setOwn(to.restored, to.name, copyOfJson(to.others));
    else for (const [key, part] of pairs.entries) setOwn(to.restored, key, part);
  }

  /** The value of a field, or that it is left out. */
  #field(field: Field, value: unknown): unknown {
    const { slot } = field.use;
    const absence = this.#forms.absenceOf(field);
    if (absence === 'never') return this.restore(slot, value);
    if (value === null) return ABSENT;
    const isWrapped = absence === 'wrapped' && isRecord(value) && hasOnly(value, VALUE);
    return this.restore(slot, isWrapped ? value[VALUE] : value);
  }

  #isThere(field: Field, value: Fields): boolean {
    const isNothing = value[field.name] === null && this.#forms.absenceOf(field) !== 'never';
    return Object.hasOwn(value, field.name) && !isNothing;
  }

  /** Places from the first to the last; with a gap between them, or something beside them, it is no tuple. */
  #tuple({ fields, rest }: TuplePlan, value: Fields): unknown {
    const places = fields.filter(({ name }) => Object.hasOwn(value, name));
    const others = rest === undefined ? [] : (value[rest.name] ?? []);
    const known = places.length + (rest !== undefined && Object.hasOwn(value, rest.name) ? 1 : 0);
    if (known !== Object.keys(value).length || !Array.isArray(others)) return copyOfJson(value);
    const isThere = fields.map((field) => this.#isThere(field, value));
    const count = isThere.indexOf(false) < 0 ? fields.length : isThere.indexOf(false);
    if (isThere.includes(true, count) || (count < fields.length && others.length > 0))
      return copyOfJson(value);
    const items = fields.slice(0, count).map((field) => this.#field(field, value[field.name]));
    const after = rest?.use.slot.plan;
    for (const item of others)
      items.push(after?.kind === 'list' ? this.restore(after.items.slot, item) : item);
    return items;
  }

  #union(union: UnionPlan, value: object): unknown {
    const tags = this.#forms.tagsOf(union);
    if (tags !== undefined) {
      if (!isRecord(value) || !hasOnly(value, VARIANT, VALUE)) return copyOfJson(value);
      const branch = union.branches.find((use) => tags.get(use) === value[VARIANT]);
      return branch === undefined ? copyOfJson(value) : this.restore(branch.slot, value[VALUE]);
    }
    const branch = Array.isArray(value)
      ? listBranch(union)
      : isRecord(value)
        ? objectBranch(union, value)
        : undefined;
    return branch === undefined ? copyOfJson(value) : this.restore(branch.slot, value);
  }
}

const ABSENT = Symbol('absent');

function hasOnly(value: Fields, ...names: readonly string[]): boolean {
  return Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));
}

interface Pairs {
  readonly restored: unknown;
  readonly entries: readonly (readonly [string, unknown])[];
}

/** What a list of pairs says; nothing where it is not one, has a key twice, or one that is taken. */
function pairsOf(value: unknown, restore: (part: unknown) => unknown, taken: object = {}): Pairs | undefined {
  if (!Array.isArray(value)) return undefined;
  const keys = new Set(Object.keys(taken));
  // All of them first: what is not restored as a whole is not restored in its parts.
  for (const pair of value) {
    if (!isRecord(pair) || !hasOnly(pair, 'key', VALUE)) return undefined;
    const { key } = pair;
    if (typeof key !== 'string' || keys.has(key)) return undefined;
    keys.add(key);
  }
  const entries = value.map((pair: Fields) => [String(pair.key), restore(pair[VALUE])] as const);
  return { restored: Object.fromEntries(entries), entries };
}

function restoreAny(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(restoreAny);
  if (!isRecord(value)) return value;
  const pairs = hasOnly(value, ENTRIES) ? pairsOf(value[ENTRIES], restoreAny) : undefined;
  return pairs?.restored ?? copyOfJson(value);
}

function listBranch({ branches }: UnionPlan): Use | undefined {
  return branches.find(({ slot }) => ['list', 'record', 'any'].includes(slot.plan.kind));
}

/** The branch of just these keys and its own constants; or the only one that may have been meant. */
function objectBranch({ branches }: UnionPlan, value: Fields): Use | undefined {
  const given = Object.keys(value).length;
  const possible = branches.filter(({ slot }) => strictKeys(slot.plan) !== undefined && agrees(slot, value));
  const exact = possible.find(({ slot }) => {
    const keys = strictKeys(slot.plan) ?? [];
    return keys.length === given && keys.every((key) => Object.hasOwn(value, key));
  });
  return exact ?? (possible.length === 1 ? possible[0] : undefined);
}

function agrees({ plan }: Slot, value: Fields): boolean {
  if (plan.kind !== 'object') return true;
  return plan.fields.every(({ name, use }) => {
    const constants = Object.hasOwn(value, name) ? constantsOf(use.slot) : undefined;
    return constants === undefined || value[name] === null || constants.includes(value[name]);
  });
}

/** The constants that a plan allows; nothing where it allows others too. */
function constantsOf({ plan }: Slot): readonly unknown[] | undefined {
  return plan.kind === 'scalar' ? plan.keywords.enum : undefined;
}
