/** 17 digits show how a double is stored; the 15 that every double keeps show what was meant: 0.1 + 0.2 is 0.3. */
const SAFE_DIGITS = 15;

/** Beyond it JavaScript itself goes over to `1e+21`. */
const PLAIN_BELOW = 1e21;

/** A number as a person writes it: whole numbers plainly, fractions without artefacts of binary storage. */
export function formatNumber(value: number): string {
  // `String(2 ** 60)` ends in `7000`: shortest digits, not the number. `BigInt` also makes `-0` a `0`.
  if (Number.isInteger(value) && Math.abs(value) < PLAIN_BELOW) return String(BigInt(value));
  return String(Number(value.toPrecision(SAFE_DIGITS)));
}
