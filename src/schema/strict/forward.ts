import { copyOfJson, isRecord, setOwn } from '../../kernel/json.js';
import { ENTRIES, type Forms, VALUE, VARIANT } from './forms.js';
import type {
  Field,
  ObjectPlan,
  Plan,
  RecordPlan,
  ScalarPlan,
  Slot,
  TuplePlan,
  UnionPlan,
  Use,
} from './plan.js';

type Fields = Readonly<Record<string, unknown>>;

/** From ordinary values to strict ones. What fits no plan stays as it is. */
export class Forwarder {
  readonly #forms: Forms;

  constructor(forms: Forms) {
    this.#forms = forms;
  }

  forward(slot: Slot, value: unknown): unknown {
    return this.#forward(slot, value, new Fits());
  }

  #forward(slot: Slot, value: unknown, fits: Fits): unknown {
    const { plan } = slot;
    if (plan.kind === 'union') return this.#union(plan, value, fits);
    if (typeof value !== 'object' || value === null) return value;
    if (this.#forms.isSame(slot)) return copyOfJson(value);
    switch (plan.kind) {
      case 'list':
        return Array.isArray(value)
          ? value.map((item) => this.#forward(plan.items.slot, item, fits))
          : copyOfJson(value);
      case 'record':
        return isRecord(value) ? this.#pairs(plan, Object.entries(value), fits) : copyOfJson(value);
      case 'object':
        return isRecord(value) ? this.#object(plan, value, fits) : copyOfJson(value);
      case 'tuple':
        return Array.isArray(value) ? this.#tuple(plan, value, fits) : copyOfJson(value);
      case 'any':
        return forwardAny(value);
      default:
        return copyOfJson(value);
    }
  }

  #pairs({ values }: RecordPlan, entries: readonly (readonly [string, unknown])[], fits: Fits): unknown {
    return entries.map(([key, part]) => ({ key, [VALUE]: this.#forward(values.slot, part, fits) }));
  }

  #object({ fields, rest }: ObjectPlan, value: Fields, fits: Fits): unknown {
    const names = new Set(fields.map(({ name }) => name));
    const strict = {};
    for (const field of fields) {
      if (Object.hasOwn(value, field.name))
        setOwn(strict, field.name, this.#field(field, value[field.name], fits));
      else if (this.#canBeNull(field)) setOwn(strict, field.name, null);
    }
    const others = Object.entries(value).filter(([key]) => !names.has(key));
    if (rest?.use.slot.plan.kind === 'record')
      setOwn(strict, rest.name, this.#pairs(rest.use.slot.plan, others, fits));
    else for (const [key, part] of others) setOwn(strict, key, copyOfJson(part));
    return strict;
  }

  /** Whether a field that is left out is `null`: so it is left out, or that is what it means then. */
  #canBeNull(field: Field): boolean {
    return (
      !field.isRequired && (this.#forms.absenceOf(field) !== 'never' || field.use.fallback?.value === null)
    );
  }

  #field(field: Field, value: unknown, fits: Fits): unknown {
    const strict = this.#forward(field.use.slot, value, fits);
    return this.#forms.absenceOf(field) === 'wrapped' ? { [VALUE]: strict } : strict;
  }

  #tuple({ fields, rest }: TuplePlan, value: readonly unknown[], fits: Fits): unknown {
    if (value.length > fields.length && rest === undefined) return copyOfJson(value);
    const strict = {};
    fields.forEach((field, index) => {
      if (index < value.length) setOwn(strict, field.name, this.#field(field, value[index], fits));
      else if (!field.isRequired) setOwn(strict, field.name, null);
    });
    const after = rest?.use.slot.plan;
    if (rest !== undefined && after?.kind === 'list') {
      const others = value.slice(fields.length);
      setOwn(
        strict,
        rest.name,
        others.map((item) => this.#forward(after.items.slot, item, fits)),
      );
    }
    return strict;
  }

  #union(union: UnionPlan, value: unknown, fits: Fits): unknown {
    const branch = branchFor(union, value, fits);
    if (branch === undefined) return copyOfJson(value);
    const strict = this.#forward(branch.slot, value, fits);
    const tag = this.#forms.tagsOf(union)?.get(branch);
    return tag === undefined ? strict : { [VARIANT]: tag, [VALUE]: strict };
  }
}

/** The branch that a value fits, or at least is of the kind of. */
function branchFor({ branches }: UnionPlan, value: unknown, { exact, loose }: Fits): Use | undefined {
  const candidates = branches.filter(({ slot }) => isOfKind(slot, value));
  if (candidates.length < 2) return candidates[0];
  return (
    candidates.find(({ slot }) => exact.has(slot, value)) ??
    candidates.find(({ slot }) => loose.has(slot, value)) ??
    candidates[0]
  );
}

/** The values that have the form of plans: without other properties than these have, or with any. */
class Fits {
  readonly exact = new FitSet('exact');
  readonly loose = new FitSet('loose');
}

class FitSet {
  readonly #mode: 'exact' | 'loose';
  /** Each object is looked at once for each plan. */
  readonly #known = new Map<Slot, WeakMap<object, boolean>>();

  constructor(mode: 'exact' | 'loose') {
    this.#mode = mode;
  }

  has(slot: Slot, value: unknown): boolean {
    if (!isOfKind(slot, value)) return false;
    if (typeof value !== 'object' || value === null) return true;
    const known = this.#known.get(slot) ?? new WeakMap<object, boolean>();
    this.#known.set(slot, known);
    const found = known.get(value) ?? this.#partsFit(slot, value);
    known.set(value, found);
    return found;
  }

  #partsFit({ plan }: Slot, value: object): boolean {
    if (plan.kind === 'union') return plan.branches.some(({ slot }) => this.has(slot, value));
    if (plan.kind === 'any') return true;
    if (Array.isArray(value)) return this.#itemsFit(plan, value);
    const fields = value as Fields;
    if (plan.kind === 'record') return this.#allFit(plan.values, Object.values(fields));
    return plan.kind === 'object' && this.#fieldsFit(plan, fields);
  }

  #itemsFit(plan: Plan, items: readonly unknown[]): boolean {
    if (plan.kind === 'list') return this.#allFit(plan.items, items);
    if (plan.kind !== 'tuple') return false;
    const { fields, rest } = plan;
    const least = fields.filter(({ isRequired }) => isRequired).length;
    if (items.length < least) return false;
    const others = items.slice(fields.length);
    const after = rest?.use.slot.plan;
    const othersFit = after?.kind === 'list' ? this.#allFit(after.items, others) : others.length === 0;
    return othersFit && fields.every(({ use }, at) => at >= items.length || this.has(use.slot, items[at]));
  }

  #fieldsFit({ fields, rest }: ObjectPlan, value: Fields): boolean {
    const names = new Set(fields.map(({ name }) => name));
    const others = Object.keys(value).filter((key) => !names.has(key));
    const record = rest?.use.slot.plan;
    const othersFit =
      record?.kind === 'record'
        ? this.#allFit(
            record.values,
            others.map((key) => value[key]),
          )
        : others.length === 0 || this.#mode === 'loose';
    return othersFit && fields.every((field) => this.#fieldFits(field, value));
  }

  #fieldFits({ name, use, isRequired }: Field, value: Fields): boolean {
    return Object.hasOwn(value, name) ? this.has(use.slot, value[name]) : !isRequired;
  }

  #allFit({ slot }: Use, values: readonly unknown[]): boolean {
    return values.every((part) => this.has(slot, part));
  }
}

function isOfKind({ plan }: Slot, value: unknown): boolean {
  switch (plan.kind) {
    case 'scalar':
      return isOfScalar(plan, value);
    case 'list':
    case 'tuple':
      return Array.isArray(value);
    case 'record':
    case 'object':
      return isRecord(value);
    case 'union':
      return plan.branches.some(({ slot }) => isOfKind(slot, value));
    default:
      return plan.kind === 'any';
  }
}

function isOfScalar({ type, keywords }: ScalarPlan, value: unknown): boolean {
  if (keywords.enum !== undefined && !keywords.enum.includes(value)) return false;
  if (type === 'null') return value === null;
  return type === 'integer' ? Number.isInteger(value) : typeof value === type;
}

function forwardAny(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(forwardAny);
  if (!isRecord(value)) return value;
  return { [ENTRIES]: Object.entries(value).map(([key, part]) => ({ key, [VALUE]: forwardAny(part) })) };
}
