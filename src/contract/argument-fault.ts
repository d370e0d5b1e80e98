/** One thing that is wrong with the arguments of a call. */
export interface ArgumentFault {
  /** Where, with dots: `items.0.sku`; empty for the arguments as a whole. */
  readonly path: string;
  /** What, as the second half of a sentence: `must be string`. */
  readonly message: string;
}
