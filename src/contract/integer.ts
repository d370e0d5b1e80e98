/**
 * Type token for whole numbers, which TypeScript cannot express: `@Param({ type: () => Integer })`,
 * `registerFunction(registry, 'add', 'Add', [['a', Integer], ['b', Integer]], add)`.
 * It becomes `{ "type": "integer" }`. It is never instantiated.
 */
export class Integer {
  /** Without a member of its own, TypeScript would take any class for this one. */
  declare private readonly wholeNumber: true;

  private constructor() {}
}
