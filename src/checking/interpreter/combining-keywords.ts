import type { JsonSchema } from '../../contract/json-schema.js';
import { chooserOf } from '../choose-branch.js';
import { allOfJudges, FITS, type Judge, type MakeJudge, type Part } from './judge.js';

/** Keywords that judge the value itself by other schemas. */
export const COMBINING_KEYWORDS: Readonly<Record<string, MakeJudge>> = {
  not: (part) => {
    const judge = part.judgeOf(part.given);
    const complaint = { message: 'must NOT be valid' };
    return (value, run) => !run.quietly(value, judge) || run.refuse(value, part, complaint);
  },
  allOf: (part) => allOfJudges((part.given as readonly unknown[]).map((schema) => part.judgeOf(schema))),
  if: condition,
  anyOf: union,
  oneOf: union,
};

function condition(part: Part): Judge {
  const holds = part.judgeOf(part.given);
  const clause = (failingKeyword: 'then' | 'else'): Judge => {
    const given = part.schema[failingKeyword];
    if (given === undefined) return FITS;
    const judge = part.judgeOf(given);
    const complaint = { params: { failingKeyword }, message: `must match "${failingKeyword}" schema` };
    return (value, run, seen) => judge(value, run, seen) || run.refuse(value, part, complaint);
  };
  const [follows, otherwise] = [clause('then'), clause('else')];
  if (follows === FITS && otherwise === FITS && !part.isTracking) return FITS;
  return (value, run, seen) => {
    const own = run.track();
    if (!run.quietly(value, holds, own)) return otherwise(value, run, seen);
    if (own !== undefined) seen?.add(own);
    return follows(value, run, seen);
  };
}

/**
 * `anyOf` or `oneOf`. Where the value shows which branch it was meant for, that branch alone is asked and tells
 * what is wrong; otherwise all of them are, and what they say against it is not kept.
 */
function union(part: Part): Judge {
  const branches = part.given as readonly JsonSchema[];
  const judges = branches.map((branch) => part.judgeOf(branch));
  const choose = chooserOf(branches, part.root);
  const complaint = { message: `must match a schema in ${part.keyword}` };
  const isFitting = part.keyword === 'oneOf' ? fitsOne(judges) : fitsAny(judges);
  return (value, run, seen) => {
    const chosen = choose(value);
    if (chosen.kind === 'branch') return (judges[chosen.index] ?? FITS)(value, run, seen);
    const isHopeless = chosen.kind === 'tag' && chosen.isCertain;
    return (!isHopeless && isFitting(value, run, seen)) || run.refuse(value, part, complaint);
  };
}

function fitsAny(judges: readonly Judge[]): Judge {
  return (value, run, seen) => {
    let fits = false;
    for (const judge of judges) {
      const own = run.track();
      if (!run.quietly(value, judge, own)) continue;
      if (own === undefined || seen === undefined) return true;
      // Each branch that fits has its part in what has been judged.
      seen.add(own);
      fits = true;
    }
    return fits;
  };
}

function fitsOne(judges: readonly Judge[]): Judge {
  return (value, run, seen) => {
    let fitting = 0;
    for (const judge of judges) {
      const own = run.track();
      if (!run.quietly(value, judge, own)) continue;
      if (own !== undefined) seen?.add(own);
      fitting += 1;
      if (fitting > 1) return false;
    }
    return fitting === 1;
  };
}
