import type { JsonSchema } from '../../contract/json-schema.js';
import { isOfType } from '../is-of-type.js';
import { ARRAY_KEYWORDS } from './array-keywords.js';
import { COMBINING_KEYWORDS } from './combining-keywords.js';
import { allOfJudges, FITS, type Judge, type MakeJudge, type Part } from './judge.js';
import { OBJECT_KEYWORDS } from './object-keywords.js';
import { ANY_KEYWORDS, NUMBER_KEYWORDS, TEXT_KEYWORDS } from './value-keywords.js';

type Makers = Readonly<Record<string, MakeJudge>>;

const REFERENCES: Makers = {
  $dynamicRef: (part) => part.referred(),
  $recursiveRef: (part) => part.referred(),
  $ref: (part) => part.referred(),
};

/** In the order in which compiled schemas tell what is wrong. */
const UNTYPED: Makers = { ...REFERENCES, ...ANY_KEYWORDS, ...COMBINING_KEYWORDS };

const TYPED: readonly { readonly type: string; readonly makers: Makers }[] = [
  { type: 'number', makers: NUMBER_KEYWORDS },
  { type: 'string', makers: TEXT_KEYWORDS },
  { type: 'array', makers: ARRAY_KEYWORDS },
  { type: 'object', makers: OBJECT_KEYWORDS },
];

/** Makes parts of a schema's keywords. */
export type MakePart = (keyword: string) => Part;

/** The judge of one schema: all that its keywords say, each asked only of values that it says something of. */
export function schemaJudge(schema: JsonSchema, part: MakePart): Judge {
  const types = typesOf(schema);
  const refuseType: Judge = (value, run) =>
    run.refuse(value, part('type'), { params: { type: schema.type } });
  const untyped = judgeBy(UNTYPED, schema, part);
  const judges = [untyped.judge];
  let isTypeJudged = types.length === 0;
  for (const { type, makers } of TYPED) {
    const { judge, isNamed } = judgeBy(makers, schema, part);
    const isOnly = isNamed && types.length === 1 && types[0] === type;
    isTypeJudged ||= isOnly;
    if (isOnly || judge !== FITS) judges.push(ofType(type, judge, isOnly ? refuseType : FITS));
  }
  if (!isTypeJudged) judges.unshift((value, run) => isOfTypes(value, types) || refuseType(value, run));
  return allOfJudges(judges.filter((judge) => judge !== FITS));
}

interface KeywordsJudge {
  readonly judge: Judge;
  /** The schema has one of the keywords, if only one that refuses nothing. */
  readonly isNamed: boolean;
}

function judgeBy(makers: Makers, schema: JsonSchema, part: MakePart): KeywordsJudge {
  const judges: Judge[] = [];
  let isNamed = false;
  for (const keyword in makers) {
    if (schema[keyword] === undefined) continue;
    const known = part(keyword);
    if (!known.knows(keyword)) continue;
    isNamed = true;
    const judge = makers[keyword]?.(known);
    if (judge !== undefined && judge !== FITS) judges.push(judge);
  }
  return { judge: allOfJudges(judges), isNamed };
}

function ofType(type: string, judge: Judge, others: Judge): Judge {
  const isOf = isFiniteOfType(type);
  return (value, run, seen) => (isOf(value) ? judge(value, run, seen) : others(value, run, seen));
}

function typesOf({ type, nullable }: JsonSchema): readonly string[] {
  const types = [type ?? []].flat() as readonly string[];
  return nullable === true && !types.includes('null') ? [...types, 'null'] : types;
}

function isOfTypes(value: unknown, types: readonly string[]): boolean {
  return isFinal(value) && types.some((type) => isOfType(value, type));
}

function isFiniteOfType(type: string): (value: unknown) => boolean {
  return (value) => isFinal(value) && isOfType(value, type);
}

/** JSON has no other numbers. */
function isFinal(value: unknown): boolean {
  return typeof value !== 'number' || Number.isFinite(value);
}
