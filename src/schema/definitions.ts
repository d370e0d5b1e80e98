import type { JsonSchema } from '../contract/json-schema.js';

/** The `$defs` of one schema while it is written. Names depend on the order of first appearance only. */
export class Definitions {
  readonly #names = new Map<unknown, string>();
  readonly #schemas = new Map<string, JsonSchema>();

  /** A reference to the definition of `owner`, which is written when it is first referred to. */
  refer(owner: unknown, wanted: string, write: () => JsonSchema): JsonSchema {
    const before = this.#names.get(owner);
    if (before !== undefined) return reference(before);
    const name = this.#free(wanted === '' ? 'Object' : wanted);
    this.#names.set(owner, name);
    // Taken before it is written, because it may refer to itself.
    this.#schemas.set(name, {});
    this.#schemas.set(name, write());
    return reference(name);
  }

  /** The schema with `$defs`, if there are any. */
  attachTo(schema: JsonSchema): JsonSchema {
    return this.#schemas.size === 0 ? schema : { ...schema, $defs: Object.fromEntries(this.#schemas) };
  }

  #free(wanted: string): string {
    let name = wanted;
    for (let count = 2; this.#schemas.has(name); count++) name = `${wanted}${count}`;
    return name;
  }
}

/** RFC 6901, section 3: `~` and `/` are escaped in a pointer. */
function reference(name: string): JsonSchema {
  return { $ref: `#/$defs/${name.replace(/~/g, '~0').replace(/\//g, '~1')}` };
}
