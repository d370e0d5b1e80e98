import type { JsonSchema } from '../../contract/json-schema.js';
import { isOfType } from '../schema-level.js';
import {
  ANYTHING,
  allOfJudges,
  FITS,
  type Judge,
  type MakeJudge,
  type Part,
  type Test,
  testOf,
  withTest,
} from './judge.js';
import { OBJECT_KEYWORDS, objectTest } from './object-keywords.js';
import { VALUE_KEYWORDS } from './value-keywords.js';

type Makers = Readonly<Record<string, MakeJudge>>;

const REFERENCES: Makers = {
  $dynamicRef: (part) => part.referred(),
  $recursiveRef: (part) => part.referred(),
  $ref: (part) => part.referred(),
};

/** What may be said of values of a type, or of all; in the order in which generated code tells what is wrong. */
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
