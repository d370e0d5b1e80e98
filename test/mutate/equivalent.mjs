/**
 * Mutants that no test can find, because nothing that anybody sees is different: `source` is the line of
 * `path` that they are in, `to` what it was changed to.
 */
export const EQUIVALENT = [
  {
    path: 'src/core/kernel/json.ts',
    source: 'for (let index = 0; index < list.length; index += 1) {',
    to: '(index) <= (list.length)',
    reason: 'Behind the end of a list is `undefined`, which passes for plain data like any other.',
  },
  {
    path: 'src/core/kernel/json.ts',
    source: 'return known;',
    to: 'undefined',
    reason: 'What is not known to be plain takes the longer way to the same result.',
  },
  {
    path: 'src/tools/checking/interpreter/judge.ts',
    source: 'if (second === undefined) return only;',
    to: 'false',
    reason: 'All of one judge is that judge; it is asked without a loop.',
  },
  {
    path: 'src/run/loop/guard.ts',
    source: "const remembered = this.#remembered.size > 0 && this.#remembered.get(signatureOf(call) ?? '');",
    to: '(this.#remembered.size) >= (0)',
    reason: 'Of what is empty nothing is found; being asked first spares a signature.',
  },
  {
    path: 'src/run/loop/guard.ts',
    source: 'if (call.signature !== undefined || call.record === undefined) return call.signature;',
    to: '(call.signature !== undefined) && (call.record === undefined)',
    reason: 'What was computed before is computed again, to the same text.',
  },
  {
    path: 'src/tools/checking/hydration/create-hydrator.ts',
    source: 'if (referred === undefined) return undefined;',
    to: 'false',
    reason: 'A reference to nothing holds no instances, so that nobody asks how to revive it.',
  },
  {
    path: 'src/run/loop/options.ts',
    source:
      'if (areRight(config, RUN_CONFIG) && areRight(scope, SCOPE) && !isOwned && history.length === 0) return;',
    to: 'false',
    reason: 'The longer way finds nothing to refuse either.',
  },
  {
    path: 'src/core/kernel/json.ts',
    source: 'if (last !== undefined && key < last) return false;',
    to: '(last !== undefined) || (key < last)',
    reason: 'What is not known to be canonical is written the longer way, to the same text.',
  },
  {
    path: 'src/tools/checking/hydration/create-hydrator.ts',
    source:
      "if (first === undefined || others.length === 0 || typeof value !== 'object' || value === null) return first;",
    to: "(first === undefined || others.length === 0) && (typeof value !== 'object')",
    reason: 'Of one choice, and by the keys of what has none, the longer way gives the first one too.',
  },
  {
    path: 'src/tools/checking/patterns.ts',
    source: 'if (before !== undefined) return before;',
    to: 'false',
    reason: 'What was found out before is found out again.',
  },
  {
    path: 'src/tools/checking/formats.ts',
    source: "const last = labels.at(-1) ?? '';",
    to: "'mutant'",
    reason: 'A text that is split has a last part.',
  },
  {
    path: 'src/core/kernel/json.ts',
    source: 'return true;',
    to: 'false',
    reason: 'What is not known to be canonical is written the longer way, to the same text.',
  },
];
