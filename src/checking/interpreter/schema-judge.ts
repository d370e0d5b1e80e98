import type { JsonSchema } from '../../contract/json-schema.js';
import { isOfType } from '../schema-level.js';
import { allOfJudges, FITS, type Judge, type MakeJudge, type Part, type Test } from './judge.js';
import { OBJECT_KEYWORDS } from './object-keywords.js';
import { VALUE_KEYWORDS } from './value-keywords.js';

type Makers = Readonly<Record<string, MakeJudge>>;

const REFERENCES: Makers = {
  $dynamicRef: (part) => part.referred(),
  $recursiveRef: (part) => part.referred(),
  $ref: (part) => part.referred(),
};

/** What may be said of values of a type, or of all; in the order in which errors are reported. */
export const GROUPS: readonly { readonly type?: string; readonly makers: Makers }[] = [
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
export function schemaJudge(schema: JsonSchema, part: MakePart): Judge {
  const types = typesOf(schema);
  const refuseType: Judge = (value, run) =>
    run.refuse(value, part('type'), { params: { type: schema.type } });
  const judges: Judge[] = [];
  let isTypeJudged = types.length === 0;
  for (const [group, made] of madeJudges(schema, part)) {
    const { type } = GROUPS[group] ?? {};
    const isOnly = types.length === 1 && types[0] === type;
    isTypeJudged ||= isOnly;
    const judge = allOfJudges(made.map(([, each]) => each));
    if (type === undefined) judges.push(judge);
    else if (isOnly || judge !== FITS) judges.push(ofType(type, judge, isOnly ? refuseType : FITS));
  }
  if (!isTypeJudged) {
    const tests = types.map(typeTest);
    judges.unshift((value, run) => tests.some((isOf) => isOf(value)) || refuseType(value, run));
  }
  return allOfJudges(judges.filter((judge) => judge !== FITS));
}

export type Made = readonly [keyword: string, judge: Judge];

/** By group, in order; a group is there, if empty, where a keyword of it stands there that refuses nothing. */
export function madeJudges(schema: JsonSchema, part: MakePart): ReadonlyMap<number, readonly Made[]> {
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
  return (value, run, seen) => (isOf(value) ? judge(value, run, seen) : others(value, run, seen));
}

export function typesOf({ type, nullable }: JsonSchema): readonly string[] {
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
