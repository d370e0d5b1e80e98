import type { ArgumentFault } from '../contract/argument-fault.js';
import type { JsonSchema } from '../contract/json-schema.js';
import { branchTypes } from './branch-types.js';
import { branchValues } from './branch-values.js';
import { type ChosenBranch, chooseBranch } from './choose-branch.js';
import { isOfType } from './is-of-type.js';
import type { SchemaError } from './json-schema-compiler.js';
import { schemaOrder } from './schema-order.js';
import { schemasAt } from './schemas-at.js';

/** The validator's errors as faults: one per place and cause, in the order of the schema. */
export function describeErrors(errors: readonly SchemaError[], schema: JsonSchema): readonly ArgumentFault[] {
  const faults = relevant(errors, schema).map(describe);
  const distinct = [...new Map(faults.map((fault) => [`${fault.path}\n${fault.message}`, fault])).values()];
  return schemaOrder(distinct, schema);
}

/** An error as the validator gave it, and as it is to be told. */
interface Told {
  readonly source: SchemaError;
  readonly told: SchemaError;
}

/**
 * Of a union, the validator reports the errors of every branch, and then the union's own. Only those of the
 * branch that was meant help; where that is unclear, the union's own error stands for all.
 */
function relevant(errors: readonly SchemaError[], schema: JsonSchema): readonly SchemaError[] {
  let kept: readonly Told[] = [];
  for (const error of errors) {
    const branches = branchesOf(error);
    if (branches === undefined) {
      kept = [...kept, { source: error, told: error }];
      continue;
    }
    const arose = (branch: JsonSchema) => (earlier: Told) =>
      aroseIn(earlier.source, { branch, error, schema });
    const isOfBranch = (earlier: Told): boolean => branches.some((branch) => arose(branch)(earlier));
    const ofBranches = kept.filter(isOfBranch);
    const chosen = chooseBranch(branches, error.data, schema);
    const helpful = chosen.kind === 'branch' ? ofBranches.filter(arose(chosen.branch)) : [];
    const told = helpful.length > 0 ? helpful : [{ source: error, told: ownError(error, chosen, schema) }];
    kept = [...kept.filter((earlier) => !ofBranches.includes(earlier)), ...told];
  }
  return kept.map(({ told }) => told);
}

function branchesOf({ keyword, parentSchema }: SchemaError): readonly JsonSchema[] | undefined {
  if (keyword !== 'anyOf' && keyword !== 'oneOf') return undefined;
  return (parentSchema?.[keyword] ?? []) as readonly JsonSchema[];
}

interface UnionBranch {
  readonly branch: JsonSchema;
  /** The union's own error. */
  readonly error: SchemaError;
  readonly schema: JsonSchema;
}

function aroseIn(
  { instancePath, parentSchema }: SchemaError,
  { branch, error, schema }: UnionBranch,
): boolean {
  const isWithin = instancePath === error.instancePath || instancePath.startsWith(`${error.instancePath}/`);
  if (!isWithin || parentSchema === undefined) return false;
  const path = parts(instancePath.slice(error.instancePath.length));
  return schemasAt(branch, path, schema).has(parentSchema as JsonSchema);
}

/** What a union says for itself: the tags or values it knows, the types it takes, or that nothing fits. */
function ownError(error: SchemaError, chosen: ChosenBranch, schema: JsonSchema): SchemaError {
  if (chosen.kind === 'tag') {
    const instancePath = `${error.instancePath}/${pointerPart(chosen.property)}`;
    return { ...error, keyword: 'enum', instancePath, params: { allowedValues: chosen.tags } };
  }
  const branches = branchesOf(error) ?? [];
  const values = branchValues(branches, schema);
  if (values !== undefined && !values.includes(error.data))
    return { ...error, keyword: 'enum', params: { allowedValues: values } };
  const types = branchTypes(branches, schema);
  if (types.length === 0 || types.some((type) => isOfType(error.data, type))) return error;
  return { ...error, keyword: 'type', params: { type: types } };
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
  return parts(pointer).join('.');
}

function parts(pointer: string): readonly string[] {
  if (pointer === '') return [];
  return pointer
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function pointerPart(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}
