import { copyOfJson, isRecord, setOwn } from '../../kernel/json.js';
import { ENTRIES, type Forms, strictKeys, VALUE, VARIANT } from './forms.js';
import {
  constantsOf,
  type Field,
  type ObjectPlan,
  type Slot,
  type TuplePlan,
  type UnionPlan,
  type Use,
} from './plan.js';

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
