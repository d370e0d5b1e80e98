/** Whether two types are identical; `any` is identical only to `any`. */
export type Equal<One, Other> =
  (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;

/** Compiles only if the claim is true. */
export type Expect<Claim extends true> = Claim;

/** A claim as a statement, for use in functions: `claim<Expect<Equal<typeof args, …>>>()`. */
export function claim<_Claim extends true>(): void {}
