/** A schema as it will be printed: JSON Schema whose `instanceOf` are references to code. */
export type DescribedSchema = Readonly<Record<string, unknown>>;

/** Where a name comes from, if it is not global. */
export interface NameOrigin {
  /** The absolute path of the file that exports it. */
  readonly file?: string;
  /** The package that exports it, as an import names it. */
  readonly package?: string;
  /** What its own file calls it, where that is something else. */
  readonly localName?: string;
}

/** An exported name of a module, or a global one; printed as it is, with an import where it needs one. */
export class CodeReference {
  constructor(
    /** The exported name; `default` for a default export. */
    readonly name: string,
    readonly origin: NameOrigin = {},
  ) {}
}
