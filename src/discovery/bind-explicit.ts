import type { JsonSchema } from '../contract/json-schema.js';
import type { ArgumentBinding } from './argument-binding.js';
import type { DescribedMethod, ParameterFault } from './describe-method.js';
import { isContextType, isInjectedType, type ParameterFacts } from './parameter-facts.js';

/**
 * Binds a method's parameters to an explicit schema. Their types need not be known: the schema says all. A
 * parameter is the property of its name; a single one that is none of the properties takes the whole arguments object.
 */
export function bindExplicit(parameters: readonly ParameterFacts[], schema: JsonSchema): DescribedMethod {
  const known = new Set(Object.keys(schema.properties ?? {}));
  const isAlone = parameters.filter((facts) => injectedBinding(facts) === undefined).length === 1;
  const bound = parameters.map((facts) => injectedBinding(facts) ?? bind(facts, { known, isAlone }));
  const faults = bound.filter((one): one is ParameterFault => 'problem' in one);
  if (faults.length > 0) return { ok: false, faults };
  const bindings = bound.filter((one): one is ArgumentBinding => 'from' in one);
  return { ok: true, signature: { bindings, properties: [] } };
}

function injectedBinding({ records, designType }: ParameterFacts): ArgumentBinding | undefined {
  const [record] = records;
  if (record?.role === 'context') return { from: 'context' };
  if (record !== undefined || !isInjectedType(designType)) return undefined;
  return { from: isContextType(designType) ? 'context' : 'signal' };
}

function bind(
  { index, records, parsed }: ParameterFacts,
  { known, isAlone }: { readonly known: ReadonlySet<string>; readonly isAlone: boolean },
): ArgumentBinding | ParameterFault {
  const [record] = records;
  if (record?.role === 'arguments') return { from: 'arguments' };
  const name = (record?.role === 'property' ? record.options.name : undefined) ?? parsed?.name;
  if (name !== undefined && known.has(name)) return { from: parsed?.isRest ? 'rest' : 'property', name };
  if (isAlone && record === undefined) return { from: 'arguments' };
  return {
    parameter: name === undefined ? `#${index}` : `${name} (#${index})`,
    problem: 'the explicit schema has no property of its name',
    fix: `@Param({ name: '…' }) with one of ${[...known].join(', ') || 'the properties (there are none)'}, or @Args()`,
  };
}
