import type { JsonSchema } from '../../contract/json-schema.js';
import { copyOfJson, setOwn } from '../../kernel/json.js';
import { ENTRIES, type Forms, VALUE, VARIANT } from './forms.js';
import {
  type EditKind,
  type Field,
  type ObjectPlan,
  type Plan,
  type RecordPlan,
  type Remark,
  type Slot,
  type TuplePlan,
  type UnionPlan,
  type Use,
  useOf,
} from './plan.js';

/** One thing that is different in the strict form of a schema. */
export type StrictEdit =
  | {
      /** Where, as a path within the strict schema; empty for the whole. */
      readonly at: string;
      readonly kind: EditKind;
    }
  | {
      readonly at: string;
      /** Not asked for but said in the description; the check of the call judges it. */
      readonly kind: 'said';
      readonly keyword: string;
    };

interface Written {
  readonly schema: JsonSchema;
  readonly edits: readonly StrictEdit[];
}

/** Writes the strict schema of a plan, and notes what is different in it. */
export function writeStrict(root: Use, forms: Forms, wrapper: string | undefined): Written {
  const writer = new StrictWriter(forms);
  return writer.whole(root, wrapper);
}

class StrictWriter {
  readonly edits: StrictEdit[] = [];
  readonly #forms: Forms;
  readonly #definitions: Record<string, JsonSchema> = {};
  readonly #names = new Map<Slot | 'any' | 'entries', string>();

  constructor(forms: Forms) {
    this.#forms = forms;
  }

  whole(root: Use, wrapper: string | undefined): Written {
    const schema = wrapper === undefined ? this.#root(root) : this.#wrapped(root, wrapper);
    const $defs = Object.keys(this.#definitions).length > 0 ? { $defs: this.#definitions } : {};
    return { schema: { ...schema, ...$defs }, edits: this.edits };
  }

  /** The root stands for itself, also where it is used within itself. */
  #root(root: Use): JsonSchema {
    if (this.#forms.recursive.has(root.slot)) this.#names.set(root.slot, '');
    return this.#inline(root, '');
  }

  #wrapped(root: Use, wrapper: string): JsonSchema {
    this.#note('', 'root');
    return objectSchema([[wrapper, this.#use(root, wrapper)]]);
  }

  #use(use: Use, at: string): JsonSchema {
    const { slot } = use;
    const { plan } = slot;
    if (plan.kind === 'any') return this.#referred(this.#anything(), { use, at });
    const isDefined = this.#forms.recursive.has(slot) || (this.#forms.shared.has(slot) && !isSmall(plan));
    if (!isDefined) return this.#inline(use, at);
    return this.#referred(this.#definition(slot), { use, at });
  }

  #definition(slot: Slot): string {
    const known = this.#names.get(slot);
    if (known !== undefined) return known;
    const name = this.#freeName(slot.name ?? 'part');
    this.#names.set(slot, name);
    setOwn(this.#definitions, name, {});
    setOwn(this.#definitions, name, this.#inline({ slot, description: '', remarks: [] }, `$defs.${name}`));
    return name;
  }

  #freeName(wanted: string): string {
    const plain = wanted.replaceAll(/[^\w-]+/g, '_') || 'part';
    let name = plain;
    for (let count = 2; Object.hasOwn(this.#definitions, name); count++) name = `${plain}_${count}`;
    return name;
  }

  #anything(): string {
    const known = this.#names.get('any');
    if (known !== undefined) return known;
    const name = this.#freeName('any_value');
    this.#names.set('any', name);
    setOwn(this.#definitions, name, {});
    const $ref = pointerTo(name);
    const scalars = ['string', 'number', 'boolean', 'null'].map((type) => ({ type }));
    const list = { type: 'array', items: { $ref } };
    const object = objectSchema([[ENTRIES, { $ref: pointerTo(this.#entries()) }]]);
    const description = 'Any JSON value; an object is the list of its entries.';
    setOwn(this.#definitions, name, { description, anyOf: [...scalars, list, object] });
    return name;
  }

  #entries(): string {
    const known = this.#names.get('entries');
    if (known !== undefined) return known;
    const name = this.#freeName('any_entries');
    this.#names.set('entries', name);
    setOwn(this.#definitions, name, {});
    const pair = objectSchema([
      ['key', { type: 'string' }],
      [VALUE, { $ref: pointerTo(this.#anything()) }],
    ]);
    const description = 'The properties of an object with any keys; each key once.';
    setOwn(this.#definitions, name, { description, type: 'array', items: pair });
    return name;
  }

  /** Beside a reference nothing may stand: what is said there goes around it. */
  #referred(name: string, { use, at }: { readonly use: Use; readonly at: string }): JsonSchema {
    const $ref = name === '' ? '#' : pointerTo(name);
    const { plan } = use.slot;
    const ofPlan: readonly Remark[] = plan.kind === 'any' ? plan.remarks : [];
    const words = this.#words(at, [...use.remarks, ...ofPlan]);
    if (plan.kind === 'any') for (const kind of plan.edits) this.#note(at, kind);
    const description = sentences([use.description, plan.kind === 'any' ? plan.description : '', ...words]);
    return description === '' ? { $ref } : { description, anyOf: [{ $ref }] };
  }

  #inline(use: Use, at: string): JsonSchema {
    const { plan } = use.slot;
    for (const kind of plan.edits) this.#note(at, kind);
    const words = this.#words(at, [...use.remarks, ...plan.remarks]);
    const description = sentences([use.description, plan.description, ...words]);
    const schema = this.#form(plan, at);
    if (description === '') return schema;
    return '$ref' in schema ? { description, anyOf: [schema] } : { description, ...schema };
  }

  #form(plan: Plan, at: string): JsonSchema {
    switch (plan.kind) {
      case 'scalar':
        return { type: plan.type, ...(copyOfJson(plan.keywords) as JsonSchema) };
      case 'list':
        return { type: 'array', items: this.#use(plan.items, below(at, 'items')), ...plan.keywords };
      case 'record':
        return this.#record(plan, at);
      case 'object':
      case 'tuple':
        return this.#object(plan, at);
      case 'union':
        return this.#union(plan, at);
      case 'any':
        return { anyOf: [{ $ref: pointerTo(this.#anything()) }] };
      default:
        throw new Error('what fits nothing has no strict form');
    }
  }

  #record(plan: RecordPlan, at: string): JsonSchema {
    const { key, values, keywords } = plan;
    if (isPlainRecord(plan)) {
      for (const kind of values.slot.plan.edits) this.#note(below(at, VALUE), kind);
      return { $ref: pointerTo(this.#entries()) };
    }
    const items = objectSchema([
      ['key', this.#inline(useOf(key), below(at, 'key'))],
      [VALUE, this.#use(values, below(at, VALUE))],
    ]);
    return { type: 'array', items, ...keywords };
  }

  #object({ fields, rest }: ObjectPlan | TuplePlan, at: string): JsonSchema {
    const rows = this.#forms
      .inOrder(fields)
      .map((field): Row => [field.name, this.#field(field, below(at, field.name))]);
    const others: readonly Row[] = rest ? [[rest.name, this.#use(rest.use, below(at, rest.name))]] : [];
    return objectSchema([...rows, ...others]);
  }

  #field(field: Field, at: string): JsonSchema {
    const schema = this.#use(field.use, at);
    const absence = this.#forms.absenceOf(field);
    if (absence === 'never') return schema;
    this.#note(at, absence === 'null' ? 'nullable' : 'optional-null');
    if (absence === 'null') return nullable(schema);
    const description = `null leaves it out; {"${VALUE}": null} says null.`;
    return { description, anyOf: [objectSchema([[VALUE, schema]]), { type: 'null' }] };
  }

  #union(union: UnionPlan, at: string): JsonSchema {
    const tags = this.#forms.tagsOf(union);
    if (tags !== undefined) this.#note(at, 'tagged');
    const ordered = this.#ordered(union.branches);
    const schemas = ordered.map((use, index) => {
      const place = below(at, `anyOf.${index}`);
      const tag = tags?.get(use);
      if (tag === undefined) return this.#use(use, place);
      return objectSchema([
        [VARIANT, { type: 'string', enum: [tag] }],
        [VALUE, this.#use(use, below(place, VALUE))],
      ]);
    });
    const [only, ...others] = schemas.filter(({ type }) => type !== 'null');
    const isNullable = schemas.some(({ type }) => type === 'null');
    if (only !== undefined && others.length === 0 && isNullable) return nullable(only);
    return { anyOf: schemas };
  }

  /** `null` comes last. */
  #ordered(branches: readonly Use[]): readonly Use[] {
    const isNull = ({ slot }: Use): boolean => slot.plan.kind === 'scalar' && slot.plan.type === 'null';
    return [...branches.filter((use) => !isNull(use)), ...branches.filter(isNull)];
  }

  #words(at: string, remarks: readonly Remark[]): readonly string[] {
    for (const { keyword } of remarks)
      if (!ONLY_SAID.has(keyword)) this.edits.push({ at, kind: 'said', keyword });
    return remarks.map(({ text }) => text);
  }

  #note(at: string, kind: EditKind): void {
    this.edits.push({ at, kind });
  }
}

/** Nothing is judged by them. */
const ONLY_SAID: ReadonlySet<string> = new Set(['default', 'examples', 'deprecated']);

/** Whether it is what every object without a known key is. */
function isPlainRecord({ key, values, keywords }: RecordPlan): boolean {
  const { plan } = values.slot;
  const isPlain = plan.kind === 'any' && plan.description === '' && plan.remarks.length === 0;
  const isWordless = values.description === '' && values.remarks.length === 0 && key.description === '';
  const conditions = [...Object.keys(key.keywords), ...Object.keys(keywords), ...key.remarks];
  return isPlain && isWordless && conditions.length === 0;
}

/** Not worth a definition, however often it is used. */
function isSmall(plan: Plan): boolean {
  if (plan.kind === 'list') return isSmall(plan.items.slot.plan);
  if (plan.kind === 'union') return plan.branches.every(({ slot }) => slot.plan.kind === 'scalar');
  return plan.kind === 'scalar';
}

type Row = readonly [name: string, schema: JsonSchema];

function objectSchema(rows: readonly Row[]): JsonSchema {
  return {
    type: 'object',
    properties: Object.fromEntries(rows),
    required: rows.map(([name]) => name),
    additionalProperties: false,
  };
}

function pointerTo(name: string): string {
  return `#/$defs/${name}`;
}

function below(at: string, step: string): string {
  return at === '' ? step : `${at}.${step}`;
}

function sentences(texts: readonly string[]): string {
  return [...new Set(texts.filter((text) => text !== ''))].join('\n');
}

function nullable(schema: JsonSchema): JsonSchema {
  const { type, anyOf, description, ...keywords } = schema;
  const isScalar = typeof type === 'string' && type !== 'array' && type !== 'object';
  const words = description === undefined ? {} : { description };
  if (isScalar) {
    const values = keywords.enum === undefined ? {} : { enum: [...keywords.enum, null] };
    return { ...words, type: [type, 'null'], ...keywords, ...values };
  }
  if (anyOf !== undefined) return { ...words, anyOf: [...anyOf, { type: 'null' }] };
  const { description: _, ...rest } = schema;
  return { ...words, anyOf: [rest, { type: 'null' }] };
}

/** One thing that is different in a strict schema, and in which places. */
export interface StrictNote {
  readonly what: string;
  /** Paths within the strict schema; empty for the whole. */
  readonly places: readonly string[];
}

/** What is different in a strict schema, in words. */
export interface StrictReport {
  /** What has another form, and comes back from it. */
  readonly rewritten: readonly StrictNote[];
  /** What is only said in descriptions: the check of the call still judges it. */
  readonly checked: readonly StrictNote[];
}

const WORDS: Readonly<Record<Exclude<StrictEdit['kind'], 'said' | 'closed'>, string>> = {
  anything: 'any value is a value of a definition, in which objects are lists of entries',
  constant: 'a constant is a list of one',
  merged: 'schemas that hold together are one',
  narrowed: 'other properties than the named ones are not taken',
  nullable: 'null leaves it out',
  'optional-null': 'null leaves it out, and its value, which may be null, stands in an object',
  pairs: 'an object with any keys is a list of pairs',
  rest: 'properties without a name of their own are a list of pairs',
  root: 'the whole stands in a property',
  tagged: 'the branches of a union have tags',
  tuple: 'the places of a list are properties',
  type: 'a type is said where only its keywords were',
  union: 'one of several is any of them',
};

/** The edits in words, those of a kind together. */
export function strictReport(edits: readonly StrictEdit[]): StrictReport {
  const rewritten = new Map<string, Set<string>>();
  const checked = new Map<string, Set<string>>();
  for (const edit of edits) {
    // Calls drop such properties anyhow.
    if (edit.kind === 'closed') continue;
    const [notes, what] = edit.kind === 'said' ? [checked, edit.keyword] : [rewritten, WORDS[edit.kind]];
    notes.set(what, (notes.get(what) ?? new Set()).add(edit.at));
    // That it is exactly one is not asked for.
    if (edit.kind === 'union') checked.set('oneOf', (checked.get('oneOf') ?? new Set()).add(edit.at));
  }
  return { rewritten: listed(rewritten), checked: listed(checked) };
}

function listed(notes: ReadonlyMap<string, ReadonlySet<string>>): readonly StrictNote[] {
  return [...notes].map(([what, places]) => ({ what, places: [...places] }));
}
