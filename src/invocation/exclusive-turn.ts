/** Ends a turn; calling it again does nothing. */
export type EndTurn = () => void;

const tails = new WeakMap<object, Promise<void>>();

/**
 * Waits until all earlier turns on an object have ended, and begins the next. `setContext` and
 * `setCallback` store on a shared object, so calls of such an object must not overlap (design, invariant 2).
 */
export async function beginTurn(shared: object): Promise<EndTurn> {
  const before = tails.get(shared);
  let end: EndTurn = () => {};
  const turn = new Promise<void>((resolve) => {
    end = resolve;
  });
  tails.set(shared, before ? before.then(() => turn) : turn);
  await before;
  return end;
}
