import type { ToolOptions } from '../contract/tool-options.js';
import { type AuthorFault, undescribed } from '../errors/author-fault.js';
import type { ArgumentBinding } from './argument-binding.js';
import type { MethodFacts, ParameterFacts } from './parameter-facts.js';

/** A tool method that could be planned. */
export interface DoubtfulMethod {
  /** `ShopTools.findOrders`. */
  readonly where: string;
  readonly options: ToolOptions;
  /** The method as it was written. */
  readonly method: (...args: never[]) => unknown;
  readonly facts: MethodFacts;
  readonly bindings: readonly ArgumentBinding[];
}

/** What works and is probably not meant. */
export function doubtsAbout({ where, options, method, facts }: DoubtfulMethod): readonly AuthorFault[] {
  const doubts: AuthorFault[] = [];
  if (!options.description?.trim())
    doubts.push(
      undescribed(where, "@Tool('What it does, and when'), or a comment and npx toolwright generate"),
    );
  const names = options.parameters === undefined ? namesFromSource(facts) : [];
  if (names.length > 0 && names.every((name) => name.length <= 2) && isMinified(method))
    doubts.push({
      where,
      problem: `a minifier seems to have named its parameters (${names.join(', ')}), and the model sees these names`,
      fix: "npx toolwright generate; @Param({ name: '…' }); or a minifier that keeps names",
    });
  return doubts;
}

/**
 * Parameters that are required although they may have been written with a `?`: neither their decorators nor a
 * generated file say, and decorator metadata cannot.
 */
export function requiredByDefault({ where, options, facts, bindings }: DoubtfulMethod): readonly string[] {
  if (!facts.ok || facts.described !== undefined || options.parameters !== undefined) return [];
  return facts.parameters.flatMap((parameter, index) => {
    const binding = bindings[index];
    if (binding?.from !== 'property' || parameter.parsed?.hasDefault) return [];
    return paramOptions(parameter)?.required === undefined ? [`${where}(${binding.name})`] : [];
  });
}

/** Names of properties that nobody gave by hand. */
function namesFromSource(facts: MethodFacts): readonly string[] {
  if (!facts.ok || facts.described !== undefined) return [];
  return facts.parameters.flatMap((parameter) => {
    const { records, parsed } = parameter;
    const isProperty = records.length === 0 || records[0]?.role === 'property';
    return isProperty && paramOptions(parameter)?.name === undefined ? (parsed?.name ?? []) : [];
  });
}

function paramOptions({ records: [record] }: ParameterFacts) {
  return record?.role === 'property' ? record.options : undefined;
}

/** Compilers and people break lines in a method, or put a space before its body. */
function isMinified(method: DoubtfulMethod['method']): boolean {
  const source = Function.prototype.toString.call(method);
  return !source.includes('\n') && source.includes('){');
}
