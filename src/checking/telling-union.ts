import type { CodeKeywordDefinition, KeywordCxt } from 'ajv';
import type { JsonSchema } from '../contract/json-schema.js';
import { chooserOf } from './choose-branch.js';
import { MAX_ERRORS } from './schema-error.js';

/** The package of the validator: what is written here is in its terms. */
type AjvPackage = typeof import('ajv');

/**
 * Code that makes no more errors than are told apart, and then repeats the last one so that they count; and that
 * does not copy all errors so far behind each reference. An error holds its whole path and what lies around it.
 */
export function boundErrors(code: string): string {
  return code
    .replace(
      /(const err\d+ = )\{instancePath/g,
      `$1vErrors !== null && vErrors.length >= ${MAX_ERRORS} ? vErrors[${MAX_ERRORS - 1}] : {instancePath`,
    )
    .replace(/vErrors\.concat\(([\w.]+\.errors)\)/g, '($1.forEach((error) => vErrors.push(error)), vErrors)');
}

/**
 * `anyOf` or `oneOf`, in time that does not double with each union within another. Where the value shows which branch it was meant for, no other can accept it, and that
 * branch alone is asked; otherwise all of them are, and what they say against it is not kept.
 */
export function tellingUnion(keyword: string, { _, Name }: AjvPackage): CodeKeywordDefinition {
  return {
    keyword,
    schemaType: 'array',
    trackErrors: true,
    error: { message: `must match a schema in ${keyword}` },
    code(cxt: KeywordCxt) {
      const { gen, data, it } = cxt;
      const branches = cxt.schema as readonly JsonSchema[];
      const ref = indexOf(branches, it.schemaEnv.root.schema as JsonSchema);
      const chosen = gen.const('chosen', _`${gen.scopeValue('func', { ref })}(${data})`);
      const fits = gen.name('_valid');
      const ask = (schemaProp: number, quiet: object): void => {
        const asked = cxt.subschema({ keyword, schemaProp, ...quiet }, fits);
        gen.if(fits, () => void cxt.mergeEvaluated(asked, Name));
      };
      branches.forEach((_branch, index) => {
        gen.if(_`${chosen} === ${index}`, () => ask(index, {}));
      });
      gen.if(_`${chosen} < 0`, () => {
        const fitting = gen.let('fitting', 0);
        gen.if(_`${chosen} === ${UNCLEAR}`, () =>
          branches.forEach((_branch, index) => {
            ask(index, QUIET);
            gen.if(fits, () => gen.code(_`${fitting}++`));
          }),
        );
        cxt.reset();
        const isEnough = keyword === 'oneOf' ? _`${fitting} !== 1` : _`${fitting} === 0`;
        gen.if(isEnough, () => cxt.error(true));
      });
    },
  };
}

/** What a chooser found instead of a branch: none accepts the value, or it takes all of them to tell. */
const NONE = -1;
const UNCLEAR = -2;

const QUIET = { createErrors: false, allErrors: false, compositeRule: true };

function indexOf(branches: readonly JsonSchema[], root: JsonSchema): (value: unknown) => number {
  const choose = chooserOf(branches, root);
  return (value) => {
    const chosen = choose(value);
    if (chosen.kind === 'branch') return chosen.index;
    return chosen.kind === 'tag' && chosen.isCertain ? NONE : UNCLEAR;
  };
}
