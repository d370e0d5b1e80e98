import type { JsonSchema } from '../../contract/json-schema.js';
import { canonicalJson } from '../../kernel/json.js';
import { KEYWORDS } from '../keywords.js';
import { type Extras, listPlan, objectPlan } from './compound-plans.js';
import { asSchema, ConjunctionReader, refusesAll } from './conjunction.js';
import {
  type EditKind,
  NEVER,
  type PartReader,
  type Plan,
  type Remark,
  type ScalarPlan,
  type ScalarType,
  Slot,
  UNWORDED,
  type UnionPlan,
  type Use,
  useOf,
  usesWithin,
} from './plan.js';
import {
  boundsOf,
  constantPlans,
  isAskable,
  remarkOn,
  remarksOnAll,
  remarksOnGroup,
} from './scalar-plans.js';

/** Schemas of more parts than these are refused: what is distributed over unions may grow without end. */
const MOST_PLANS = 20_000;

/** The keywords of a branch that give it a form of its own; any others only judge. */
const FORMING: ReadonlySet<string> = new Set([
  ...['$ref', 'allOf', 'type', 'enum', 'const', 'properties', 'additionalProperties', 'patternProperties'],
  ...[
    'items',
    'prefixItems',
    'pattern',
    'format',
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
  ],
  ...['multipleOf', 'minItems', 'maxItems', 'anyOf', 'oneOf'],
]);

interface FormingUnion {
  readonly holder: JsonSchema;
  readonly keyword: 'anyOf' | 'oneOf';
  readonly branches: readonly JsonSchema[];
}

/** Reads a schema into a plan. */
export class PlanReader implements PartReader {
  /** Why there can be no plan. */
  readonly faults = new Set<string>();
  readonly #root: JsonSchema;
  readonly #extras: Extras;
  readonly #conjunctions: ConjunctionReader;
  readonly #names = new Map<JsonSchema, string>();
  readonly #ids = new Map<JsonSchema, number>();
  readonly #slots = new Map<string, Slot>();
  #rootParts: readonly JsonSchema[] = [];

  constructor(root: JsonSchema, extras: Extras) {
    this.#root = root;
    this.#extras = extras;
    this.#conjunctions = new ConjunctionReader(root, (problem) => this.faults.add(problem));
    for (const keyword of ['definitions', '$defs'] as const)
      for (const [name, schema] of Object.entries(Object(root[keyword])))
        this.#names.set(asSchema(schema), name);
  }

  /** The plan of the whole. */
  read(): Use {
    this.#rootParts = this.#conjunctions.read([this.#root]).parts;
    const root = this.use([this.#root]);
    this.#flattenBelow(root.slot, new Set());
    return root;
  }

  /** Unions within unions, now that all plans are there: a branch may have been read only in part. */
  #flattenBelow(slot: Slot, seen: Set<Slot>): void {
    if (seen.has(slot)) return;
    seen.add(slot);
    const { plan } = slot;
    if (plan.kind === 'union') slot.fill(this.#flattened(plan, slot));
    if (slot.plan.kind === 'never' && seen.size > 1) this.faults.add('a part of it fits nothing');
    for (const use of usesWithin(slot.plan)) this.#flattenBelow(use.slot, seen);
  }

  #flattened(plan: UnionPlan, slot: Slot): Plan {
    if (!plan.branches.some((use) => use.slot.plan.kind === 'union' || use.slot.plan.kind === 'never'))
      return plan;
    const seen = new Set([slot]);
    const branchesOf = (use: Use): readonly Use[] => {
      if (use.slot.plan.kind !== 'union') return [use];
      if (seen.has(use.slot)) return [];
      seen.add(use.slot);
      return flat(use).flatMap(branchesOf);
    };
    const union = this.#union(plan.branches.flatMap(branchesOf), plan.edits);
    const description = joined(plan.description, union.description);
    return { ...union, description, remarks: [...plan.remarks, ...union.remarks] };
  }

  use(schemas: readonly JsonSchema[]): Use {
    const { parts, remarks } = this.#conjunctions.read(schemas);
    const places = [...remarks, ...parts];
    const fallback = places.find((part) => part.default !== undefined);
    return {
      slot: this.#slotOf(parts),
      description: descriptionOf(remarks),
      remarks: remarksOnPlace(places),
      ...(fallback === undefined ? {} : { fallback: { value: fallback.default } }),
    };
  }

  useOneOf(branches: readonly Use[]): Use {
    const [only, ...others] = branches;
    if (only !== undefined && others.length === 0) return only;
    return useOf(this.#union(branches, []));
  }

  #slotOf(parts: readonly JsonSchema[]): Slot {
    const key = parts.map((part) => this.#idOf(part)).join();
    const known = this.#slots.get(key);
    if (known !== undefined) return known;
    const [first] = parts;
    const slot = new Slot(parts.length === 1 && first ? this.#nameOf(first) : undefined);
    this.#slots.set(key, slot);
    if (this.#slots.size > MOST_PLANS) this.faults.add('it has too many parts');
    // What holds for a schema was found wanting already: its parts are of no interest.
    slot.fill(this.faults.size > 0 ? NEVER : this.#plan(parts));
    return slot;
  }

  #nameOf(part: JsonSchema): string | undefined {
    return this.#names.get(part) ?? (typeof part.title === 'string' ? part.title : undefined);
  }

  #idOf(part: JsonSchema): number {
    const id = this.#ids.get(part) ?? this.#ids.size;
    this.#ids.set(part, id);
    return id;
  }

  #plan(parts: readonly JsonSchema[]): Plan {
    if (refusesAll(parts)) return NEVER;
    const description = descriptionOf(parts);
    const edits: readonly EditKind[] = parts.length > 1 ? ['merged'] : [];
    const union = this.#formingUnion(parts);
    const values = allowedValues(parts);
    const remarks = remarksOnAll(parts, union === undefined || values !== undefined ? [] : [union.keyword]);
    const plan = values !== undefined ? this.#constants(parts, values) : this.#formed(parts, union);
    return {
      ...plan,
      description: joined(description, plan.description),
      remarks: [...remarks, ...plan.remarks],
      edits: [...edits, ...plan.edits],
    };
  }

  #formed(parts: readonly JsonSchema[], union: FormingUnion | undefined): Plan {
    if (union !== undefined) return this.#distributed(parts, union);
    const said = allowedTypes(parts);
    const types = said ?? impliedTypes(parts);
    if (said === undefined && types.length === 0) return { kind: 'any', ...UNWORDED, edits: ['anything'] };
    const plans = types.map((type) => this.#ofType(type, parts));
    const [only, ...others] = plans;
    const plan = only && others.length === 0 ? only : this.#union(plans.map(useOf), []);
    return said === undefined ? { ...plan, edits: [...plan.edits, 'type'] } : plan;
  }

  #ofType(type: string, parts: readonly JsonSchema[]): Plan {
    if (isScalarType(type)) return scalarPlan(type, parts);
    if (type === 'array') return listPlan(parts, this);
    if (type === 'object')
      return objectPlan(parts, { reader: this, isRoot: this.#isRoot(parts), extras: this.#extras });
    return NEVER;
  }

  #isRoot(parts: readonly JsonSchema[]): boolean {
    return (
      parts.length === this.#rootParts.length && parts.every((part, index) => part === this.#rootParts[index])
    );
  }

  #constants(parts: readonly JsonSchema[], values: readonly unknown[]): Plan {
    const types = allowedTypes(parts);
    const fitting = types === undefined ? values : values.filter((value) => isOfTypes(value, types));
    const edits: readonly EditKind[] = parts.some((part) => 'const' in part) ? ['constant'] : [];
    return this.#union(constantPlans(fitting).map(useOf), edits);
  }

  #formingUnion(parts: readonly JsonSchema[]): FormingUnion | undefined {
    for (const holder of parts)
      for (const keyword of ['anyOf', 'oneOf'] as const) {
        const list = holder[keyword];
        if (!Array.isArray(list)) continue;
        const branches = list.map(asSchema);
        if (branches.some((branch) => Object.keys(branch).some((key) => FORMING.has(key))))
          return { holder, keyword, branches };
      }
    return undefined;
  }

  /** What stands beside a union holds in each of its branches. */
  #distributed(parts: readonly JsonSchema[], { holder, keyword, branches }: FormingUnion): Plan {
    const rest = parts.map((part) => (part === holder ? this.#conjunctions.without(part, [keyword]) : part));
    const base = this.#conjunctions.judging(rest);
    const uses = branches.map((branch) => this.use([branch, ...this.#besides(branch, base)]));
    const plan = this.#union(uses, keyword === 'oneOf' ? ['union'] : []);
    return base.length > 0 && plan.kind === 'union' ? { ...plan, edits: ['merged', ...plan.edits] } : plan;
  }

  /** What stands beside a union and says more than the branch does. */
  #besides(branch: JsonSchema, base: readonly JsonSchema[]): readonly JsonSchema[] {
    const [only, ...others] = base;
    if (only === undefined || others.length > 0 || Object.keys(only).join() !== 'type') return base;
    const types = allowedTypes([only]) ?? [];
    const own = allowedTypes(this.#conjunctions.read([branch]).parts);
    return own?.every((type) => types.includes(type)) ? [] : base;
  }

  #union(uses: readonly Use[], edits: readonly EditKind[]): Plan {
    const branches: Use[] = [];
    const scalars = new Set<string>();
    const isOpen = uses.some(({ slot }) => slot.plan.kind === 'any');
    for (const use of uses.flatMap(flat)) {
      const { plan, isFilled } = use.slot;
      if (plan.kind === 'never' && isFilled) continue;
      if (plan.kind === 'scalar') {
        const key = JSON.stringify([plan.type, plan.keywords, plan.remarks]);
        if (isOpen || scalars.has(key)) continue;
        scalars.add(key);
      }
      if (!branches.some(({ slot }) => slot === use.slot)) branches.push(use);
    }
    const [only, ...others] = branches;
    if (only === undefined) return NEVER;
    if (others.length > 0 || !only.slot.isFilled)
      return { kind: 'union', ...UNWORDED, edits: [...edits, ...uses.flatMap(unionEdits)], branches };
    const { plan } = only.slot;
    return {
      ...plan,
      description: joined(only.description, plan.description),
      remarks: [...only.remarks, ...plan.remarks],
      edits: [...edits, ...plan.edits],
    };
  }
}

/** The branches of a union within a union, each with what is said of it. */
function flat(use: Use): readonly Use[] {
  const { plan } = use.slot;
  if (plan.kind !== 'union') return [use];
  const description = joined(use.description, plan.description);
  const remarks = [...use.remarks, ...plan.remarks];
  if (description === '' && remarks.length === 0) return plan.branches;
  return plan.branches.map((branch) => ({
    ...branch,
    description: joined(description, branch.description),
    remarks: [...remarks, ...branch.remarks],
  }));
}

function unionEdits({ slot }: Use): readonly EditKind[] {
  return slot.plan.kind === 'union' ? slot.plan.edits : [];
}

function joined(first: string, second: string): string {
  if (first === '' || second === '' || first === second) return first || second;
  return `${first}\n${second}`;
}

function isOfTypes(value: unknown, types: readonly string[]): boolean {
  return types.some((type) => {
    if (type === 'null') return value === null;
    if (type === 'array') return Array.isArray(value);
    if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
    return type === 'integer' ? Number.isInteger(value) : typeof value === type;
  });
}

/** The types that all parts allow, `integer` only where `number` is not; nothing where no part says any. */
function allowedTypes(parts: readonly JsonSchema[]): readonly string[] | undefined {
  const lists = parts.filter(({ type }) => type !== undefined).map(typesOf);
  const [first, ...others] = lists;
  if (first === undefined) return undefined;
  const common = others.reduce((before, list) => before.flatMap((type) => narrowed(type, list)), first);
  const types = [...new Set(common)];
  return types.includes('number') ? types.filter((type) => type !== 'integer') : types;
}

function typesOf({ type, nullable }: JsonSchema): readonly string[] {
  const types = [type ?? []].flat();
  return nullable === true && !types.includes('null') ? [...types, 'null'] : types;
}

function narrowed(type: string, types: readonly string[]): readonly string[] {
  if (types.includes(type)) return [type];
  if (type === 'number' && types.includes('integer')) return ['integer'];
  return type === 'integer' && types.includes('number') ? ['integer'] : [];
}

/** The values that all parts allow, where `enum` or `const` lists them. */
function allowedValues(parts: readonly JsonSchema[]): readonly unknown[] | undefined {
  const lists = parts.flatMap((part) => [
    ...(Array.isArray(part.enum) ? [part.enum] : []),
    ...('const' in part && part.const !== undefined ? [[part.const]] : []),
  ]);
  const [first, ...others] = lists.map((list) => new Map(list.map((value) => [canonicalJson(value), value])));
  if (first === undefined) return undefined;
  const common = [...first].filter(([key]) => others.every((other) => other.has(key)));
  return common.map(([, value]) => value);
}

/** The types that the keywords speak of, where no part says a type. */
function impliedTypes(parts: readonly JsonSchema[]): readonly string[] {
  const groups = parts.flatMap((part) => Object.keys(part).map((keyword) => KEYWORDS.get(keyword)?.of));
  return [...new Set(groups)].flatMap((group) => {
    if (group === undefined) return [];
    return group === 'text' ? 'string' : group;
  });
}

/** What is said where something stands and not of what: defaults, examples. */
function remarksOnPlace(schemas: readonly JsonSchema[]): readonly Remark[] {
  const said = new Map<string, Remark>();
  for (const schema of schemas)
    for (const keyword of ['default', 'examples', 'deprecated'])
      if (schema[keyword] !== undefined && !said.has(keyword))
        for (const remark of remarkOn(keyword, schema[keyword])) said.set(keyword, remark);
  return [...said.values()];
}

/** What schemas say of themselves in words, each once. */
function descriptionOf(schemas: readonly JsonSchema[]): string {
  const texts = schemas.map(({ description, title }) =>
    typeof description === 'string' && description !== '' ? description : title,
  );
  const words = texts.filter((text): text is string => typeof text === 'string' && text !== '');
  return [...new Set(words)].join('\n');
}

function isScalarType(type: string): type is ScalarType {
  return ['null', 'boolean', 'number', 'integer', 'string'].includes(type);
}

/** The plan of a value without parts. */
function scalarPlan(type: ScalarType, parts: readonly JsonSchema[]): ScalarPlan {
  if (type === 'string') return textPlan(parts);
  if (type === 'number' || type === 'integer') return numberPlan(type, parts);
  return { kind: 'scalar', ...UNWORDED, type, keywords: {} };
}

function textPlan(parts: readonly JsonSchema[]): ScalarPlan {
  const keywords: Record<string, unknown> = {};
  const remarks: Remark[] = [...remarksOnGroup(parts, 'text')];
  for (const part of parts)
    for (const keyword of ['pattern', 'format']) {
      const value = part[keyword];
      if (value === undefined || value === keywords[keyword]) continue;
      if (keywords[keyword] === undefined && isAskable(keyword, value)) keywords[keyword] = value;
      else remarks.push(...remarkOn(keyword, value));
    }
  return { kind: 'scalar', ...UNWORDED, type: 'string', keywords, remarks };
}

function numberPlan(type: 'number' | 'integer', parts: readonly JsonSchema[]): ScalarPlan {
  const { keywords, remarks } = boundsOf(parts, 'number');
  return {
    kind: 'scalar',
    ...UNWORDED,
    type,
    keywords,
    remarks: [...remarksOnGroup(parts, 'number'), ...remarks],
  };
}
