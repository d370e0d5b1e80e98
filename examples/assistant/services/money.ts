const FORMAT = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'EUR' });

/** An amount for people: `€1,234.50`. */
export function formatMoney(cents: number): string {
  return FORMAT.format(cents / 100);
}

/** The whole cents of an amount in euros; the database stores no fractions. */
export function centsOf(euros: number): number {
  return Math.round(euros * 100);
}
