/** Options of `@Args`. */
export interface ArgsOptions {
  /** class-validator groups whose rules apply; default: all rules, as class-validator does. */
  readonly groups?: readonly string[];
}
