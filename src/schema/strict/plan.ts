import type { JsonSchema } from '../../contract/json-schema.js';

/** What the strict form cannot ask for: it is said in the description, and judged by the check of the call. */
export interface Remark {
  readonly keyword: string;
  readonly text: string;
}

/** How a part of a schema was rewritten. */
export type EditKind =
  | 'anything'
  | 'closed'
  | 'constant'
  | 'merged'
  | 'narrowed'
  | 'nullable'
  | 'optional-null'
  | 'pairs'
  | 'rest'
  | 'root'
  | 'tagged'
  | 'tuple'
  | 'type'
  | 'union';

/** What is said of a part, whatever its form. */
interface Wording {
  readonly description: string;
  readonly remarks: readonly Remark[];
}

interface Planned extends Wording {
  readonly edits: readonly EditKind[];
}

export type ScalarType = 'null' | 'boolean' | 'number' | 'integer' | 'string';

/** A value that has the same form on both sides. */
export interface ScalarPlan extends Planned {
  readonly kind: 'scalar';
  readonly type: ScalarType;
  /** Beside the type. */
  readonly keywords: JsonSchema;
}

export interface ListPlan extends Planned {
  readonly kind: 'list';
  readonly items: Use;
  readonly keywords: JsonSchema;
}

/** An object with keys that nobody knows before: strictly a list of pairs. */
export interface RecordPlan extends Planned {
  readonly kind: 'record';
  /** What a key may be. */
  readonly key: ScalarPlan;
  readonly values: Use;
  readonly keywords: JsonSchema;
}

/** A property, or a place of a tuple. */
export interface Field {
  readonly name: string;
  readonly use: Use;
  readonly isRequired: boolean;
}

export interface ObjectPlan extends Planned {
  readonly kind: 'object';
  readonly fields: readonly Field[];
  /** Where the properties stand that have no field: a record. */
  readonly rest?: Rest | undefined;
}

/** A list whose places differ: strictly an object with one property for each. */
export interface TuplePlan extends Planned {
  readonly kind: 'tuple';
  readonly fields: readonly Field[];
  /** Where the items stand that have no place: a list. */
  readonly rest?: Rest | undefined;
}

interface Rest {
  readonly name: string;
  readonly use: Use;
}

export interface UnionPlan extends Planned {
  readonly kind: 'union';
  /** None of them is a union. */
  readonly branches: readonly Use[];
}

/** Any JSON value: strictly the definition of one. */
interface AnyPlan extends Planned {
  readonly kind: 'any';
}

/** What no value fits. */
interface NeverPlan extends Planned {
  readonly kind: 'never';
}

export type Plan =
  | ScalarPlan
  | ListPlan
  | RecordPlan
  | ObjectPlan
  | TuplePlan
  | UnionPlan
  | AnyPlan
  | NeverPlan;

/** The plan of a schema, used wherever the schema is. It is empty while the schema is read: schemas may be recursive. */
export class Slot {
  readonly name: string | undefined;
  #plan: Plan | undefined;

  constructor(name?: string, plan?: Plan) {
    this.name = name;
    this.#plan = plan;
  }

  get isFilled(): boolean {
    return this.#plan !== undefined;
  }

  get plan(): Plan {
    return this.#plan ?? NEVER;
  }

  fill(plan: Plan): void {
    this.#plan = plan;
  }
}

/** One place where a plan is used, with what is said there. */
export interface Use extends Wording {
  readonly slot: Slot;
  /** What is meant where nothing is given. */
  readonly fallback?: { readonly value: unknown } | undefined;
}

export const UNWORDED = { description: '', remarks: [], edits: [] } as const;

export const NEVER: NeverPlan = { kind: 'never', ...UNWORDED };

/** A use about which nothing is said. */
export function useOf(plan: Plan): Use {
  return { slot: new Slot(undefined, plan), description: '', remarks: [] };
}

/** The uses directly within a plan. */
export function usesWithin(plan: Plan): readonly Use[] {
  switch (plan.kind) {
    case 'list':
      return [plan.items];
    case 'record':
      return [plan.values];
    case 'object':
    case 'tuple':
      return [...plan.fields.map(({ use }) => use), ...(plan.rest ? [plan.rest.use] : [])];
    case 'union':
      return plan.branches;
    default:
      return [];
  }
}

/** What the plans of objects and lists need of the reader. */
export interface PartReader {
  /** The plan of schemas that hold together. */
  use(schemas: readonly JsonSchema[]): Use;
  /** A plan of what fits one of several. */
  useOneOf(branches: readonly Use[]): Use;
}
