import { askedNodes } from './asked-nodes.js';
import type { CompilerView, Numbers } from './compiler-view.js';
import type { NativeChecker, NativeSymbol, NativeType } from './native-api.js';

/** The questions that are asked most, and what makes fewer messages of them. */
export interface BatchedQuestions
  extends Pick<CompilerView, 'prepare' | 'symbolAt' | 'typeAt' | 'typeFromNode' | 'typeOfSymbol'> {
  /** The same symbols; their types have been asked for. */
  withTypes(symbols: readonly NativeSymbol[]): readonly NativeSymbol[];
}

/** Each question to TypeScript 7 is a message to another process, so that many are asked together. */
export function batchedQuestions(checker: NativeChecker, kinds: Numbers): BatchedQuestions {
  const types = new WeakMap<object, NativeType | undefined>();
  const symbols = new WeakMap<object, NativeSymbol | undefined>();
  // A node without a type is one that cannot have any: the classic API says `any` there.
  const orAny = (type: NativeType | undefined) => type ?? checker.getAnyType();
  return {
    prepare(node) {
      const { typed, named } = askedNodes(node, kinds);
      const typesFound = typed.length > 0 ? checker.getTypeAtLocation(typed) : [];
      const symbolsFound = named.length > 0 ? checker.getSymbolAtLocation(named) : [];
      for (const [index, one] of typed.entries()) types.set(one, typesFound[index]);
      for (const [index, one] of named.entries()) symbols.set(one, symbolsFound[index]);
    },
    withTypes(of) {
      const found = of.length > 0 ? checker.getTypeOfSymbol(of) : [];
      for (const [index, symbol] of of.entries()) types.set(symbol, found[index]);
      return of;
    },
    symbolAt: (node) => symbols.get(node) ?? checker.getSymbolAtLocation(node),
    typeAt: (node) => orAny(types.get(node) ?? checker.getTypeAtLocation(node)),
    typeFromNode: (node) => orAny(types.get(node) ?? checker.getTypeFromTypeNode(node)),
    typeOfSymbol: (symbol) => orAny(types.get(symbol) ?? checker.getTypeOfSymbol(symbol)),
  };
}
