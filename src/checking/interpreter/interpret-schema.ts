import type { JsonSchema } from '../../contract/json-schema.js';
import { findReference } from '../../schema/find-reference.js';
import { isKnownIn, isSchemaNode, KEYWORDS } from '../../schema/keywords.js';
import { draftOf } from '../schema-faults.js';
import { isOfType } from '../schema-level.js';
import {
  ANYTHING,
  allOfJudges,
  FITS,
  type Judge,
  type MakeJudge,
  type Part,
  Run,
  type SchemaError,
  type Test,
  testOf,
  withTest,
} from './judge.js';
import { OBJECT_KEYWORDS, objectTest } from './object-keywords.js';
import { VALUE_KEYWORDS } from './value-keywords.js';
import { type WholeSchema, wholeSchema } from './whole-schema.js';

/** A schema that can be asked. */
interface InterpretedSchema {
  /** Whether a value fits. */
  readonly test: (value: unknown) => boolean;
  /** Everything that is wrong with a value; nothing where it fits. */
  readonly check: (value: unknown) => readonly SchemaError[] | undefined;
  readonly isBetterInterpreted: WholeSchema['isBetterInterpreted'];
}

/**
 * A schema as judges that ask each other, one for each of its parts: made in a small fraction of the time in which
 * code could be generated for it, and where none may be generated. Verdicts and errors are those of a compiled one.
 */
export function interpretSchema(schema: JsonSchema): InterpretedSchema {
  const whole = wholeSchema(schema);
  const { root, isTracking, isDynamic, isRepeating, isBetterInterpreted } = whole;
  const scope = new Scope(whole, []).enter(root);
  let judge: Judge | undefined;
  const ask = (value: unknown, run: Run): boolean => {
    judge ??= scope.judgeOf(root);
    return judge(value, run, run.track());
  };
  let test: Test | undefined;
  const hasMemory = isTracking || isDynamic || isRepeating;
  return {
    isBetterInterpreted,
    test(value) {
      if (hasMemory) return ask(value, new Run({ isTelling: false, isTracking }));
      test ??= testOf(scope.judgeOf(root));
      return test(value);
    },
    check(value) {
      const run = new Run({ isTelling: true, isTracking });
      return ask(value, run) ? undefined : run.errors;
    },
  };
}

const scopes = new WeakMap<JsonSchema, Scope>();

/** A part of a schema, and the whole that its references are relative to. */
interface SchemaPlace {
  readonly schema: JsonSchema;
  readonly root: JsonSchema;
}

/**
 * Whether a value fits a part of a schema: for values that are judged once, such as defaults. What depends on what
 * else has been judged says nothing here, nor does what refers to itself without end.
 */
export function fitsSchema(value: unknown, { schema, root }: SchemaPlace): boolean {
  const scope = scopes.get(root) ?? new Scope({ ...WITHOUT_MEMORY, root, draft: draftOf(root) }, []);
  scopes.set(root, scope);
  try {
    return testOf(scope.judgeOf(schema))(value);
  } catch (error) {
    if (error instanceof RangeError) return true;
    throw error;
  }
}

const WITHOUT_MEMORY = {
  isTracking: false,
  isDynamic: false,
  isRepeating: false,
  isBetterInterpreted: false,
};

/** The judges of schemas that were reached through the same resources: what a dynamic reference means depends on these. */
class Scope {
  readonly whole: WholeSchema;
  readonly #resources: readonly JsonSchema[];
  readonly #judges = new Map<JsonSchema, Judge>();
  readonly #inner = new Map<JsonSchema, Scope>();

  constructor(whole: WholeSchema, resources: readonly JsonSchema[]) {
    this.whole = whole;
    this.#resources = resources;
  }

  /** The scope within the resource that a schema belongs to. */
  enter(schema: JsonSchema): Scope {
    const { root, isDynamic } = this.whole;
    const resource = isDynamic ? findReference('#', { root, from: schema }) : undefined;
    if (!isSchemaNode(resource) || this.#resources.includes(resource)) return this;
    const inner = this.#inner.get(resource) ?? new Scope(this.whole, [...this.#resources, resource]);
    this.#inner.set(resource, inner);
    return inner;
  }

  judgeOf(schema: unknown): Judge {
    if (!isSchemaNode(schema)) return schema === false ? REFUSES : FITS;
    return this.enter(schema).#judgeOf(schema);
  }

  #judgeOf(schema: JsonSchema): Judge {
    const known = this.#judges.get(schema);
    if (known !== undefined) return known;
    const judge = schemaJudge(schema, (keyword) => new SchemaPart(this, schema, keyword));
    const isCounting = (schema.unevaluatedProperties ?? schema.unevaluatedItems) !== undefined;
    const tracking = this.whole.isTracking && isCounting ? withOwnTrack(judge) : judge;
    this.#judges.set(schema, tracking);
    return tracking;
  }

  /** The judge of what a reference means, made when it is first asked: it may contain who refers to it. */
  referred(from: JsonSchema, keyword: string): Judge {
    let judge: Judge | undefined;
    const made = (): Judge => {
      judge ??= this.#judgeOfTarget(from, keyword);
      return judge;
    };
    let test: Test | undefined;
    return withTest(
      (value, run, seen) => made()(value, run, seen),
      (value) => {
        test ??= testOf(made());
        return test(value);
      },
    );
  }

  #judgeOfTarget(from: JsonSchema, keyword: string): Judge {
    const judge = this.judgeOf(this.#target(from, keyword));
    return this.whole.isRepeating ? remembering(judge) : judge;
  }

  #target(from: JsonSchema, keyword: string): unknown {
    const reference = String(from[keyword]);
    const target = findReference(reference, { root: this.whole.root, from });
    if (keyword === '$ref' || !isSchemaNode(target)) return target;
    const anchor = keyword === '$dynamicRef' ? '$dynamicAnchor' : '$recursiveAnchor';
    const wanted = keyword === '$dynamicRef' ? reference.slice(1) : true;
    if (target[anchor] !== wanted) return target;
    // The outermost of the resources around that has the same anchor.
    for (const resource of this.#resources) {
      const other = findReference(reference, { root: this.whole.root, from: resource });
      if (isSchemaNode(other) && other[anchor] === wanted) return other;
    }
    return target;
  }
}

class SchemaPart implements Part {
  readonly #scope: Scope;
  readonly schema: JsonSchema;
  readonly keyword: string;

  constructor(scope: Scope, schema: JsonSchema, keyword: string) {
    this.#scope = scope;
    this.schema = schema;
    this.keyword = keyword;
  }

  get given(): unknown {
    return this.schema[this.keyword];
  }

  get root(): JsonSchema {
    return this.#scope.whole.root;
  }

  get isTracking(): boolean {
    return this.#scope.whole.isTracking;
  }

  get marksContained(): boolean {
    return this.#scope.whole.draft === '2020-12';
  }

  knows(name: string): boolean {
    return isKnownIn(this.#scope.whole.draft, KEYWORDS.get(name) ?? {});
  }

  judgeOf(schema: unknown): Judge {
    return this.#scope.judgeOf(schema);
  }

  referred(): Judge {
    return this.#scope.referred(this.schema, this.keyword);
  }
}

const FALSE = { keyword: 'false schema', given: false, schema: {} };

const REFUSES: Judge = withTest(
  (value, run) => run.refuse(value, FALSE, { message: 'boolean schema is false' }),
  () => false,
);

/** Asks a judge once about a value; of one that does not fit, the reasons are told once for each place of it. */
function remembering(judge: Judge): Judge {
  return (value, run, seen) => {
    const verdicts = run.verdictsOf(judge);
    const known = verdicts.get(value);
    if (known !== undefined && (known.fits || !run.isTelling || known.toldAt === run.place)) {
      if (known.seen !== undefined) seen?.add(known.seen);
      return known.fits;
    }
    // What leads to itself without getting anywhere refuses nothing.
    verdicts.set(value, { fits: true });
    const own = run.track();
    const fits = judge(value, run, own);
    verdicts.set(value, { fits, seen: own, toldAt: fits || !run.isTelling ? undefined : run.place });
    if (own !== undefined) seen?.add(own);
    return fits;
  };
}

/** What is left over counts from what its own schema has judged, not from what those around it have. */
function withOwnTrack(judge: Judge): Judge {
  return (value, run, seen) => {
    const own = run.track();
    const fits = judge(value, run, own);
    if (own !== undefined) seen?.add(own);
    return fits;
  };
}

type Makers = Readonly<Record<string, MakeJudge>>;

const REFERENCES: Makers = {
  $dynamicRef: (part) => part.referred(),
  $recursiveRef: (part) => part.referred(),
  $ref: (part) => part.referred(),
};

/** What may be said of values of a type, or of all; in the order in which generated code tells what is wrong. */
const GROUPS: readonly { readonly type?: string; readonly makers: Makers }[] = [
  { makers: { ...REFERENCES, ...VALUE_KEYWORDS.any } },
  { type: 'number', makers: VALUE_KEYWORDS.number },
  { type: 'string', makers: VALUE_KEYWORDS.text },
  { type: 'array', makers: VALUE_KEYWORDS.array },
  { type: 'object', makers: OBJECT_KEYWORDS },
];

/** A keyword's place in that order; `format` has two. */
interface Known {
  readonly keyword: string;
  readonly group: number;
  readonly rank: number;
  readonly make: MakeJudge;
}

const KNOWN: ReadonlyMap<string, readonly Known[]> = Map.groupBy(
  GROUPS.flatMap(({ makers }, group) =>
    Object.entries(makers).map(([keyword, make], rank) => ({ keyword, group, rank, make })),
  ),
  ({ keyword }) => keyword,
);

/** Makes parts of a schema's keywords. */
type MakePart = (keyword: string) => Part;

/** The judge of one schema: all that its keywords say, each asked only of values that it says something of. */
function schemaJudge(schema: JsonSchema, part: MakePart): Judge {
  const types = typesOf(schema);
  const refuseType: Judge = (value, run) =>
    run.refuse(value, part('type'), { params: { type: schema.type } });
  const judges: Judge[] = [];
  let isTypeJudged = types.length === 0;
  for (const [group, made] of madeJudges(schema, part)) {
    const { type } = GROUPS[group] ?? {};
    const isOnly = types.length === 1 && types[0] === type;
    isTypeJudged ||= isOnly;
    const judge = type === 'object' ? objectJudge(made, part) : allOfJudges(made.map(([, each]) => each));
    if (type === undefined) judges.push(judge);
    else if (isOnly || judge !== FITS) {
      const typed = ofType(type, judge, isOnly ? refuseType : FITS);
      // An integer is a number, and whether it is one has been asked before.
      const isAsked = type === 'number' && types.length === 1 && types[0] === 'integer';
      judges.push(isAsked ? withTest(typed, testOf(judge)) : typed);
    }
  }
  if (!isTypeJudged) judges.unshift(isOfOne(types, refuseType));
  return allOfJudges(judges.filter((judge) => judge !== FITS));
}

function objectJudge(made: readonly Made[], part: MakePart): Judge {
  const judges = made.map(([, judge]) => judge);
  const test = objectTest(
    part('properties'),
    made.map(([keyword]) => keyword),
  );
  if (test === undefined || judges.length === 0) return allOfJudges(judges);
  const judge = allOfJudges(judges);
  return withTest((value, run, seen) => judge(value, run, seen), test);
}

type Made = readonly [keyword: string, judge: Judge];

/** By group, in order; a group is there, if empty, where a keyword of it stands there that refuses nothing. */
function madeJudges(schema: JsonSchema, part: MakePart): ReadonlyMap<number, readonly Made[]> {
  const known: Known[] = [];
  for (const keyword of Object.keys(schema))
    if (schema[keyword] !== undefined) known.push(...(KNOWN.get(keyword) ?? []));
  known.sort((one, other) => one.group - other.group || one.rank - other.rank);
  const made = new Map<number, Made[]>();
  for (const { keyword, group, make } of known) {
    const named = part(keyword);
    if (!named.knows(keyword)) continue;
    const judge = make(named);
    const judges = made.get(group) ?? [];
    made.set(group, judges);
    if (judge !== undefined && judge !== FITS) judges.push([keyword, judge]);
  }
  return made;
}

function ofType(type: string, judge: Judge, others: Judge): Judge {
  const isOf = typeTest(type);
  const [test, otherwise] = [testOf(judge), others === FITS];
  return withTest(
    (value, run, seen) => (isOf(value) ? judge(value, run, seen) : others(value, run, seen)),
    ofTypeTest(type, test, otherwise),
  );
}

function ofTypeTest(type: string, test: Test, otherwise: boolean): Test {
  if (type === 'string') return (value) => (typeof value === 'string' ? test(value) : otherwise);
  if (type === 'array') return (value) => (Array.isArray(value) ? test(value) : otherwise);
  if (type === 'number')
    return (value) => (typeof value === 'number' && Number.isFinite(value) ? test(value) : otherwise);
  return (value) =>
    typeof value === 'object' && value !== null && !Array.isArray(value) ? test(value) : otherwise;
}

function isOfOne(types: readonly string[], refuse: Judge): Judge {
  const tests = types.map(typeTest);
  const [only = ANYTHING] = tests;
  const test: Test = tests.length === 1 ? only : (value) => tests.some((isOf) => isOf(value));
  return withTest((value, run) => test(value) || refuse(value, run), test);
}

function typesOf({ type, nullable }: JsonSchema): readonly string[] {
  const types = [type ?? []].flat() as readonly string[];
  return nullable === true && !types.includes('null') ? [...types, 'null'] : types;
}

/** A number is a finite one: JSON has no others. */
function typeTest(type: string): Test {
  switch (type) {
    case 'string':
      return (value) => typeof value === 'string';
    case 'number':
      return Number.isFinite;
    case 'integer':
      return Number.isInteger;
    case 'array':
      return Array.isArray;
    default:
      return (value) => isOfType(value, type);
  }
}
