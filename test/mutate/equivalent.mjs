/**
 * Mutants that no test can find, because nothing that anybody sees is different: `source` is the line they
 * are in, `to` what it was changed to.
 */
export const EQUIVALENT = [];
