/** The total of a basket, in cents. */
export function totalOf(items) {
  return items.reduce((total, { cents }) => total + cents, 0);
}

/** Cents as an amount for people: 1234 is `12.34 €`. */
export function priceOf(cents) {
  return `${Math.floor(cents / 100)}.${cents % 100} €`;
}
