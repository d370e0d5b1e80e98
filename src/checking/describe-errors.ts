import type { ArgumentFault } from '../contract/argument-fault.js';
import type { JsonSchema } from '../contract/json-schema.js';
import { chooseBranch } from './choose-branch.js';
import type { SchemaError } from './json-schema-compiler.js';
import { schemaOrder } from './schema-order.js';

/** The validator's errors as faults: one per place and cause, in the order of the schema (design §4). */
export function describeErrors(errors: readonly SchemaError[], schema: JsonSchema): readonly ArgumentFault[] {
  const faults = relevant(errors, schema).map(describe);
  const distinct = [...new Map(faults.map((fault) => [`${fault.path}\n${fault.message}`, fault])).values()];
  return schemaOrder(distinct, schema);
}

/**
 * Of a union, the validator reports the errors of every branch. Only those of the branch that was meant
 * help; where that is unclear, the union's own error stands for all.
 */
function relevant(errors: readonly SchemaError[], schema: JsonSchema): readonly SchemaError[] {
  const kept: SchemaError[] = [];
  for (const error of errors) {
    if (error.keyword !== 'anyOf' && error.keyword !== 'oneOf') {
      kept.push(error);
      continue;
    }
    const branches = (error.parentSchema?.[error.keyword] ?? []) as readonly JsonSchema[];
    const prefixes = branches.map((branch, index) => branch.$ref ?? `${error.schemaPath}/${index}`);
    const firstOfUnion = kept.findIndex(
      (earlier) => isWithin(earlier, error) && startsWithAny(earlier, prefixes),
    );
    const ofBranches = firstOfUnion < 0 ? [] : kept.splice(firstOfUnion);
    const chosen = chooseBranch(branches, error.data, schema);
    if (chosen.kind === 'branch') {
      const prefix = prefixes[branches.indexOf(chosen.branch)] ?? '';
      kept.push(...ofBranches.filter((branchError) => branchError.schemaPath.startsWith(prefix)));
    } else if (chosen.kind === 'tag') {
      kept.push({
        ...error,
        keyword: 'enum',
        instancePath: `${error.instancePath}/${chosen.property}`,
        params: { allowedValues: chosen.tags },
      });
    } else {
      kept.push(error);
    }
  }
  return kept;
}

function isWithin(error: SchemaError, union: SchemaError): boolean {
  return error.instancePath === union.instancePath || error.instancePath.startsWith(`${union.instancePath}/`);
}

function startsWithAny({ schemaPath }: SchemaError, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => schemaPath.startsWith(prefix));
}

function describe(error: SchemaError): ArgumentFault {
  const { keyword, params } = error;
  const path = dotted(error.instancePath);
  switch (keyword) {
    case 'required':
      return { path: join(path, String(params.missingProperty)), message: 'is required' };
    case 'additionalProperties':
      return { path: join(path, String(params.additionalProperty)), message: 'is not a known property' };
    case 'unevaluatedProperties':
      return { path: join(path, String(params.unevaluatedProperty)), message: 'is not a known property' };
    case 'enum':
      return {
        path,
        message: `must be one of: ${(params.allowedValues as unknown[]).map((value) => JSON.stringify(value)).join(', ')}`,
      };
    case 'const':
      return { path, message: `must be ${JSON.stringify(params.allowedValue)}` };
    case 'type':
      return { path, message: `must be ${[params.type].flat().join(' or ')}` };
    case 'anyOf':
    case 'oneOf':
      return { path, message: 'must have one of the forms that the schema allows' };
    default:
      return { path, message: error.message ?? `must satisfy ${keyword}` };
  }
}

/** A JSON pointer with dots: `/items/0/sku` → `items.0.sku`. */
function dotted(pointer: string): string {
  return pointer
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .join('.');
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}
