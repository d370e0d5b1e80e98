/**
 * Mutants that no test can find, because nothing that anybody sees is different: `source` is the line they
 * are in, `to` what it was changed to.
 */
export const EQUIVALENT = [
  {
    source: 'for (let index = 0; index < list.length; index += 1) {',
    to: '(index) <= (list.length)',
    reason: 'Behind the end of a list is `undefined`, which passes for plain data like any other.',
  },
  {
    source: 'return known;',
    to: 'undefined',
    reason: 'What is not known to be plain takes the longer way to the same result (`formOf`).',
  },
  {
    source: "const remembered = this.#remembered.size > 0 && this.#remembered.get(signatureOf(call) ?? '');",
    to: '(this.#remembered.size) >= (0)',
    reason: 'Of what is empty nothing is found; being asked first spares a signature.',
  },
];
