/**
 * Type token for whole numbers, which TypeScript cannot express: `@Param({ type: () => Integer })`,
 * `registerFunction(registry, 'add', 'Add', [['a', Integer], ['b', Integer]], add)`.
 * It becomes `{ "type": "integer" }`. It is never instantiated.
 */
export class Integer {
  private constructor() {}
}
