import type { JsonSchema } from '../../contract/json-schema.js';
import { findReference } from '../../schema/find-reference.js';
import { type Draft, isKnownIn, isSchemaNode, KEYWORDS } from '../../schema/keywords.js';
import { draftOf } from '../draft-of.js';
import type { SchemaError } from '../schema-error.js';
import { everySchema } from './every-schema.js';
import { FITS, type Judge, type Part, Run } from './judge.js';
import { withMetaSchemas } from './meta-schemas.js';
import { judgesRepeatedly } from './repeated-judging.js';
import { schemaJudge } from './schema-judge.js';

/** A schema that can be asked. */
export interface InterpretedSchema {
  /** Whether a value fits. */
  readonly test: (value: unknown) => boolean;
  /** Everything that is wrong with a value; nothing where it fits. */
  readonly check: (value: unknown) => readonly SchemaError[] | undefined;
  /** Generated code would judge it wrongly, or take a time that doubles with each level of a value. */
  readonly isBetterInterpreted: boolean;
}

/**
 * A schema as judges that ask each other, one for each of its parts: made in a small fraction of the time in which
 * code could be generated for it, and where none may be generated. Verdicts and errors are those of a compiled one.
 */
export function interpretSchema(schema: JsonSchema): InterpretedSchema {
  const whole = wholeOf(schema);
  const { root, isTracking, isBetterInterpreted } = whole;
  let judge: Judge | undefined;
  const judgeOfRoot = (): Judge => (judge ??= new Scope(whole, []).enter(root).judgeOf(root));
  return {
    isBetterInterpreted,
    test(value) {
      const run = new Run({ isTelling: false, isTracking });
      return judgeOfRoot()(value, run, run.track());
    },
    check(value) {
      const run = new Run({ isTelling: true, isTracking });
      return judgeOfRoot()(value, run, run.track()) ? undefined : run.errors;
    },
  };
}

/** What all parts of a schema share. */
interface Whole {
  readonly root: JsonSchema;
  readonly draft: Draft;
  /** Some part asks what others have judged of a value. */
  readonly isTracking: boolean;
  /** What some reference means depends on who asks. */
  readonly isDynamic: boolean;
  /** What is said of a value has to be remembered, because it would be asked too often. */
  readonly isRepeating: boolean;
  readonly isBetterInterpreted: boolean;
}

function wholeOf(schema: JsonSchema): Whole {
  const draft = draftOf(schema);
  const root = withMetaSchemas(schema);
  const parts = everySchema(root);
  let [isTracking, isDynamic, isReferring, isMisread] = [false, false, false, root !== schema];
  for (const part of parts) {
    isTracking ||= leavesOver(part);
    isDynamic ||= (part.$dynamicRef ?? part.$recursiveRef) !== undefined;
    isReferring ||= part.$ref !== undefined;
    isMisread ||= isMisreadByCode(part, root);
  }
  const isRepeating = (isReferring || isDynamic) && judgesRepeatedly(root, parts);
  return {
    root,
    draft,
    isTracking: isTracking && draft !== '7',
    isDynamic,
    isRepeating,
    isBetterInterpreted: isMisread || isTracking || isDynamic || isRepeating,
  };
}

/**
 * Generated code asks nothing more of a list that ends within a tuple, loses its way among parts with addresses of
 * their own, and in its fastest form takes what every object inherits for sent.
 */
function isMisreadByCode(part: JsonSchema, root: JsonSchema): boolean {
  const { prefixItems, items, contains, uniqueItems, $id, $anchor, $dynamicAnchor, $ref = '#' } = part;
  const isTuple = Array.isArray(prefixItems ?? items);
  if (isTuple && (contains !== undefined || uniqueItems === true)) return true;
  const isNamed = ($anchor ?? $dynamicAnchor) !== undefined || ($id !== undefined && part !== root);
  const names = [...(part.required ?? []), ...Object.keys(part.properties ?? {})];
  if (names.some((name) => name in Object.prototype)) return true;
  return isNamed || !/^#(?:\/|$)/.test($ref);
}

/** The judges of schemas that were reached through the same resources: what a dynamic reference means depends on these. */
class Scope {
  readonly #whole: Whole;
  readonly #resources: readonly JsonSchema[];
  readonly #judges = new Map<JsonSchema, Judge>();
  readonly #inner = new Map<JsonSchema, Scope>();

  constructor(whole: Whole, resources: readonly JsonSchema[]) {
    this.#whole = whole;
    this.#resources = resources;
  }

  /** The scope within the resource that a schema belongs to. */
  enter(schema: JsonSchema): Scope {
    const { root, isDynamic } = this.#whole;
    const resource = isDynamic ? findReference('#', { root, from: schema }) : undefined;
    if (!isSchemaNode(resource) || this.#resources.includes(resource)) return this;
    const inner = this.#inner.get(resource) ?? new Scope(this.#whole, [...this.#resources, resource]);
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
    const judge = schemaJudge(schema, (keyword) => this.#part(schema, keyword));
    const tracking = this.#whole.isTracking && leavesOver(schema) ? withOwnTrack(judge) : judge;
    this.#judges.set(schema, tracking);
    return tracking;
  }

  #part(schema: JsonSchema, keyword: string): Part {
    const { root, draft, isTracking } = this.#whole;
    return {
      keyword,
      given: schema[keyword],
      schema,
      root,
      isTracking,
      marksContained: draft === '2020-12',
      knows: (name) => isKnownIn(draft, KEYWORDS.get(name) ?? {}),
      judgeOf: (part) => this.judgeOf(part),
      referred: () => this.#referred(schema, keyword),
    };
  }

  #referred(from: JsonSchema, keyword: string): Judge {
    let judge: Judge | undefined;
    return (value, run, seen) => {
      judge ??= this.#judgeOfTarget(from, keyword);
      return judge(value, run, seen);
    };
  }

  #judgeOfTarget(from: JsonSchema, keyword: string): Judge {
    const judge = this.judgeOf(this.#target(from, keyword));
    return this.#whole.isRepeating ? remembering(judge) : judge;
  }

  #target(from: JsonSchema, keyword: string): unknown {
    const reference = String(from[keyword]);
    const target = findReference(reference, { root: this.#whole.root, from });
    if (keyword === '$ref' || !isSchemaNode(target)) return target;
    const anchor = keyword === '$dynamicRef' ? '$dynamicAnchor' : '$recursiveAnchor';
    const wanted = keyword === '$dynamicRef' ? reference.slice(1) : true;
    if (target[anchor] !== wanted) return target;
    // The outermost of the resources around that has the same anchor.
    for (const resource of this.#resources) {
      const other = findReference(reference, { root: this.#whole.root, from: resource });
      if (isSchemaNode(other) && other[anchor] === wanted) return other;
    }
    return target;
  }
}

const REFUSES: Judge = (value, run) =>
  run.refuse(
    value,
    { keyword: 'false schema', given: false, schema: {} },
    { message: 'boolean schema is false' },
  );

function leavesOver({ unevaluatedProperties, unevaluatedItems }: JsonSchema): boolean {
  return (unevaluatedProperties ?? unevaluatedItems) !== undefined;
}

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
