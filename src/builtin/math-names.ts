/** Without a prototype, so that `constructor` and its like are just unknown. */
function table<Value>(entries: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> {
  return Object.freeze(Object.assign(Object.create(null), entries));
}

/** The constants of an expression. */
export const MATH_CONSTANTS = table({ pi: Math.PI, PI: Math.PI, e: Math.E, E: Math.E });

/** The functions of an expression; `log` is the natural logarithm, as in JavaScript, C and Python. */
export const MATH_FUNCTIONS = table<(...values: number[]) => number>({
  sqrt: Math.sqrt,
  cbrt: Math.cbrt,
  abs: Math.abs,
  sign: Math.sign,
  round: roundTo,
  floor: Math.floor,
  ceil: Math.ceil,
  trunc: Math.trunc,
  min: Math.min,
  max: Math.max,
  sin: Math.sin,
  cos: Math.cos,
  tan: Math.tan,
  asin: Math.asin,
  acos: Math.acos,
  atan: Math.atan,
  log: Math.log,
  ln: Math.log,
  log10: Math.log10,
  log2: Math.log2,
  exp: Math.exp,
  pow: Math.pow,
});

/** `round(2.345, 2)`. The decimal point is moved in the text, because `1.005 * 100` is 100.49999999999999. */
function roundTo(value: number, digits = 0): number {
  if (!Number.isInteger(digits) || Math.abs(digits) > 15)
    throw new Error('round takes a whole number of digits, at most 15');
  const sign = value < 0 ? -1 : 1;
  return sign * shift(Math.round(shift(Math.abs(value), digits)), -digits);
}

function shift(value: number, digits: number): number {
  const [mantissa, exponent = '0'] = String(value).split('e');
  return Number(`${mantissa}e${Number(exponent) + digits}`);
}
