/** Whether two types are the same one; `any` is the same as nothing but `any`. */
export type Equal<One, Other> =
  (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;

/** Compiles only where the claim holds. */
export type Expect<Claim extends true> = Claim;

/** Claims about the types in a function, as a statement: `claim<Expect<Equal<typeof args, …>>>()`. */
export function claim<_Claim extends true>(): void {}
