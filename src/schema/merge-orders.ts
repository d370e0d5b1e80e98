/**
 * One order out of several that each keep the order of declaration but know only some of the names: each
 * decorator package has its own list of the properties that it stands on. A name goes before the next one
 * that both lists know, otherwise to the end.
 */
export function mergeOrders(orders: readonly (readonly string[])[]): readonly string[] {
  return orders.reduce<readonly string[]>(mergeTwo, []);
}

function mergeTwo(known: readonly string[], added: readonly string[]): readonly string[] {
  const merged = [...known];
  added.forEach((name, index) => {
    if (merged.includes(name)) return;
    const next = added.slice(index + 1).find((later) => known.includes(later));
    merged.splice(next === undefined ? merged.length : merged.indexOf(next), 0, name);
  });
  return merged;
}
